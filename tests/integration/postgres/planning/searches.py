"""The statements of searches and of counts by span, with values."""

from collections.abc import Sequence
from itertools import product
from typing import Any

from duetime.domain.timer import TimerStatus
from duetime.ports.searching import OrderedQuery
from duetime.ports.store import SortField
from duetime.stores.postgres.inspection.due_counts import DUE, PUT_OFF, TO_EXECUTE
from duetime.stores.postgres.searching.searches import (
    count_ids_statement,
    count_statement,
    ids_statement,
    scan_statement,
)
from duetime.testing.store_contract.steps import at

Statements = dict[str, tuple[str, Sequence[Any]]]

_BETWEEN = ("default", at(-1), b"", at(9), b"", 100)
_IDS = ("default", "t", "", "t~", "", 100)


def _scans() -> Statements:
    scans: Statements = {}
    for status, sort, descending in product((None, *TimerStatus), SortField, (False, True)):
        statuses = OrderedQuery(namespace="default", sort=sort, status=status).statuses
        name = f"search of {statuses} by {sort.value} {descending=}"
        scans[name] = (scan_statement(statuses, sort, descending), _BETWEEN)
    return scans


SEARCHES = _scans()
SEARCHES_OF_IDS: Statements = {
    "count of a search": (count_statement(tuple(TimerStatus), SortField.EXECUTE_AT), _BETWEEN),
    "count of ids": (count_ids_statement(), _IDS),
    "ids": (ids_statement(False), (*_IDS, 50)),
    "ids backwards": (ids_statement(True), (*_IDS, 50)),
}

_SPANS = ([at(0), at(1)], [at(1), at(2)], 100)
COUNTS_OF_DUE: Statements = {
    "count of timers due": (DUE, _SPANS),
    "count of timers to execute": (TO_EXECUTE, (*_SPANS, ["default"])),
    "count of timers put off": (PUT_OFF, (*_SPANS, ["default"])),
}
"""By spans; at most 100 timers of each are counted."""
