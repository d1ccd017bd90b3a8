"""`duetime cancel`: a timer that shall not fire."""

from duetime.cli.client.single_timer import SingleTimer
from duetime.cli.options import (
    ApiKeyOption,
    IdArgument,
    JsonOption,
    NamespaceOption,
    ServerOption,
)
from duetime.cli.output.views import show_timer


def cancel(
    id: IdArgument,
    namespace: NamespaceOption = None,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Cancel a pending timer. Once this succeeds it will never fire.

    One that is canceled by its namespace, or by an id that is no UUID, is forgotten at once.
    """
    timer = SingleTimer(id, namespace, server=server, api_key=api_key)
    show_timer("Timer canceled.", timer.request("DELETE"), as_json=as_json)
