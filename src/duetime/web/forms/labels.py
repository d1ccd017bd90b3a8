"""The names of fields in the forms of the UI. The service names them as its APIs do."""

import re
from collections.abc import Iterable

from duetime.domain.errors import InvalidInput

LABELS = {
    "execute_at": "Due",
    "execute_in": "Due",
    "move_by": "By how much",
    "due_from": "Due from",
    "due_until": "Due before",
    "id_prefix": "Id begins with",
    "endpoint": "Endpoint",
    "expires_at": "Expires",
    "max_retries": "Retries",
    "initial_interval": "First wait",
    "backoff_multiplier": "Each wait grows by a factor of",
    "max_interval": "Longest wait",
    "max_retry_attempts_duration": "Give up after",
    "num_shards": "Shards",
    "max_pending": "Unfinished timers",
    "concurrency": "Callbacks at once",
    "max_payload_bytes": "Largest payload, in bytes",
    "callback_networks": "Networks of callbacks",
    "retention": "Finished timers are kept for",
    "slo": "Lateness objective",
}
_PREFIX = re.compile(r"^(?:retry_policy|callback|filter)\.")
_NAME = re.compile(rf"\b(?:{'|'.join(name for name in LABELS if '_' in name)})\b")


def label_of(field: str) -> str:
    """The label of a field, or its own name if it is in no form."""
    return LABELS.get(_PREFIX.sub("", field), field)


def problem_in_words(error: InvalidInput) -> str:
    """The problem with the field, in which other fields have their labels."""
    return _NAME.sub(lambda found: f"“{LABELS[found[0]]}”", error.problem)


def in_words(error: InvalidInput) -> str:
    """The whole error."""
    return f"{label_of(error.field)} {problem_in_words(error)}"


def sentences_of(errors: Iterable[InvalidInput]) -> dict[str, str]:
    """The first problem of each field, as a sentence beside it."""
    found: dict[str, str] = {}
    for error in errors:
        words = problem_in_words(error)
        found.setdefault(error.field.partition("[")[0], f"{words[:1].upper()}{words[1:]}.")
    return found
