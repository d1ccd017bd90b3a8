"""Bodies of create requests for both APIs. The number in a payload identifies its timer."""

import random
from datetime import UTC, datetime, timedelta

import msgspec

PAYLOAD_BYTES = 300
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class V1Form(msgspec.Struct, frozen=True, kw_only=True):
    """Fields shared by the timers of a load. Ids are random, as most clients choose."""

    namespace: str = "default"
    payload_bytes: int = PAYLOAD_BYTES
    retry_policy: dict[str, int | str] | None = None


def platform_body(number: int, due_us: int, callback_url: str) -> bytes:
    return (
        f'{{"execute_at":"{moment_text(due_us)}","callback":{{"type":"http","url":"{callback_url}",'
        f'"payload":{payload_text(number, due_us, PAYLOAD_BYTES)}}}}}'
    ).encode()


def v1_body(form: V1Form, number: int, due_us: int, callback_url: str) -> bytes:
    policy = form.retry_policy
    ending = "" if policy is None else f',"retryPolicy":{msgspec.json.encode(policy).decode()}'
    return (
        f'{{"namespace":"{form.namespace}","id":"{random_id()}",'
        f'"executeAt":"{moment_text(due_us)}","callbackUrl":"{callback_url}",'
        f'"payload":{payload_text(number, due_us, form.payload_bytes)}{ending}}}'
    ).encode()


def payload_text(number: int, due_us: int, size: int) -> str:
    start = f'{{"n":{number},"due_us":{due_us},"padding":"'
    return f'{start}{"x" * (size - len(start) - 2)}"}}'


def moment_text(us: int) -> str:
    return (EPOCH + timedelta(microseconds=us)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def random_id() -> str:
    """Like uuid4 without its version bits, in a third of the time."""
    digits = f"{random.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
