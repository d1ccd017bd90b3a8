"""From the bytes of a request to its typed body, with errors that name the field.

`msgspec.Raw` members keep the client's JSON text as it came. msgspec checks their grammar while
it skips over them, but neither their UTF-8 nor their depth; that is checked here, on the whole
body, so that whatever is stored is valid JSON in valid UTF-8.
"""

from typing import Generic, TypeVar

from msgspec import DecodeError, Raw, ValidationError, json

from duetime.api.http.nesting import is_deeper_than
from duetime.domain.errors import InvalidInput

MAX_DEPTH = 64
MAX_ECHO_CHARACTERS = 60

_IN_WORDS = {
    "array": "an array",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "null": "null",
    "object": "an object",
    "str": "a string",
}

T = TypeVar("T")

_decode_members = json.Decoder(dict[str, Raw]).decode


class InvalidRequest(InvalidInput):
    """What cannot be read. The field is named as the client wrote it."""


class BodyDecoder(Generic[T]):
    """Decodes bodies of one type.

    `choices` says for a field with a closed set of values what they are, as in
    `{"callback.type": '"http" or "nats"'}`. Without `limits_depth` the caller checks the depth
    of the `Raw` members.
    """

    def __init__(
        self, body_type: type[T], choices: dict[str, str], *, limits_depth: bool = True
    ) -> None:
        self._decode = json.Decoder(body_type).decode
        self._choices = choices
        self._limits_depth = limits_depth

    def decode(self, body: bytes, whole: str = "body") -> T:
        """Raises `InvalidInput`, whatever the bytes are. `whole` is the name of all of them, where
        they are a part of what the client has sent."""
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
        if self._limits_depth and is_deeper_than(body, MAX_DEPTH):
            raise _too_deep(whole)
        return decoded

    def _explained(self, message: str, body: bytes, whole: str) -> InvalidRequest:
        """msgspec's "Expected `str`, got `int` - at `$.callback.url`" in our words.

        Text that the client chose can be part of the problem, never of the place, which
        comes last.
        """
        problem, _, place = message.rpartition(" - at `$")
        if not problem:
            problem, place = message, ""
        field = place.removesuffix("`").removeprefix(".")
        if field.endswith("[...]"):
            owner = field.removesuffix("[...]")
            name = _name_of_no_text(body, owner)
            if name is None:
                return InvalidRequest(owner, f"values {_in_words(problem)}")
            return InvalidRequest(_member(owner, name), _in_words(problem))
        if problem.startswith(("Invalid value", "Invalid enum value")):
            return InvalidRequest(field, f"must be {self._choices.get(field, 'a known value')}")
        if problem.startswith("Object missing required field"):
            return InvalidRequest(_member(field, _name_in(problem)), "is required")
        if problem.startswith("Object contains unknown field"):
            return InvalidRequest(_member(field, _name_in(problem)), "is not a known field")
        return InvalidRequest(field or whole, _in_words(problem))


def _too_deep(whole: str) -> InvalidRequest:
    return InvalidRequest(whole, f"is nested deeper than {MAX_DEPTH} levels")


def _name_in(problem: str) -> str:
    return problem.partition("`")[2].removesuffix("`")


def _name_of_no_text(body: bytes, owner: str) -> str | None:
    """The first member of the owner that is no string, which msgspec does not name. None when it
    cannot be found: nobody has looked at what follows it in the body."""
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
        return "it is cut off, or an escape in it is"
    return problem
