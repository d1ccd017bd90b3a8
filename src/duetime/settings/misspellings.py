"""Names in `.env` and in the environment that are probably misspelt settings.

Other programs may share both, so an unknown name is no mistake by itself. It is one if it comes
close to a setting that is not given.
"""

import difflib
from collections.abc import Collection, Iterator, Mapping

CLOSE = 0.88
"""Similarity from which a name counts as misspelt. `DB_PORT` and `PG_PORT` have 0.86."""

SHORTEST = 3
"""Letters from which a part of a name may be the abbreviation of a word."""

OWN_PREFIX = "DUETIME_"
CLIENT_NAMES = ("DUETIME_URL", "DUETIME_API_KEY")
"""Names that only the commands read that talk to a server."""


_SHORT_FORMS = {"BROKER_URL": "TIMER_BROKER_URL", "RETENTION": "RETENTION_DAYS"}
_POSTGRES_PROGRAMS = "PG"
"""PGHOST and others are often in the environment, for PostgreSQL's own programs."""

_KUBERNETES_ADDRESS = "tcp://"
"""Kubernetes sets DUETIME_PORT to such an address if there is a service of that name."""


def misspelt_in_environment(
    environ: Mapping[str, str], settings: Collection[str], given: Collection[str]
) -> Iterator[str]:
    """A sentence for each name that comes close to a setting."""
    for name, text in environ.items():
        if name.startswith(_POSTGRES_PROGRAMS) or text.startswith(_KUBERNETES_ADDRESS):
            continue
        meant = _meant(name, settings, given)
        if meant is not None:
            yield f"{name!r} in the environment is not a setting; did you mean {meant!r}?"


def misspelt_name(name: str, settings: Collection[str], given: Collection[str]) -> str | None:
    """The end of a sentence that says what is wrong with the name; None if nothing is. `given` are
    the settings that have a value."""
    meant = _meant(name, settings, given)
    if meant is not None:
        return f"is not a setting; did you mean {meant!r}?"
    is_own = name.startswith(OWN_PREFIX) and name not in settings and name not in CLIENT_NAMES
    return "is not a setting" if is_own else None


def _meant(name: str, settings: Collection[str], given: Collection[str]) -> str | None:
    """The setting that was meant; None if the name is one, or like none that is not given."""
    if name in settings or name in CLIENT_NAMES:
        return None
    missing = [each for each in settings if each not in given]
    if "DATABASE_URL" in given:
        # PGHOST and others are for PostgreSQL's own programs then.
        missing = [each for each in missing if not each.startswith("PG_")]
    written = name.upper().replace("-", "_")
    return _closest(written, missing) or _closest(written.removeprefix(OWN_PREFIX), missing)


def _closest(name: str, settings: Collection[str]) -> str | None:
    name = _SHORT_FORMS.get(name, name)
    if name in settings:
        return name
    for setting in settings:
        # Transposed letters, or the beginning of a longer name.
        if len(name) > 3 and sorted(name) == sorted(setting):
            return setting
        if "_" in name and setting.startswith(f"{name}_"):
            return setting
    close = difflib.get_close_matches(name, settings, n=1, cutoff=CLOSE)
    return next(iter(close or (each for each in settings if _abbreviates(name, each))), None)


def _abbreviates(name: str, setting: str) -> bool:
    """Whether the name has the words of the setting, some of them shortened: `LOG_LVL`. At least
    one word is whole."""
    words, wholes = name.split("_"), setting.split("_")
    if len(words) != len(wholes) or set(words).isdisjoint(wholes):
        return False
    return all(map(_is_short_for, words, wholes))


def _is_short_for(word: str, whole: str) -> bool:
    if word == whole:
        return True
    rest = iter(whole)
    # `in` takes letters from `rest` up to the one that it finds, so the order counts.
    return len(word) >= SHORTEST and word[0] == whole[0] and all(each in rest for each in word)
