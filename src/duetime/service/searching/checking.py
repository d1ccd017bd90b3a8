"""Checks of a search before anything is read."""

from duetime.domain.bulk import TimerFilter
from duetime.domain.errors import InvalidInput
from duetime.service.searching.search import Search
from duetime.service.validation import check_endpoint_filter, check_filter_text

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
    check_filter_text("id_prefix", matching.id_prefix)
    check_endpoint_filter("endpoint", matching.endpoint)
    check_filter_text("error", matching.error_contains)
    check_filter_text("metadata", matching.metadata_key)
    check_filter_text("metadata", matching.metadata_value, least=0)
    if (matching.metadata_key is None) != (matching.metadata_value is None):
        raise InvalidInput("metadata", "must have a key and a value, such as customer=42")
    first, end = matching.due_from_inclusive, matching.due_until_exclusive
    if first is not None and end is not None and end <= first:
        raise InvalidInput("due_until", "must be after due_from")
