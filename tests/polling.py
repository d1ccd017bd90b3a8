"""Waiting for a state that no event announces."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from duetime.clock import SystemClock

PATIENCE_SECONDS = 60.0
"""Longest wait for anything. Only a hang takes this long, however busy the machine is."""

PAUSE_SECONDS = 0.01
"""Pause between two looks. Looking without one takes the processor from the server under test."""

ValueT = TypeVar("ValueT")


async def poll(look: Callable[[], Awaitable[ValueT]], until: Callable[[ValueT], bool]) -> ValueT:
    """The first value of `look` that satisfies `until`."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not until(value := await look()):
            await SystemClock().sleep(PAUSE_SECONDS)
    return value
