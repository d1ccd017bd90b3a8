"""Commands of the bus in the audit log."""

from collections.abc import Sequence

from duetime.domain.errors import DuetimeError
from duetime.domain.security.access import BUS_NAME
from duetime.domain.security.audit import AuditEntry
from duetime.ports.clock import Clock
from duetime.service.bus_scheduling import Answer, Cancellation, Schedule, Scheduled
from duetime.service.security.audit_log import AuditLog, Sampling
from duetime.service.timer_service import new_uuid7

_RESULTS = {
    Scheduled.TOO_LATE: "TIMER_NOT_PENDING",
    Scheduled.UNKNOWN: "TIMER_NOT_FOUND",
}


class CommandAudit:
    """Records a sample of the commands. A command without an outcome yet comes again and is not
    recorded; neither is a rejected one, which is on a channel of its own."""

    def __init__(self, log: AuditLog, sampling: Sampling, clock: Clock) -> None:
        self._log = log
        self._sampling = sampling
        self._clock = clock

    async def record(
        self, commands: Sequence[Schedule | Cancellation], answers: Sequence[Answer]
    ) -> None:
        """Call it before the commands are acknowledged. One that comes again because that fails is
        recorded again."""
        now = self._clock.now()
        await self._log.append(
            [
                AuditEntry(
                    id=new_uuid7(),
                    at=now,
                    actor=BUS_NAME,
                    action="timer.cancel" if isinstance(command, Cancellation) else "timer.create",
                    namespace=command.namespace,
                    target=command.id,
                    result=_RESULTS.get(answer, "ok"),
                    details=answer.value,
                )
                for command, answer in zip(commands, answers, strict=True)
                if not isinstance(answer, DuetimeError)
                and answer is not Scheduled.UNDECIDED
                and self._sampling.picks()
            ]
        )
