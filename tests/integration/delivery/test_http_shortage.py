"""A delivery for which this process lacks a resource."""

import pytest

from duetime.delivery.http import HttpDestination
from duetime.domain.callback import CallbackProtocol, HttpCallback
from duetime.domain.errors import LocalShortage
from tests.unit.delivery.claims import always, claim_of


async def test_a_request_for_which_there_is_no_memory_is_nobodys_failure(
    destination: HttpDestination, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lack_memory(*_: object) -> bytes:
        raise MemoryError

    monkeypatch.setattr("duetime.delivery.http.format_request", lack_memory)
    callback = HttpCallback(url="http://127.0.0.1:9/", protocol=CallbackProtocol.ANSWER)
    with pytest.raises(LocalShortage, match="memory"):
        await destination.deliver(claim_of(callback), always)
