"""Turns: heavy work of the front doors in slices, so that firing never waits long for it."""

import asyncio
from collections.abc import Callable, Iterable
from itertools import islice
from typing import TypeVar

from duetime.event_loop import next_turn
from duetime.ports.clock import Clock

Result = TypeVar("Result")

SLICE_SECONDS = 0.001
"""Time after which a slice ends."""

ITEMS_PER_LOOK = 8
"""Usual items between two looks at the clock, which takes as long as a tenth of such an item."""


class Turns:
    """Runs the heavy work of all requests of a process, one slice per turn of the event loop.

    Between two slices everything else that is ready runs: claims, deliveries, settlements and
    small requests. Requests with heavy work take turns with each other, so that many of them delay
    the rest no more than one does.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._slices = asyncio.Lock()

    async def map(self, function: Callable[..., Result], *items: Iterable[object]) -> list[Result]:
        """The results of `map`, in a list. An error of the function ends the work."""
        results: list[Result] = []
        rest = map(function, *items)
        # The first item tells whether the items are usual ones or large.
        items_per_look = 1
        while True:
            async with self._slices:
                looked_seconds = self._clock.monotonic()
                until_seconds = looked_seconds + SLICE_SECONDS
                took_seconds = 0.0
                while looked_seconds + took_seconds < until_seconds:
                    done = len(results)
                    results.extend(islice(rest, items_per_look))
                    if len(results) - done < items_per_look:
                        return results
                    before_seconds, looked_seconds = looked_seconds, self._clock.monotonic()
                    took_seconds = looked_seconds - before_seconds
                    items_per_look = ITEMS_PER_LOOK if took_seconds < SLICE_SECONDS else 1
                # Before the next slice may begin, also one of another request.
                await next_turn()
