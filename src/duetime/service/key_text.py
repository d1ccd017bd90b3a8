"""Which texts can be a timer's key, or a part of one."""

from duetime.domain.errors import InvalidInput
from duetime.domain.keys import MAX_KEY_CHARACTERS


def check_key_text(field: str, text: str) -> None:
    """Raises `InvalidInput`. What passes can be stored by every store, and read back."""
    if text.isascii() and "\0" not in text and 0 < len(text) <= MAX_KEY_CHARACTERS:
        return  # As nearly all are.
    if not 1 <= len(text) <= MAX_KEY_CHARACTERS:
        raise InvalidInput(field, f"must have 1 to {MAX_KEY_CHARACTERS} characters")
    check_storable_text(field, text)


def check_storable_text(field: str, text: str) -> None:
    """Raises `InvalidInput` for characters that not every store can hold."""
    if "\0" in text:
        raise InvalidInput(field, "must not contain the character NUL")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise InvalidInput(field, "must not contain half of a surrogate pair")
