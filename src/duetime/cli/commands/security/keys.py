"""`duetime keys`: create, list, rotate and revoke API keys."""

from enum import StrEnum
from typing import Annotated

import typer

from duetime.cli.client.answers import IssuedKey, KeyList
from duetime.cli.client.v1 import V1Client, path_segment
from duetime.cli.commands.number_options import number, whole_number
from duetime.cli.commands.options import (
    ApiKeyOption,
    JsonOption,
    ServerOption,
    read_duration,
    read_moment,
)
from duetime.cli.output.security.key_views import print_issued_key, print_keys
from duetime.cli.output.timer_views import print_json
from duetime.cli.terminal import printable, refuse
from duetime.clock import SystemClock
from duetime.domain.defaults import DEFAULT_OVERLAP_MS
from duetime.domain.instants import format_duration, format_instant, parse_duration_ms, plus_ms
from duetime.domain.limits import MAX_BURST, MAX_CONCURRENT_REQUESTS


class RoleName(StrEnum):
    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


IdArgument = Annotated[str, typer.Argument(metavar="ID", help="Id of the key.")]

keys = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="""Create, list, rotate and revoke API keys.

    Use them with the server's own API_KEY, or with an admin key for all namespaces.

    Examples:

    * `duetime keys create billing --role read --role write --namespace billing`
    * `duetime keys list`
    * `duetime keys rotate 9c1f4b7e20d85a63 --overlap 7d`
    * `duetime keys revoke 9c1f4b7e20d85a63`
    """,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@keys.command()
def create(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name that tells people whose key it is.")
    ],
    roles: Annotated[
        list[RoleName],
        typer.Option("--role", help="read, write, or admin, which includes both; repeatable."),
    ],
    namespaces: Annotated[
        list[str],
        typer.Option(
            "--namespace",
            metavar="NAME|*",
            help="Namespace that the key is for, '*' for all; repeatable.",
        ),
    ],
    expires_in: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Refuse the key after this time.")
    ] = None,
    expires_at: Annotated[
        str | None, typer.Option(metavar="INSTANT", help="Refuse the key from this instant on.")
    ] = None,
    rate: Annotated[
        float | None,
        number(0, help="Requests per second, on each node [KEY_RATE_LIMIT of the server]."),
    ] = None,
    burst: Annotated[
        int | None,
        whole_number(1, MAX_BURST, help="Requests at once after a pause [those of one second]."),
    ] = None,
    max_concurrent: Annotated[
        int | None,
        whole_number(
            1,
            MAX_CONCURRENT_REQUESTS,
            help="Requests under way at once, on each node [KEY_MAX_CONCURRENT of the server].",
        ),
    ] = None,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a key, and show it. It is never shown again.

    All other namespaces do not exist for the key. Its own need not exist yet.

    Examples:

    * `duetime keys create billing --role read --role write --namespace billing`
    * `duetime keys create dashboard --role read --namespace '*' --expires-in 90d`
    * `duetime keys create importer --role write --namespace a --namespace b --rate 50`
    """
    body: dict[str, object] = {
        "name": name,
        "roles": [role.value for role in roles],
        "namespaces": namespaces,
    }
    if expires_in is not None and expires_at is not None:
        refuse("--expires-in / --expires-at", "give one of them, not both")
    if expires_in is not None:
        duration_ms = parse_duration_ms(read_duration("--expires-in", expires_in))
        body["expiresAt"] = format_instant(plus_ms(SystemClock().now(), duration_ms))
    if expires_at is not None:
        body["expiresAt"] = read_moment("--expires-at", expires_at)
    if rate is not None:
        body["rateLimit"] = {"perSecond": rate} | ({} if burst is None else {"burst": burst})
    elif burst is not None:
        refuse("--burst", "needs --rate")
    if max_concurrent is not None:
        body["maxConcurrent"] = max_concurrent
    client = V1Client(server, api_key)
    _print_issued(client, client.request("POST", "/keys", body=body), as_json)


@keys.command("list")
def list_keys(
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the keys, without their texts. Expired ones are listed for about 30 days."""
    client = V1Client(server, api_key)
    data = client.request("GET", "/keys")
    if as_json:
        print_json(data)
    else:
        print_keys(client.read_as(KeyList, data).keys)


@keys.command()
def rotate(
    id: IdArgument,
    overlap: Annotated[
        str,
        typer.Option(
            metavar="DURATION", help="Time for which the old key works on; 0s ends it at once."
        ),
    ] = format_duration(DEFAULT_OVERLAP_MS),
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a key with the same settings, show it, and let the old one expire."""
    body = {"overlap": read_duration("--overlap", overlap)}
    client = V1Client(server, api_key)
    _print_issued(client, client.request("POST", f"{_path(id)}/rotate", body=body), as_json)
    if not as_json:
        ends = "has ended" if parse_duration_ms(overlap) == 0 else f"works on for {overlap}"
        print(f"The old key {printable(id)} {ends}.")


@keys.command()
def revoke(
    id: IdArgument,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
) -> None:
    """Refuse a key from now on, on every node within 5 seconds. It cannot be restored."""
    V1Client(server, api_key).request("DELETE", _path(id))
    print(f"Key {printable(id)} revoked.")


def _path(id: str) -> str:
    return f"/keys/{path_segment('ID', id)}"


def _print_issued(client: V1Client, data: object, as_json: bool) -> None:
    if as_json:
        print_json(data)
    else:
        print_issued_key(client.read_as(IssuedKey, data))
