"""The rule for names of PostgreSQL schemas."""

import re

from duetime.domain.limits import MAX_SCHEMA_CHARACTERS

SCHEMA_NAME_RULE = (
    f"up to {MAX_SCHEMA_CHARACTERS} of a-z, 0-9 and _, not starting with a digit or with pg_"
)
"""Completes a sentence: "schema must be ..."."""

_SCHEMA_NAME = re.compile(rf"(?!pg_)[a-z_][a-z0-9_]{{0,{MAX_SCHEMA_CHARACTERS - 1}}}")


def is_schema_name(text: str) -> bool:
    """Whether the name needs no quoting in SQL, and PostgreSQL allows it."""
    return _SCHEMA_NAME.fullmatch(text) is not None
