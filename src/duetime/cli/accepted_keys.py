"""Timers that somebody was told are accepted, and whether they are there."""

from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from duetime.cli.output.terminal import refuse
from duetime.domain.keys import TimerKey
from duetime.domain.namespace import DEFAULT_NAMESPACE
from duetime.ports.inspection import StoreInspector

_BATCH_SIZE = 1_000


@dataclass(slots=True)
class AcceptedCheck:
    keys: int = 0
    missing: list[TimerKey] = field(default_factory=list)
    in_several_states: list[TimerKey] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        return not self.missing and not self.in_several_states


def read_keys(path: Path) -> list[TimerKey]:
    """One key per line: an id of the default namespace, or a namespace, a tab and an id."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        refuse("--accepted", f"{path}: {error.strerror}")
    except UnicodeDecodeError:
        refuse("--accepted", f"{path} is not UTF-8")
    return [_key(line) for line in lines if line.strip()]


async def check_accepted(inspector: StoreInspector, keys: list[TimerKey]) -> AcceptedCheck:
    check = AcceptedCheck(len(keys))
    rest = iter(keys)
    while batch := list(islice(rest, _BATCH_SIZE)):
        for key, states in zip(batch, await inspector.states(batch), strict=True):
            if not states:
                check.missing.append(key)
            elif len(states) > 1:
                check.in_several_states.append(key)
    return check


def _key(line: str) -> TimerKey:
    namespace, tab, id = line.partition("\t")
    return TimerKey(namespace, id) if tab else TimerKey(DEFAULT_NAMESPACE, line.strip())
