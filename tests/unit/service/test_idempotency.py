from uuid import UUID

import pytest
from msgspec import Raw
from msgspec.structs import replace

from duetime.domain.callback import HttpCallback
from duetime.domain.instants import Instant
from duetime.domain.retry import RetryPolicy
from duetime.service.create_requests import NewTimer
from duetime.service.idempotency import fingerprint_of, id_of_idempotency_key


def new_timer(payload: str = '{"a": 1, "b": 2.50}') -> NewTimer:
    return NewTimer(
        execute_at=Instant(1),
        callback=HttpCallback(url="https://example.com", payload=Raw(payload)),
        metadata=Raw('{"m": 1}'),
        idempotency_key="key",
    )


@pytest.mark.parametrize("key", ["a", "order-456", "é" * 255, "😀"])
def test_the_id_is_a_uuid_of_version_7_at_time_zero(key: str) -> None:
    timer_id = UUID(id_of_idempotency_key(key))
    assert timer_id.version == 7
    assert timer_id.variant == "specified in RFC 4122"
    assert timer_id.int >> 80 == 0
    assert id_of_idempotency_key(key) == str(timer_id)


def test_the_id_of_a_key_never_changes_between_releases() -> None:
    assert id_of_idempotency_key("order-456") == "00000000-0000-7192-bb5a-3cc631dda102"


def test_different_keys_have_different_ids() -> None:
    assert len({id_of_idempotency_key(str(number)) for number in range(10_000)}) == 10_000


@pytest.mark.parametrize(
    "payload", ['{"b":2.50,"a":1}', ' {\n"a":1,"b":2.50}', '{"\\u0061":1,"b":2.50}']
)
def test_white_space_and_order_do_not_matter(payload: str) -> None:
    assert fingerprint_of(new_timer(payload)) == fingerprint_of(new_timer())


@pytest.mark.parametrize(
    "other",
    [
        new_timer('{"a": 1, "b": 2.51}'),
        new_timer("null"),
        new_timer('{"a": "1", "b": 2.50}'),
        replace(new_timer(), execute_at=Instant(2)),
        replace(new_timer(), metadata=None),
        replace(new_timer(), metadata=Raw("{}")),
        replace(new_timer(), retry_policy=RetryPolicy()),
        replace(new_timer(), idempotency_key="other"),
        replace(new_timer(), callback=HttpCallback(url="https://example.com")),
        replace(new_timer(), callback=HttpCallback(url="https://example.com/2")),
    ],
)
def test_everything_that_was_asked_for_matters(other: NewTimer) -> None:
    assert fingerprint_of(other) != fingerprint_of(new_timer())


def test_numbers_beyond_floating_point_are_told_apart() -> None:
    numbers = ["1e999", "1e998", "0.1", "0.10000000000000000001", "1" * 30, "1" * 29 + "2"]
    numbers += ["9" * 5_000, "9" * 4_999]
    assert len({fingerprint_of(new_timer(number)) for number in numbers}) == len(numbers)
