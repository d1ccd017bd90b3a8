"""The parts of the audit log in a service process."""

from duetime.bus.command_audit import CommandAudit
from duetime.engine.audit_pruner import AuditPruner
from duetime.ports.clock import Clock
from duetime.ports.security import SecurityStore
from duetime.ports.store import TimerStore
from duetime.service.security.audit_log import AuditLog, Sampling
from duetime.settings import Settings


class AuditParts:
    """Without `creates` neither creates nor commands of the bus are recorded."""

    def __init__(
        self, settings: Settings, store: TimerStore, security: SecurityStore, clock: Clock
    ) -> None:
        self.log = AuditLog(security, clock)
        self.creates: Sampling | None = None
        self.commands: CommandAudit | None = None
        self._pruner: AuditPruner | None = None
        if settings.audit_creates:
            self.creates = Sampling(settings.audit_creates)
            self.commands = CommandAudit(self.log, Sampling(settings.audit_creates), clock)
        if settings.audit_retention_days:
            retention_seconds = settings.audit_retention_days * 86_400
            self._pruner = AuditPruner(store, security, clock, retention_seconds)

    def start(self) -> None:
        if self._pruner is not None:
            self._pruner.start()

    async def stop(self) -> None:
        """Call it when no request is under way any more, and before the store is closed."""
        if self._pruner is not None:
            await self._pruner.abandon()
        await self.log.close()
