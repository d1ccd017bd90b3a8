"""Reading query parameters."""

from typing import TypeVar
from urllib.parse import parse_qsl

from duetime.api.http.decoding import MAX_ECHO_CHARACTERS, InvalidRequest
from duetime.domain.errors import InvalidInput
from duetime.domain.limits import MAX_QUERY_PARAMETERS

T = TypeVar("T")


def parameters(query_string: bytes, known: frozenset[str]) -> dict[str, str]:
    """The values by name. Raises `InvalidInput` for a name that is not known or given twice."""
    try:
        pairs = parse_qsl(
            query_string.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MAX_QUERY_PARAMETERS,
        )
    except ValueError:
        # The query is not UTF-8, or has too many parameters.
        raise InvalidRequest("query", "cannot be read") from None
    given: dict[str, str] = {}
    for name, value in pairs:
        if name not in known:
            taken = ", ".join(sorted(known)) or "none"
            problem = f"is not a known parameter: this operation takes {taken}"
            raise InvalidRequest(name[:MAX_ECHO_CHARACTERS], problem)
        if name in given:
            raise InvalidInput(name, "is given more than once")
        given[name] = value
    return given


def choice(name: str, value: str, choices: dict[str, T]) -> T:
    if value not in choices:
        raise InvalidInput(name, f"must be one of {', '.join(choices)}")
    return choices[value]


def number(name: str, value: str | None, default: int, low: int, high: int) -> int:
    if value is None:
        return default
    if value.isascii() and value.isdigit() and len(value) <= 19 and low <= int(value) <= high:
        return int(value)
    raise InvalidInput(name, f"must be a whole number from {low} to {high}")
