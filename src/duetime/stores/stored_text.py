"""Text from outside, made fit for a database."""


def replace_surrogates(text: str) -> str:
    """The text with a question mark for each lone surrogate."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def storable(text: str) -> str:
    """The text, with a replacement for each character that PostgreSQL's text cannot hold.

    Text from outside, like an endpoint's error message, never keeps a batch from being written.
    """
    if "\0" in text:
        text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return replace_surrogates(text)
