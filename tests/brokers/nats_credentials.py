"""A NATS operator, an account, and a user with a credentials file instead of a password."""

import base64
import json
import os
from dataclasses import dataclass
from typing import Any

import nkeys  # type: ignore[import-untyped]

_UNLIMITED = -1


@dataclass(frozen=True, slots=True)
class NatsIdentity:
    """The server's configuration, and the text of the user's file."""

    configuration: str
    credentials: str


def make_identity() -> NatsIdentity:
    operator = _key(nkeys.PREFIX_BYTE_OPERATOR)
    account = _key(nkeys.PREFIX_BYTE_ACCOUNT)
    user = _key(nkeys.PREFIX_BYTE_USER)
    names = ("subs", "data", "payload", "imports", "exports", "conn", "leaf")
    limits = dict.fromkeys(names, _UNLIMITED) | {"wildcards": True}
    account_id = _name(account)
    operator_token = _token(operator, operator, {"type": "operator"})
    account_token = _token(operator, account, {"type": "account", "limits": limits})
    user_limits = dict.fromkeys(("subs", "data", "payload"), _UNLIMITED)
    user_token = _token(account, user, {"type": "user", **user_limits})
    return NatsIdentity(
        configuration=(
            f"operator: {operator_token}\nresolver: MEMORY\n"
            f"resolver_preload: {{ {account_id}: {account_token} }}\n"
        ),
        credentials=(
            f"-----BEGIN NATS USER JWT-----\n{user_token}\n------END NATS USER JWT------\n\n"
            f"-----BEGIN USER NKEY SEED-----\n{user.seed.decode()}\n"
            "------END USER NKEY SEED------\n"
        ),
    )


def _key(kind: int) -> Any:
    return nkeys.from_seed(bytearray(nkeys.encode_seed(os.urandom(32), kind)))


def _name(key: Any) -> str:
    return str(key.public_key.decode())


def _token(issuer: Any, subject: Any, claims: dict[str, Any]) -> str:
    head = _encode(json.dumps({"typ": "JWT", "alg": "ed25519-nkey"}).encode())
    body = {"jti": "test", "iat": 1_700_000_000, "iss": _name(issuer), "sub": _name(subject)}
    text = f"{head}.{_encode(json.dumps(body | {'nats': claims | {'version': 2}}).encode())}"
    return f"{text}.{_encode(issuer.sign(text.encode()))}"


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
