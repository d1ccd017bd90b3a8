"""The pages of API keys: the list, each of them, and the form for a new one."""

from functools import partial
from secrets import token_hex

from msgspec import UNSET, Struct

from duetime.api.app import Services
from duetime.api.v1.security.key_types import RateLimitBody
from duetime.api.v1.security.keys import key_details, rate_limit_of
from duetime.domain.defaults import DEFAULT_OVERLAP_MS
from duetime.domain.errors import InvalidInput, KeyNotFound, TooManyKeys
from duetime.domain.instants import Instant, due_instant, format_duration
from duetime.domain.security.access import Role
from duetime.domain.security.credentials import ApiKey, RateLimit
from duetime.service.security.keys import ALL_NAMESPACES, IssuedKey, ListedKey, NewKey
from duetime.web.endpoint import WebEndpoint, action, page
from duetime.web.forms.due import read_due, read_duration_ms
from duetime.web.forms.numbers import read_number, read_whole_number
from duetime.web.forms.once import SentForms
from duetime.web.rendering.view import Redirect, View
from duetime.web.request import Fields, Request

PATH = "/ui/keys"
NEW = "/ui/keys/new"
_ONE = "/ui/keys/{key_id}"

_CREATED_BEFORE = (
    "This key was created before, and no second one was made. Its text was shown once: if nobody "
    "has it, rotate or revoke the key."
)

SHOWN = 200
"""Keys on the list, the newest ones that match."""


class ShownKey(Struct, frozen=True, kw_only=True):
    """A key with its state in a word, and the class of that word's colour."""

    key: ApiKey
    last_used_at: Instant | None
    state: str
    kind: str
    is_yours: bool

    @property
    def is_active(self) -> bool:
        return self.kind != ""


class KeysPage:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._keys = services.keys
        self._forms = SentForms()

    def endpoints(self) -> tuple[WebEndpoint, ...]:
        read = partial(page, role=Role.ADMIN, for_all_namespaces=True)
        change = partial(action, role=Role.ADMIN, for_all_namespaces=True)
        return (
            read("uiKeys", PATH, self.show_all),
            read("uiNewKey", NEW, self.ask),
            change("uiCreateKey", PATH, self.create, audit="key.create"),
            read("uiKey", _ONE, self.show),
            change("uiRotateKey", f"{_ONE}/rotate", self.rotate, audit="key.rotate"),
            change("uiRevokeKey", f"{_ONE}/revoke", self.revoke, audit="key.revoke"),
        )

    async def show_all(self, request: Request) -> View:
        words = request.query.get("q") or ""
        every = await self._keys.all()
        wanted = words.casefold()
        # There may be thousands.
        names = await self._services.v1.turns.map(lambda each: each.key.name.casefold(), every)
        found = zip(reversed(every), reversed(names), strict=True)
        matching = [each for each, name in found if wanted in name]
        return View(
            template="pages/admin/keys.html",
            title="Keys",
            values={
                "keys": [_shown(each, request) for each in matching[:SHOWN]],
                "found": len(matching),
                "words": words,
                "is_large": len(every) > SHOWN // 10,
                "are_checked": self._services.sessions.are_needed,
            },
        )

    async def ask(self, request: Request) -> View:
        return _new_view(request)

    async def create(self, request: Request) -> View | Redirect:
        with self._forms.sent(request) as form:
            if form.is_repeat:
                request.caller.note({"repeat": True})
                return Redirect(f"{PATH}/{form.made}" if form.made else PATH, _CREATED_BEFORE)
            try:
                new = _new_key(request.form, request.now)
                roles = [role.value for role in new.roles]
                request.caller.note(key_details(roles, new.namespaces))
                issued = await self._keys.create(new)
            except (InvalidInput, TooManyKeys) as error:
                return _new_view(request, error)
            request.caller.target = form.made = issued.key.id
            return _issued_view(issued, "created")

    async def show(self, request: Request) -> View:
        return _key_view(request, await self._existing(request))

    async def rotate(self, request: Request) -> View:
        listed = await self._existing(request)
        try:
            overlap_ms = read_duration_ms("overlap", request.form.needed("overlap"))
            issued = await self._keys.rotate(listed.key.id, overlap_ms)
        except InvalidInput as error:
            return _key_view(request, listed, error)
        return _issued_view(issued, "rotated", old=(await self._found(listed.key.id)).key)

    async def revoke(self, request: Request) -> Redirect:
        id = request.caller.target = request.part("key_id")
        key = await self._keys.revoke(id)
        return Redirect(PATH, f"The key “{key.name}” was revoked, and its sessions have ended.")

    async def _existing(self, request: Request) -> ListedKey:
        id = request.caller.target = request.part("key_id")
        return await self._found(id)

    async def _found(self, id: str) -> ListedKey:
        """Raises `KeyNotFound`."""
        found = next((each for each in await self._keys.all() if each.key.id == id), None)
        if found is None:
            raise KeyNotFound
        return found


