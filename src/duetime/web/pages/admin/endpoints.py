"""The pages for those who run the service, put together."""

from duetime.api.app import Services
from duetime.service.reporting.reports import Reports
from duetime.web.endpoint import WebEndpoint
from duetime.web.pages.admin.audit import AuditPage
from duetime.web.pages.admin.keys import KeysPage
from duetime.web.pages.admin.namespace_deletion import NamespaceDeletionPage
from duetime.web.pages.admin.namespaces import NamespacesPage
from duetime.web.pages.admin.secrets import SecretsPage


def admin_endpoints(services: Services, reports: Reports) -> tuple[WebEndpoint, ...]:
    return (
        *NamespacesPage(services, reports).endpoints(),
        *NamespaceDeletionPage(services).endpoints(),
        *KeysPage(services).endpoints(),
        *SecretsPage(services).endpoints(),
        *AuditPage(services).endpoints(),
    )
