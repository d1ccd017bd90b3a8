"""The operation of the v1 API on the audit log."""

from duetime.api.http.operation import Operation, Tag
from duetime.api.v1.routes import examples
from duetime.api.v1.routes import responses as failures
from duetime.api.v1.routes.responses import ok, with_failures
from duetime.api.v1.security.audit_log import AUDIT_LOG_PARAMETERS, AuditLogPage, AuditLogV1
from duetime.domain.security.access import Role

AUDIT_LOG = Tag("Audit log v1", "Who did what to which timer, when and from where.")

_ENTRY = {
    "id": "01977f3e-7a10-7cc3-8a2b-6f0d3b8d9c13",
    "at": examples.EXECUTE_AT,
    "actor": "billing",
    "keyId": "k7f3a",
    "address": "203.0.113.7",
    "action": "timer.cancel",
    "namespace": examples.NAMESPACE,
    "target": examples.TIMER_ID,
    "result": "ok",
    "details": None,
}

AUDIT_LOG_OPERATIONS: tuple[Operation[AuditLogV1], ...] = (
    Operation(
        id="listAuditLogV1",
        method="GET",
        role=Role.ADMIN,
        path="/api/v1/audit-log",
        handler=AuditLogV1.page,
        tag=AUDIT_LOG,
        summary="List the entries of the audit log",
        description="Newest first. There is an entry for each request that changes something, also "
        "for those that were refused; for creates only if `AUDIT_CREATES` says so. A key for some "
        "namespaces sees the entries about these only. Every page but the last has a `nextCursor`: "
        "repeat the request with it to get the next page. `limit` may change from page to page, "
        "the other parameters may not.",
        parameters=AUDIT_LOG_PARAMETERS,
        responses=with_failures(
            ok(
                "A page of entries.",
                AuditLogPage,
                {"The last page": {"entries": [_ENTRY], "nextCursor": None}},
            ),
            failures.INVALID_LIMIT,
        ),
    ),
)
