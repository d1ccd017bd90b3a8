"""`duetime explain`: why a timer fired when it did, or why it has not yet."""

from duetime.cli.client.answers import NamespaceList
from duetime.cli.client.platform import NoAnswer
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

MAX_REPEATS = 15
"""Further requests until the owner answers, if nodes share an address. The system gives each
connection to any of them: with four workers, one command in a hundred misses the owner."""


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
    node says which one that is. If both share an address, as workers do, the command asks there
    again until the owner answers, a few times at most.

    The page how-to/explain-a-timer of the documentation has a section about each cause.
    """
    client = V1Client(server, api_key)
    with client.kept_open():
        name = namespace or _home(client)
        segments = path_segment("--namespace", name), path_segment("ID", id)
        path = "/explain/{}/{}".format(*segments)
        answer, document = client.exchange("GET", path)
    if answer.status_code == 404:
        reason = refusal(document, has_issued_key=client.has_issued_key)
        place = printable(f"{id!r} in namespace {name!r} at {client.url}")
        fail(f"{reason}: {place}", ExitCode.FAILED)
    data = _of_owner(client, path, client.data_of(answer, document))
    if as_json:
        print_json(data)
    else:
        print_explanation(client.read_as(Explanation, data))


def _of_owner(client: V1Client, path: str, data: object) -> object:
    """The answer of the node that owns the timer's shard, if it shares the address of the node
    that gave the answer `data`; else the last answer."""
    for _ in range(MAX_REPEATS):
        if not client.read_as(Explanation, data).owner_shares_address:
            break
        try:
            data = client.poll(path, {})
        except NoAnswer:
            break
    return data


def _home(client: V1Client) -> str:
    """The namespace of the platform API's timers: the only one of the key, or the default."""
    if not client.has_issued_key:
        return DEFAULT_NAMESPACE
    seen = client.read_as(NamespaceList, client.request("GET", "/namespaces")).namespaces
    return seen[0].name if len(seen) == 1 else DEFAULT_NAMESPACE
