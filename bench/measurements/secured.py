"""The price of safety: creates and bursts with many keys, signatures and a namespace's own list of
networks, beside the same without. Both servers run all the time and take turns."""

import time
from collections.abc import Callable
from statistics import median

import msgspec

from bench.harness.load_generator import Load, RandomInstants, generate
from bench.harness.receiver import Receiver
from bench.harness.server import Server, ServerCpu
from bench.measurements.creates import DAY_US, HOUR_US
from bench.measurements.firing import run_round
from bench.scale import Scale
from duetime.domain.namespace import DEFAULT_NAMESPACE

KEYS = 500
SECRETS = 2
"""Secrets that sign each callback, as during a rotation."""

NETWORKS = "loopback,10.0.0.0/8,*.example.com"
ROUNDS = 7


class SecuredFigures(msgspec.Struct, frozen=True, kw_only=True):
    """CPU time per timer: medians of the rounds, without and with all safety."""

    keys: int
    secrets: int
    create_us: float
    secured_create_us: float
    firing_us: float
    secured_firing_us: float
    faults: list[str]


def secure(server: Server) -> None:
    """Give the server keys, secrets and a list of networks, and let loads use the keys."""
    path = f"/api/v1/namespaces/{DEFAULT_NAMESPACE}"
    server.send("PUT", path, {"callbackNetworks": NETWORKS})
    for _ in range(SECRETS):
        server.send("POST", f"{path}/secrets", {})
    made = []
    for number in range(KEYS):
        key = {"name": f"bench {number}", "roles": ["write"], "namespaces": [DEFAULT_NAMESPACE]}
        made.append(server.send("POST", "/api/v1/keys", key)["key"])
    server.other_keys = tuple(made)


def measure_secured(
    plain: Server, secured: Server, receiver: Receiver, scale: Scale
) -> SecuredFigures:
    faults: list[str] = []

    def create(server: Server) -> float:
        earliest_us = time.time_ns() // 1_000 + HOUR_US
        cpu = ServerCpu(server)
        made = generate(
            Load(
                port=server.port,
                api_key=server.api_key,
                other_keys=server.other_keys,
                callback_url=receiver.url,
                count=scale.creates,
                instants=RandomInstants(
                    earliest_us=earliest_us, latest_exclusive_us=earliest_us + DAY_US
                ),
            )
        )
        if made.accepted != scale.creates:
            faults.append(f"secured: {made.accepted} of {scale.creates} accepted ({made.refusal})")
        return cpu.us_per_timer(scale.creates)

    def burst(server: Server) -> float:
        figures = run_round("secured", [server], receiver, scale.burst, 0)
        faults.extend(figures.faults)
        return figures.cpu_us_per_timer

    create_us, secured_create_us = _alternate(create, plain, secured)
    firing_us, secured_firing_us = _alternate(burst, plain, secured)
    return SecuredFigures(
        keys=KEYS,
        secrets=SECRETS,
        create_us=create_us,
        secured_create_us=secured_create_us,
        firing_us=firing_us,
        secured_firing_us=secured_firing_us,
        faults=faults,
    )


def _alternate(
    measure: Callable[[Server], float], plain: Server, secured: Server
) -> tuple[float, float]:
    """The medians of both, after a round to warm up each."""
    measure(plain)
    measure(secured)
    rounds = []
    for number in range(ROUNDS):
        # The first one alternates, because the machine's speed drifts.
        if number % 2:
            rounds.append((measure(plain), measure(secured)))
        else:
            with_safety = measure(secured)
            rounds.append((measure(plain), with_safety))
    return median(each for each, _ in rounds), median(each for _, each in rounds)