def _new_key(form: Fields, now: Instant) -> NewKey:
    """Raises `InvalidInput`. The service checks the values."""
    expires, concurrent = form.get("expires_at"), form.get("max_concurrent")
    expires_at = None
    if expires is not None:
        expires_at = due_instant(read_due("expires_at", expires, now, form.get("zone")), now)
    names = [line for line in form.text("namespaces").splitlines() if line.strip()]
    return NewKey(
        name=form.text("name").strip(),
        roles=[role for role in Role if role.value in form.all("roles")],
        namespaces=[ALL_NAMESPACES] if form.get("everywhere") == "yes" else names,
        expires_at=expires_at,
        rate_limit=_rate_limit(form),
        max_concurrent=(
            None if concurrent is None else read_whole_number("max_concurrent", concurrent)
        ),
    )


def _rate_limit(form: Fields) -> RateLimit | None:
    per_second, burst = form.get("rate_limit.per_second"), form.get("rate_limit.burst")
    if per_second is None:
        if burst is not None:
            raise InvalidInput("rate_limit.per_second", "is needed together with the burst")
        return None
    return rate_limit_of(
        RateLimitBody(
            read_number("rate_limit.per_second", per_second),
            UNSET if burst is None else read_whole_number("rate_limit.burst", burst),
        )
    )


def _shown(listed: ListedKey, request: Request) -> ShownKey:
    key = listed.key
    state, kind = "active", "ok"
    if key.expires_at is not None and key.expires_at <= request.now:
        state, kind = "expired", ""
    elif key.replaced_by is not None:
        state, kind = "replaced", "warn"
    return ShownKey(
        key=key,
        last_used_at=listed.last_used_at,
        state=state,
        kind=kind,
        is_yours=key.id == request.access.key_id,
    )


def _key_view(request: Request, listed: ListedKey, error: InvalidInput | None = None) -> View:
    return View(
        template="pages/admin/key.html",
        title=listed.key.name,
        values={
            "shown": _shown(listed, request),
            "overlap": request.form.get("overlap") or format_duration(DEFAULT_OVERLAP_MS),
            "error": error,
        },
        refusal=error,
    )


def _new_view(request: Request, error: InvalidInput | TooManyKeys | None = None) -> View:
    form = request.form
    is_sent = form.has("name")
    return View(
        template="pages/admin/new_key.html",
        title="New key",
        values={
            "form": form,
            "once": token_hex(16),
            "roles": form.all("roles") if is_sent else [Role.READ.value, Role.WRITE.value],
            "is_everywhere": form.get("everywhere") == "yes" if is_sent else True,
            "error": error if isinstance(error, InvalidInput) else None,
            "problem": error.message if isinstance(error, TooManyKeys) else None,
        },
        refusal=error,
    )


def _issued_view(issued: IssuedKey, verb: str, old: ApiKey | None = None) -> View:
    """The one page that ever shows the text of the key."""
    return View(
        template="pages/admin/issued_key.html",
        title="New key",
        values={"key": issued.key, "text": issued.text, "verb": verb, "old": old},
    )
