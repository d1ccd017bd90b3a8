"""Names and ids as parts of paths."""

from urllib.parse import quote

from duetime.cli.output.terminal import refuse
from duetime.domain.limits import MAX_KEY_CHARACTERS


def path_segment(option: str, text: str) -> str:
    """A name or an id as part of a path: no character of it is taken for a part of the URL."""
    if not 1 <= len(text) <= MAX_KEY_CHARACTERS:
        refuse(option, f"must have 1 to {MAX_KEY_CHARACTERS} characters")
    try:
        # A dot means itself, not a directory.
        return quote(text, safe="").replace(".", "%2E")
    except UnicodeEncodeError:
        refuse(option, "is not valid text")
