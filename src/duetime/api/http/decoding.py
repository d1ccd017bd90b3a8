"""From the bytes of a request to its typed body, with errors that name the field.

`msgspec.Raw` members keep the client's JSON text. msgspec checks their grammar, but neither their
UTF-8 nor their depth. Both are checked here, so that the store holds only valid JSON.
"""

from functools import cached_property
from typing import Generic, TypeVar

from msgspec import DecodeError, Raw, ValidationError, inspect, json

from duetime.api.http.members import advice, letters
from duetime.domain.errors import InvalidInput
from duetime.domain.json_depth import is_deeper_than
from duetime.domain.limits import MAX_JSON_DEPTH

MAX_ECHO_CHARACTERS = 60
"""Characters of a client's name for something that an error message repeats."""

_IN_WORDS = {
    "array": "an array",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "null": "null",
    "object": "an object",
    "str": "a string",
}

_NOT_TEXT = "must be a string"
_NOT_TEXT_OR_NULL = "must be a string or null"
_DURATION = ' such as "30s"'
_INSTANT = ' such as "2030-01-31T12:00:00Z"'
_EXAMPLES = {
    "executeat": _INSTANT,
    "dueafter": _INSTANT,
    "duebefore": _INSTANT,
    "expiresat": _INSTANT,
    "executein": _DURATION,
    "moveby": _DURATION,
    "overlap": ' such as "24h"',
    "retention": ' such as "7d"',
    "callbacktimeout": _DURATION,
    "initialinterval": _DURATION,
    "maxinterval": _DURATION,
    "maxretryattemptsduration": _DURATION,
    "maxattemptsduration": _DURATION,
}
"""Texts for members that a client may take for numbers, by the letters of their names."""

T = TypeVar("T")

_decode_members = json.Decoder(dict[str, Raw]).decode


class InvalidRequest(InvalidInput):
    """A request that cannot be read. `field` is spelled as the client wrote it."""


class BodyDecoder(Generic[T]):
    """Decodes bodies of one type.

    `choices` lists the values of fields with a closed set, as in
    `{"callback.type": '"http" or "nats"'}`. Without `limits_depth` the caller checks the depth
    of the `Raw` members.
    """

    def __init__(
        self, body_type: type[T], choices: dict[str, str], *, limits_depth: bool = True
    ) -> None:
        self._body_type = body_type
        self._decode = json.Decoder(body_type).decode
        self._choices = choices
        self._limits_depth = limits_depth

    def decode(self, body: bytes, whole: str = "body") -> T:
        """Raises `InvalidInput`, whatever the bytes are. `whole` is the name that errors give to
        `body`, such as "line"."""
        if not body:
            raise InvalidRequest(whole, "is empty: send a JSON object")
        try:
            if not body.isascii():
                body.decode()
            decoded = self._decode(body)
        except ValidationError as error:
            raise self._explained(str(error), body, whole) from None
        except DecodeError as error:
            raise InvalidRequest(whole, f"is not valid JSON: {_syntax_problem(error)}") from None
        except UnicodeDecodeError as error:
            raise InvalidRequest(whole, f"is not valid UTF-8 (byte {error.start})") from None
        except RecursionError:
            raise _too_deep(whole) from None
        if self._limits_depth and is_deeper_than(body, MAX_JSON_DEPTH):
            raise _too_deep(whole)
        return decoded

    def _explained(self, message: str, body: bytes, whole: str) -> InvalidRequest:
        """Rewords msgspec's "Expected `str`, got `int` - at `$.callback.url`".

        The client's own text may be part of the problem, but not of the path, which comes last.
        """
        problem, _, path = message.rpartition(" - at `$")
        if not problem:
            problem, path = message, ""
        field = path.removesuffix("`").removeprefix(".")
        if field.endswith("[...]"):
            owner = field.removesuffix("[...]")
            name = _first_member_not_text(body, owner)
            if name is None:
                return InvalidRequest(owner, f"values {_in_words(problem)}")
            return InvalidRequest(_member(owner, name), _in_words(problem))
        if problem.startswith(("Invalid value", "Invalid enum value")):
            choices = self._choices.get(field.partition("[")[0], "a known value")
            return InvalidRequest(field, f"must be {choices}")
        if problem.startswith("Object missing required field"):
            return InvalidRequest(_member(field, _name_in(problem)), "is required")
        if problem.startswith("Object contains unknown field"):
            name = _name_in(problem)
            told = advice(self._type_info, field, name[:MAX_ECHO_CHARACTERS])
            return InvalidRequest(_member(field, name), f"is not a known field{told}")
        problem = _in_words(problem)
        example = _EXAMPLES.get(letters(field.rpartition(".")[2]))
        if example is not None and problem in (_NOT_TEXT, _NOT_TEXT_OR_NULL):
            problem = _NOT_TEXT + example + (", or null" if problem == _NOT_TEXT_OR_NULL else "")
        return InvalidRequest(field or whole, problem)

    @cached_property
    def _type_info(self) -> inspect.Type:
        return inspect.type_info(self._body_type)


def _too_deep(whole: str) -> InvalidRequest:
    return InvalidRequest(whole, f"is nested deeper than {MAX_JSON_DEPTH} levels")


def _name_in(problem: str) -> str:
    return problem.partition("`")[2].removesuffix("`")


def _first_member_not_text(body: bytes, owner: str) -> str | None:
    """The name of the owner's first member that is not a string, which msgspec does not report.

    None if the name cannot be found: msgspec has not checked the rest of the body.
    """
    members = Raw(body)
    try:
        for part in owner.split("."):
            members = _decode_members(members)[part]
        values = _decode_members(members).items()
    except (DecodeError, KeyError, RecursionError):
        return None
    return next((name for name, value in values if not bytes(value).startswith(b'"')), None)


def _member(owner: str, name: str) -> str:
    if len(name) > MAX_ECHO_CHARACTERS:
        name = name[:MAX_ECHO_CHARACTERS] + "..."
    return f"{owner}.{name}" if owner else name


def _in_words(problem: str) -> str:
    if problem.startswith("Expected `"):
        expected = problem.split("`")[1].split(" | ")
        return "must be " + " or ".join(_IN_WORDS.get(kind, kind) for kind in expected)
    if problem.endswith("out of range"):
        return "is out of range"
    return "is not valid"


def _syntax_problem(error: DecodeError) -> str:
    problem = str(error).removeprefix("JSON is malformed: ")
    if problem == "Input data was truncated":
        return "it ends too early, or in the middle of an escape"
    return problem
