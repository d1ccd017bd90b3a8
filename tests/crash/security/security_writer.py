"""Writes keys and audit entries into a store, one step for each line of standard input.

Run as `python -m tests.crash.security.security_writer NUMBER sqlite PATH`, or with `postgresql URL
SCHEMA`; steps are numbered from NUMBER on. Each answers with a line when all of its writes were
answered: its number, or "full" if the disk had no room.
"""

import asyncio
import sys
from pathlib import Path

import structlog

from duetime.domain.errors import StorageFull
from duetime.stores.postgres import PostgresStore
from duetime.stores.sqlite import SqliteStore
from duetime.testing.store_contract.security.audit_log import make_entry
from duetime.testing.store_contract.security.credentials import make_key
from duetime.testing.store_contract.steps import at
from tests.postgres.options import store_options

DETAILS = "x" * 2_000


def opened_by(kind: str, *place: str) -> SqliteStore | PostgresStore:
    return SqliteStore(Path(place[0])) if kind == "sqlite" else PostgresStore(store_options(*place))


async def take_step(store: SqliteStore | PostgresStore, number: int) -> None:
    """Repeatable, because a step may be cut short."""
    security = store.security
    await security.add_credential(make_key(f"k{number}"))
    await security.replace_credential(make_key(f"k{number}", name="replaced"))
    await security.remove_credential(f"k{number - 1}")
    await security.note_uses({f"k{number}": at(number)})
    await security.append_audit([make_entry(2 * number + n, details=DETAILS) for n in range(2)])


async def main() -> None:
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    number, place = int(sys.argv[1]), sys.argv[2:]
    store = opened_by(*place)
    await store.open()
    for _ in sys.stdin:
        try:
            await take_step(store, number)
        except StorageFull:
            sys.stdout.write("full\n")
        else:
            sys.stdout.write(f"{number}\n")
            number += 1
        sys.stdout.flush()
    await store.close()


if __name__ == "__main__":
    asyncio.run(main())
