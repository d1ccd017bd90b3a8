"""`duetime secrets`: create, list, rotate and revoke the secrets that sign callbacks."""

from enum import StrEnum
from typing import Annotated

import typer

from duetime.cli.client.answers import NewSecret, SecretList
from duetime.cli.client.v1 import V1Client, path_segment
from duetime.cli.commands.options import ApiKeyOption, JsonOption, ServerOption, read_duration
from duetime.cli.output.security.secret_views import (
    print_new_secret,
    print_replaced_secrets,
    print_secrets,
)
from duetime.cli.output.timer_views import print_json
from duetime.cli.terminal import printable
from duetime.domain.defaults import DEFAULT_SECRET_OVERLAP_MS
from duetime.domain.instants import format_duration


class SecretType(StrEnum):
    HMAC = "hmac"
    ED25519 = "ed25519"


NamespaceArgument = Annotated[
    str, typer.Argument(metavar="NAMESPACE", help="Namespace whose callbacks are signed.")
]
TypeOption = Annotated[
    SecretType | None,
    typer.Option(
        "--type",
        help="hmac: receivers verify with the secret. ed25519: they verify with a public key. "
        "[the type of the other secrets, else hmac]",
    ),
]

secrets = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="""Create, list, rotate and revoke the secrets that sign callbacks.

    Every current secret of a namespace signs each of its callbacks, as Standard Webhooks
    specifies. Without a secret callbacks are not signed.

    Examples:

    * `duetime secrets create notifications`
    * `duetime secrets rotate notifications --overlap 1h`
    """,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@secrets.command()
def create(
    namespace: NamespaceArgument,
    kind: TypeOption = None,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a secret that signs besides the others, and show it. It is never shown again."""
    client = V1Client(server, api_key)
    data = client.request("POST", _path(namespace), body=_body(kind))
    if as_json:
        print_json(data)
    else:
        print_new_secret(client.read_as(NewSecret, data))


@secrets.command("list")
def list_secrets(
    namespace: NamespaceArgument,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the secrets that sign the callbacks of a namespace, without their texts."""
    client = V1Client(server, api_key)
    data = client.request("GET", _path(namespace))
    if as_json:
        print_json(data)
    else:
        print_secrets(client.read_as(SecretList, data).secrets)


@secrets.command()
def rotate(
    namespace: NamespaceArgument,
    overlap: Annotated[
        str,
        typer.Option(
            metavar="DURATION",
            help="Time for which the others of the same type go on signing; 0s ends them at once.",
        ),
    ] = format_duration(DEFAULT_SECRET_OVERLAP_MS),
    kind: TypeOption = None,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a secret, show it, and let the others of its type expire.

    Until they expire old and new secrets sign each callback. Give the receiver the new secret in
    that time.
    """
    body = _body(kind) | {"expireOthersAfter": read_duration("--overlap", overlap)}
    client = V1Client(server, api_key)
    with client.kept_open():
        data = client.request("POST", _path(namespace), body=body)
        if as_json:
            print_json(data)
            return
        new = client.read_as(NewSecret, data)
        # Shown before anything else can fail: there is no second chance.
        print_new_secret(new)
        current = client.read_as(SecretList, client.request("GET", _path(namespace))).secrets
    print_replaced_secrets(
        [each for each in current if each.type == new.type and each.id != new.id]
    )


@secrets.command()
def revoke(
    namespace: NamespaceArgument,
    id: Annotated[str, typer.Argument(metavar="ID", help="Id of the secret.")],
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
) -> None:
    """Let a secret sign no more, at once."""
    path = f"{_path(namespace)}/{path_segment('ID', id)}"
    V1Client(server, api_key).request("DELETE", path)
    print(f"Secret {printable(id)} revoked.")


def _path(namespace: str) -> str:
    return f"/namespaces/{path_segment('NAMESPACE', namespace)}/secrets"


def _body(kind: SecretType | None) -> dict[str, object]:
    return {} if kind is None else {"type": kind.value}
