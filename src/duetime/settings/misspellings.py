"""Names in `.env` that are probably misspelt settings.

Other programs may share the file, so an unknown name is no mistake by itself. It is one if it
comes close to a setting that is not given.
"""

import difflib
from collections.abc import Collection

CLOSE = 0.88
"""Similarity from which a name counts as misspelt. `DB_PORT` and `PG_PORT` have 0.86."""

OWN_PREFIX = "DUETIME_"
CLIENT_NAMES = ("DUETIME_URL", "DUETIME_API_KEY")
"""Names that only the commands read that talk to a server."""


def misspelt_name(name: str, settings: Collection[str], given: Collection[str]) -> str | None:
    """The end of a sentence that says what is wrong with the name; None if nothing is. `given` are
    the settings that have a value."""
    if name in settings or name in CLIENT_NAMES:
        return None
    missing = [each for each in settings if each not in given]
    if "DATABASE_URL" in given:
        # PGHOST and others are for PostgreSQL's own programs then.
        missing = [each for each in missing if not each.startswith("PG_")]
    meant = _closest(name.upper(), missing) or _closest(
        name.upper().removeprefix(OWN_PREFIX), missing
    )
    if meant is not None:
        return f"is not a setting; did you mean {meant!r}?"
    return "is not a setting" if name.startswith(OWN_PREFIX) else None


def _closest(name: str, settings: Collection[str]) -> str | None:
    if name in settings:
        return name
    for setting in settings:
        # Transposed letters, or the beginning of a longer name.
        if len(name) > 3 and sorted(name) == sorted(setting):
            return setting
        if "_" in name and setting.startswith(f"{name}_"):
            return setting
    return next(iter(difflib.get_close_matches(name, settings, n=1, cutoff=CLOSE)), None)
