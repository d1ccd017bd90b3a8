"""Checks of a search before anything is read."""

from duetime.domain.bulk import TimerFilter, is_endpoint
from duetime.domain.errors import InvalidInput
from duetime.domain.limits import MAX_FILTER_CHARACTERS
from duetime.service.searching.search import Search
from duetime.service.validation import check_storable_text

PAGE_SIZES = (20, 50, 100, 200)
"""Timers on a page."""

MAX_NAMESPACES = 20
"""Namespaces that one search goes through."""


def check_search(search: Search) -> None:
    """Raises `InvalidInput` that names the field."""
    if len(search.namespaces) > MAX_NAMESPACES:
        problem = (
            f"must be given: there are more than {MAX_NAMESPACES}, which is as many as one search "
            "goes through"
        )
        raise InvalidInput("namespace", problem)
    if search.limit not in PAGE_SIZES:
        sizes = ", ".join(map(str, PAGE_SIZES[:-1]))
        raise InvalidInput("limit", f"must be {sizes} or {PAGE_SIZES[-1]}")
    check_filter(search.matching)


def check_filter(matching: TimerFilter) -> None:
    """Raises `InvalidInput` that names the field of the filter."""
    for field, text, least in (
        ("id_prefix", matching.id_prefix, 1),
        ("endpoint", matching.endpoint, 1),
        ("error", matching.error_contains, 1),
        ("metadata", matching.metadata_key, 1),
        ("metadata", matching.metadata_value, 0),
    ):
        if text is None:
            continue
        if not least <= len(text) <= MAX_FILTER_CHARACTERS:
            problem = f"must have {least} to {MAX_FILTER_CHARACTERS:,} characters, or be left out"
            raise InvalidInput(field, problem)
        check_storable_text(field, text)
    if (matching.metadata_key is None) != (matching.metadata_value is None):
        raise InvalidInput("metadata", "must have a key and a value, such as customer=42")
    if matching.endpoint is not None and not is_endpoint(matching.endpoint):
        problem = "must be a host or an origin without a path, such as https://app.example.com"
        raise InvalidInput("endpoint", problem)
    first, end = matching.due_from_inclusive, matching.due_until_exclusive
    if first is not None and end is not None and end <= first:
        raise InvalidInput("due_until", "must be after due_from")
