"""Whether a request or an attempt gets a span, decided before anything of it is made.

An unsampled span of the SDK takes tens of microseconds, and most spans are unsampled. So the
standard samplers, which are all that the SDK knows, are decided here: requests by a comparison, and
attempts by the number of those to skip.
"""

import sys
from collections.abc import Mapping
from math import log, log1p
from random import getrandbits, random

from duetime.telemetry.traces.configuration import SAMPLER, SAMPLER_ARGUMENT, WrongTracing

DEFAULT_SAMPLER = "parentbased_always_on"

_SAMPLERS = (
    DEFAULT_SAMPLER,
    "parentbased_always_off",
    "parentbased_traceidratio",
    "always_on",
    "always_off",
    "traceidratio",
)

_LOW_BITS = (1 << 64) - 1
_NEVER, _ALWAYS = 0, 1 << 64


class Sampling:
    """A sampler of the specification. The lower 64 bits of a trace id decide, as in the SDK: an id
    below `bound` is sampled."""

    def __init__(self, bound: int, *, follows_parent: bool) -> None:
        self.bound = bound
        self._follows_parent = follows_parent

    def picks(self, parent: str | None) -> bool:
        """Whether to make a span, which continues the trace of its `parent`, a traceparent."""
        if parent is None:
            return getrandbits(64) < self.bound
        if self._follows_parent:
            return bool(int(parent[53:55], 16) & 1)
        return int(parent[3:35], 16) & _LOW_BITS < self.bound

    def picks_attempt(self, created: str) -> bool:
        """Whether to make a span for an attempt, whose trace is its own. `created` is the
        traceparent of the create: if that was traced, so is the attempt."""
        return self.picks(created if self._follows_parent else None)

    def next_skipped(self) -> int:
        """The number of new traces before the next one that is picked. To draw it once takes less
        time than to draw for each, and comes to the same."""
        if self.bound == _NEVER:
            return sys.maxsize
        share = self.bound / _ALWAYS
        return 0 if share >= 1.0 else int(log(1.0 - random()) / log1p(-share))

    def sampled_trace_id(self) -> int:
        """A random trace id that is sampled, for a new trace that was picked."""
        return (getrandbits(63) | 1) << 64 | getrandbits(64) % max(self.bound, 1)


def sampling_of(environment: Mapping[str, str]) -> Sampling:
    """The sampling that the variables ask for. Raises `WrongTracing`."""
    name = environment.get(SAMPLER, "").strip().lower() or DEFAULT_SAMPLER
    if name not in _SAMPLERS:
        raise WrongTracing(f"{SAMPLER} must be one of {', '.join(_SAMPLERS)}")
    follows_parent = name.startswith("parentbased_")
    match name.removeprefix("parentbased_"):
        case "always_on":
            bound = _ALWAYS
        case "always_off":
            bound = _NEVER
        case _:
            bound = round(_ratio(environment) * _ALWAYS)
    return Sampling(bound, follows_parent=follows_parent)


def _ratio(environment: Mapping[str, str]) -> float:
    given = environment.get(SAMPLER_ARGUMENT, "").strip()
    try:
        ratio = float(given or 1.0)
    except ValueError:
        ratio = -1.0
    if not 0 <= ratio <= 1:
        raise WrongTracing(f"{SAMPLER_ARGUMENT} must be a number from 0 to 1, such as 0.01")
    return ratio
