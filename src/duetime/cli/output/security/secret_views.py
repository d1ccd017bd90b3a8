"""Secrets as tables and fields for a person."""

from collections.abc import Sequence

from msgspec import UNSET
from rich.text import Text

from duetime.cli.client.answers import NewSecret, Secret
from duetime.cli.output.columns import Column, Cut
from duetime.cli.output.layout import print_fields, print_table
from duetime.cli.terminal import console, printable
from duetime.clock import SystemClock
from duetime.domain.wording import relative_text

_COLUMNS = (
    # `revoke` needs the whole id.
    *("id", "type"),
    *(Column("created", extra=1), "expires"),
    Column("public key", Cut.MIDDLE, least=16, enough=24, extra=2, hidden_if_empty=True),
)


def print_secrets(secrets: Sequence[Secret]) -> None:
    if not secrets:
        print("no secrets: callbacks of this namespace are not signed")
        return
    now = SystemClock().now()
    print_table(
        _COLUMNS,
        [
            [
                Text(printable(each.id)),
                Text(printable(each.type)),
                Text("-" if each.created_at is None else relative_text(each.created_at, now)),
                _expiry(each),
                Text("-" if each.public_key is UNSET else printable(each.public_key)),
            ]
            for each in secrets
        ],
    )


def print_new_secret(new: NewSecret) -> None:
    """The secret, which cannot be shown again."""
    verifying = "secret" if new.public_key is UNSET else "public key"
    console().print(f"Secret created. It is shown only now. Receivers verify with the {verifying}.")
    fields = [
        ("secret", Text(printable(new.secret), style="bold")),
        ("id", Text(printable(new.id))),
        ("type", Text(printable(new.type))),
    ]
    if new.public_key is not UNSET:
        fields.append(("public key", Text(printable(new.public_key))))
    print_fields(fields)


def print_replaced_secrets(secrets: Sequence[Secret]) -> None:
    """How long the other secrets sign after a rotation."""
    for each in secrets:
        if each.created_at is None:
            line = f"{printable(each.id)} goes on signing: WEBHOOK_SECRETS has it."
        else:
            line = f"{printable(each.id)} signs until {printable(each.expires_at or 'revoked')}."
        console().print(line, soft_wrap=True)


def _expiry(secret: Secret) -> Text:
    if secret.expires_at is None:
        return Text("configured" if secret.created_at is None else "never")
    return Text(printable(secret.expires_at), style="yellow")
