"""The mark of a copy as a row of the table `copies`, and refusals that stores share."""

from collections.abc import Sequence
from typing import Any

import msgspec

from duetime.domain.errors import CopyRefused, SchemaRefused
from duetime.domain.instants import Instant, format_instant
from duetime.stores.copying.ports import CopyMark, Position

MARK_COLUMNS = "source, identity, position, timers, started_at, finished_at"

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Position).decode


def mark_of(row: Sequence[Any]) -> CopyMark:
    source, identity, position, timers, started_at, finished_at = row
    return CopyMark(
        source=source,
        identity=identity,
        position=None if position is None else _decode(position),
        timers=timers,
        started_at=Instant(started_at),
        finished_at=None if finished_at is None else Instant(finished_at),
    )


def position_text(position: Position) -> str:
    return _encode(position).decode()


def new_mark(source: str, identity: str, now: Instant) -> CopyMark:
    return CopyMark(
        source=source,
        identity=identity,
        position=None,
        timers=0,
        started_at=now,
        finished_at=None,
    )


def refuse_unfinished(place: str, row: Sequence[Any] | None) -> None:
    """Refuse to use a store that holds a part of a copy. `row` has the source and the instant at
    which the copy began, if it has not ended."""
    if row is None:
        return
    source, started_at = row
    raise SchemaRefused(
        f"{place} holds an unfinished copy of {source}, begun at"
        f" {format_instant(Instant(started_at))}: run the same `duetime copy` again, which goes on"
        " where it stopped; or use another store"
    )


def refuse_other(place: str, mark: CopyMark, source: str, identity: str) -> None:
    """Refuse to go on with a copy of something else."""
    if mark.identity == identity:
        return
    state = "the beginning of a copy" if mark.finished_at is None else "a copy"
    raise CopyRefused(
        f"{place} holds {state} of {mark.source}, and {source} is another store, or was used since"
        " then: choose an empty target"
    )


def refuse_occupied(place: str, tables: Sequence[str]) -> None:
    if tables:
        raise CopyRefused(
            f"{place} is not empty: it has rows in {', '.join(tables)}. A copy needs an empty"
            " target: name another store by --to, or another schema by --to-schema"
        )
