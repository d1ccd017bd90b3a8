"""Two nodes that share a store: every timer fires once, whichever node created it."""

from contextlib import ExitStack

import msgspec

from bench.harness.receiver import Receiver
from bench.harness.server import Server
from bench.measurements.firing import Round, run_round
from bench.scale import Scale
from bench.stores.store_under_test import StoreUnderTest

NODES = 2


class NodesFigures(msgspec.Struct, frozen=True, kw_only=True):
    nodes: int
    per_second: int
    round: Round

    @property
    def faults(self) -> list[str]:
        return self.round.faults


def measure_nodes(store: StoreUnderTest, receiver: Receiver, scale: Scale) -> NodesFigures:
    with ExitStack() as stack:
        servers = [stack.enter_context(Server(store)) for _ in range(NODES)]
        step_us = 1_000_000 // scale.node_timers_per_second
        return NodesFigures(
            nodes=NODES,
            per_second=scale.node_timers_per_second,
            round=run_round("nodes", servers, receiver, scale.node_timers, step_us),
        )
