"""All operations of the v1 API."""

from typing import Any

from duetime.api.http.operation import OperationGroup
from duetime.api.v1.bulk_operations import OperationsV1
from duetime.api.v1.endpoints.endpoints import EndpointsV1
from duetime.api.v1.explaining.explaining import ExplainingV1
from duetime.api.v1.namespaces import NamespacesV1
from duetime.api.v1.problems import ProblemsV1
from duetime.api.v1.routes.audit_log import AUDIT_LOG_OPERATIONS
from duetime.api.v1.routes.bulk_operations import BULK_OPERATIONS
from duetime.api.v1.routes.copies import COPY_OPERATIONS
from duetime.api.v1.routes.endpoints import ENDPOINT_OPERATIONS
from duetime.api.v1.routes.explaining import EXPLAIN_OPERATIONS
from duetime.api.v1.routes.keys import KEY_OPERATIONS
from duetime.api.v1.routes.namespaces import NAMESPACE_OPERATIONS
from duetime.api.v1.routes.problems import PROBLEM_OPERATIONS
from duetime.api.v1.routes.secrets import SECRET_OPERATIONS
from duetime.api.v1.routes.timers import TIMER_OPERATIONS
from duetime.api.v1.routes.ui_links import UI_LINK_OPERATIONS
from duetime.api.v1.security.audit_log import AuditLogV1
from duetime.api.v1.security.keys import KeysV1
from duetime.api.v1.security.secrets import SecretsV1
from duetime.api.v1.security.ui_links import UiLinksV1
from duetime.api.v1.timers import TimersV1

V1: tuple[OperationGroup[Any], ...] = (
    OperationGroup(TimersV1, TIMER_OPERATIONS + COPY_OPERATIONS),
    OperationGroup(ExplainingV1, EXPLAIN_OPERATIONS),
    OperationGroup(OperationsV1, BULK_OPERATIONS),
    OperationGroup(NamespacesV1, NAMESPACE_OPERATIONS),
    OperationGroup(SecretsV1, SECRET_OPERATIONS),
    OperationGroup(EndpointsV1, ENDPOINT_OPERATIONS),
    OperationGroup(ProblemsV1, PROBLEM_OPERATIONS),
    OperationGroup(AuditLogV1, AUDIT_LOG_OPERATIONS),
    OperationGroup(KeysV1, KEY_OPERATIONS),
    OperationGroup(UiLinksV1, UI_LINK_OPERATIONS),
)
