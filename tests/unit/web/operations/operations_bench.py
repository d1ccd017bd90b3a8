"""The pages of operations in front of a service on a memory store."""

import re
from html import unescape

from duetime.service.bulk.chosen import ChosenTimers
from duetime.service.bulk.operations import BulkOperations
from duetime.service.redriving import Redriving
from duetime.web.pages.operations.new_operation import NewOperationPage
from duetime.web.pages.operations.operations_page import OperationsPage
from tests.unit.api.asgi_client import Reply
from tests.unit.service.service_bench import EVERY_SHARD
from tests.unit.web.page_bench import PageBench, text_of

NEW = "/ui/operations/new"
OPERATIONS = "/ui/operations"
_HIDDEN = re.compile(r'<input type="hidden" name="([^"]*)" value="([^"]*)">')


class OperationsBench(PageBench):
    async def open(self) -> "OperationsBench":
        await super().open()
        redriving = Redriving(self.store, self.clock, self.wakeups, self.namespaces)
        operations = BulkOperations(
            self.store,
            self.store,
            self.clock,
            self.namespaces,
            EVERY_SHARD,
            self.bulk_runner.wake,
        )
        chosen = ChosenTimers(
            self.store, self.clock, self.wakeups, self.namespaces, self.service, redriving
        )
        new = NewOperationPage(operations, chosen, self.namespaces, self.app.auditing)
        self.serve(*new.endpoints(), *OperationsPage(operations).endpoints())
        return self


def question_of(reply: Reply) -> list[tuple[str, str]]:
    """The hidden fields of the form that starts the operation."""
    assert reply.status == 200, reply.content
    _, begin, form = reply.content.decode().partition(f'method="post" action="{OPERATIONS}"')
    assert begin, text_of(reply)
    pairs = _HIDDEN.findall(form.partition("</form>")[0])
    return [(name, unescape(value)) for name, value in pairs if name != "csrf"]
