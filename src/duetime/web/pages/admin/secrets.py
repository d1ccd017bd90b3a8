"""The pages of the secrets that sign callbacks."""

from functools import partial
from secrets import token_hex
from urllib.parse import quote

from msgspec import UNSET, Struct

from duetime.api.app import Services
from duetime.api.http.auditing import given_members
from duetime.api.v1.security.secret_types import NewSecretBody
from duetime.domain.errors import InvalidInput, TooManySecrets
from duetime.domain.instants import format_duration
from duetime.domain.limits import MAX_SECRETS
from duetime.domain.security.access import Role
from duetime.domain.security.credentials import SecretKind
from duetime.domain.security.secret_text import format_public_key
from duetime.service.security.webhook_secrets import ListedSecret
from duetime.web.endpoint import WebEndpoint, action, page
from duetime.web.forms.due import read_duration_ms
from duetime.web.forms.once import SentForms
from duetime.web.pages.namespace_names import FirstNames, names_to_choose
from duetime.web.rendering.view import Redirect, View
from duetime.web.request import Fields, Request

PATH = "/ui/secrets"
_ONE = "/ui/secrets/{namespace}"

SHOWN = 200
"""Namespaces on the list."""

_CREATED_BEFORE = (
    "This secret was created before, and no second one was made. Its text was shown once: if "
    "nobody has it, revoke the secret and create another."
)

DEFAULT_OVERLAP = "24h"


class SigningNamespace(Struct, frozen=True):
    name: str
    path: str
    secrets: int


class ShownSecret(Struct, frozen=True):
    secret: ListedSecret
    public_key: str | None
    """As receivers write it."""


class SecretsPage:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._secrets = services.webhook_secrets
        self._forms = SentForms()

    def endpoints(self) -> tuple[WebEndpoint, ...]:
        change = partial(action, role=Role.ADMIN)
        return (
            page("uiSecrets", PATH, self.show_all, role=Role.ADMIN),
            page("uiSecretsOfNamespace", _ONE, self.show, role=Role.ADMIN),
            change("uiCreateSecret", _ONE, self.create, audit="secret.create"),
            change(
                "uiRevokeSecret", f"{_ONE}/{{secret_id}}/revoke", self.revoke, audit="secret.revoke"
            ),
        )

    async def show_all(self, request: Request) -> View | Redirect:
        asked_for = request.query.get("namespace")
        if asked_for is not None:
            return Redirect(path_of(asked_for))
        first = FirstNames(SHOWN)

        def look_at(name: str) -> None:
            if request.access.sees(name) and self._secrets.count(name):
                first.add(name)

        # There may be very many.
        await self._services.v1.turns.map(look_at, await self._secrets.namespaces())
        return View(
            template="pages/admin/secrets.html",
            title="Secrets",
            values={
                "namespaces": [
                    SigningNamespace(name, path_of(name), self._secrets.count(name))
                    for name in first.names
                ],
                "found": first.found,
                "names": names_to_choose(self._services.namespaces, request.access),
            },
        )

    async def show(self, request: Request) -> View:
        return await self._view(request, request.caller.reach(request.part("namespace")))

    async def create(self, request: Request) -> View | Redirect:
        caller = request.caller
        namespace = caller.reach(request.part("namespace"))
        with self._forms.sent(request) as form:
            if form.is_repeat:
                caller.note({"repeat": True})
                return Redirect(path_of(namespace), _CREATED_BEFORE)
            try:
                kind, overlap_ms = _new_secret(request.form)
                body = NewSecretBody(
                    type=UNSET if kind is None else kind.value,
                    expire_others_after=(
                        UNSET if overlap_ms is None else format_duration(overlap_ms)
                    ),
                )
                caller.note(given_members(body, "type", "expireOthersAfter"))
                new = await self._secrets.create(namespace, kind, overlap_ms)
            except (InvalidInput, TooManySecrets) as error:
                return await self._view(request, namespace, error)
            form.made = new.listed.id
        caller.reach(namespace, new.listed.id)
        return View(
            template="pages/admin/issued_secret.html",
            title="New secret",
            values={
                "namespace": namespace,
                "path": path_of(namespace),
                "shown": _shown(new.listed),
                "text": new.text,
                "overlap_ms": overlap_ms,
            },
        )

    async def revoke(self, request: Request) -> Redirect:
        id = request.part("secret_id")
        namespace = request.caller.reach(request.part("namespace"), id)
        await self._secrets.revoke(namespace, id)
        return Redirect(path_of(namespace), "The secret signs no more.")

    async def _view(
        self,
        request: Request,
        namespace: str,
        error: InvalidInput | TooManySecrets | None = None,
    ) -> View:
        form = request.form
        current = await self._secrets.current(namespace)
        return View(
            template="pages/admin/namespace_secrets.html",
            title=f"Secrets of {namespace}",
            values={
                "namespace": namespace,
                "path": path_of(namespace),
                "secrets": [_shown(each) for each in current],
                "most": MAX_SECRETS,
                "once": token_hex(16),
                # As the others are, like the API.
                "type": form.get("type") or (current[-1].kind if current else SecretKind.HMAC),
                "is_rotation": form.get("others") == "expire",
                "overlap": form.text("expire_others_after") or DEFAULT_OVERLAP,
                "error": error if isinstance(error, InvalidInput) else None,
                "problem": error.message if isinstance(error, TooManySecrets) else None,
            },
            refusal=error,
        )


def path_of(namespace: str) -> str:
    return f"{PATH}/{quote(namespace, safe='')}"


def _new_secret(form: Fields) -> tuple[SecretKind | None, int | None]:
    """The kind, and the time for which the others sign on. Raises `InvalidInput`."""
    name = form.get("type")
    if name is not None and name not in list(SecretKind):
        raise InvalidInput("type", "must be 'hmac' or 'ed25519'")
    overlap_ms = None
    if form.get("others") == "expire":
        field = "expire_others_after"
        overlap_ms = read_duration_ms(field, form.needed(field))
    return None if name is None else SecretKind(name), overlap_ms


def _shown(secret: ListedSecret) -> ShownSecret:
    key = secret.public_key
    return ShownSecret(secret, None if key is None else format_public_key(key))
