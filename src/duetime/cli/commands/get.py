"""`duetime get`: everything about one timer."""

from duetime.cli.client.single_timer import SingleTimer
from duetime.cli.options import (
    ApiKeyOption,
    IdArgument,
    JsonOption,
    NamespaceOption,
    ServerOption,
)
from duetime.cli.output.views import show_timer


def get(
    id: IdArgument,
    namespace: NamespaceOption = None,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one timer with its callback, status, last error and latest attempts."""
    timer = SingleTimer(id, namespace, server=server, api_key=api_key)
    show_timer("", timer.request("GET"), as_json=as_json)
