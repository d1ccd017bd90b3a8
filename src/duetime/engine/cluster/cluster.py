"""What an engine needs in order to share its store with others."""

from collections.abc import Callable

from msgspec import Struct

from duetime.ports.membership import MemberStore, NodeFacts
from duetime.ports.signals import NodeSignals


class Cluster(Struct, frozen=True, kw_only=True):
    """`is_gone` tells whether a member's process is known not to exist any more; one of which
    that is not known may well live."""

    members: MemberStore
    signals: NodeSignals
    is_gone: Callable[[NodeFacts], bool] = lambda facts: False
