"""`duetime explain`: why a timer fired when it did, or why it has not yet."""

from duetime.cli.client.answers import NamespaceList
from duetime.cli.client.v1 import V1Client, path_segment, refusal
from duetime.cli.commands.options import (
    ApiKeyOption,
    IdArgument,
    JsonOption,
    NamespaceOption,
    ServerOption,
)
from duetime.cli.output.lateness.explanation_view import Explanation, print_explanation
from duetime.cli.output.timer_views import print_json
from duetime.cli.terminal import ExitCode, fail, printable
from duetime.domain.namespace import DEFAULT_NAMESPACE


def explain(
    id: IdArgument,
    namespace: NamespaceOption = None,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Explain why a timer fired when it did, or why it has not yet.

    Every millisecond between the instant that was asked for and the last attempt has a cause:
    the timer was created late, waited for its node, its endpoint or its namespace's limit, or was
    planned for later by its retry policy. The last line says what to do.

    A timer that waits at this moment is explained best by the node that owns its shard. Another
    node says which one that is.
    """
    client = V1Client(server, api_key)
    with client.kept_open():
        name = namespace or _home(client)
        segments = path_segment("--namespace", name), path_segment("ID", id)
        answer, document = client.exchange("GET", "/explain/{}/{}".format(*segments))
    if answer.status_code == 404:
        reason = refusal(document, has_issued_key=client.has_issued_key)
        place = printable(f"{id!r} in namespace {name!r} at {client.url}")
        fail(f"{reason}: {place}", ExitCode.FAILED)
    data = client.data_of(answer, document)
    if as_json:
        print_json(data)
    else:
        print_explanation(client.read_as(Explanation, data))


def _home(client: V1Client) -> str:
    """The namespace of the platform API's timers: the only one of the key, or the default."""
    if not client.has_issued_key:
        return DEFAULT_NAMESPACE
    seen = client.read_as(NamespaceList, client.request("GET", "/namespaces")).namespaces
    return seen[0].name if len(seen) == 1 else DEFAULT_NAMESPACE
