"""The pages of namespaces: the list, each of them, and the form for a new one."""

from bisect import insort
from collections.abc import Sequence

from duetime.api.app import Services
from duetime.api.http.auditing import given_members
from duetime.api.v1.namespaces import changed_options
from duetime.api.v1.request_types import NamespaceBody
from duetime.domain.errors import InvalidInput, NoSuchNamespace
from duetime.domain.namespace import DEFAULT_SHARDS, Namespace
from duetime.domain.retry import RetryPolicy
from duetime.domain.security.access import Role
from duetime.service.reporting.reports import Reports
from duetime.service.validation import check_namespace, check_typeable
from duetime.web.endpoint import WebEndpoint, action, page
from duetime.web.forms.labels import sentences_of
from duetime.web.pages.admin.namespace_form import (
    body_of,
    errors_of,
    namespace_groups,
    new_namespace_groups,
)
from duetime.web.pages.admin.namespace_words import (
    facts_of,
    path_of,
    retry_words,
    row_of,
    shown_objective,
)
from duetime.web.rendering.view import Redirect, View
from duetime.web.request import Request

SHOWN = 100
"""Namespaces on a page of the list."""

MOST_LIVE = 1_000
"""Namespaces up to which the list is kept up to date: each rendering looks at all of them."""

PATIENCE_SECONDS = 0.3
"""Time that a page waits for the numbers of its timers."""

NEW = "/ui/new-namespace"
"""Outside of `/ui/namespaces/`, where each name has its place, also "new"."""

_PUT = "namespace.put"
_ONE = "/ui/namespaces/{namespace}"


class NamespacesPage:
    def __init__(self, services: Services, reports: Reports) -> None:
        self._services = services
        self._namespaces = services.namespaces
        self._reports = reports

    def endpoints(self) -> tuple[WebEndpoint, ...]:
        return (
            page("uiNamespaces", "/ui/namespaces", self.show_all, may_be_live=True),
            page("uiNewNamespace", NEW, self.ask, role=Role.ADMIN, for_all_namespaces=True),
            action(
                "uiCreateNamespace",
                NEW,
                self.create,
                audit=_PUT,
                role=Role.ADMIN,
                for_all_namespaces=True,
            ),
            page("uiNamespace", _ONE, self.show, may_be_live=True),
            action("uiChangeNamespace", _ONE, self.change, audit=_PUT, role=Role.ADMIN),
        )

    async def show_all(self, request: Request) -> View:
        await self._namespaces.refresh()
        choice = _Choice(request)
        every = self._visible(request)
        turns = self._services.v1.turns
        await turns.map(choice.look_at, every)
        shown = choice.first[:SHOWN]
        census = self._reports.census.kept
        objectives = self._services.objectives
        more = None
        if len(choice.first) > SHOWN:
            more = request.query.with_changes(after=shown[-1].name)
        return View(
            template="pages/admin/namespaces.html",
            title="Namespaces",
            values={
                "rows": await turns.map(
                    lambda each: row_of(each, census, objectives.budget_of(each)), shown
                ),
                "found": choice.found,
                "words": choice.words,
                "is_first": choice.after is None,
                "more": more,
                "is_large": len(every) > SHOWN,
                "default_retries": retry_words(RetryPolicy()),
                "new": NEW,
            },
            live=("namespaces",) if len(every) <= MOST_LIVE else (),
        )

    def _visible(self, request: Request) -> list[Namespace]:
        """A copy: namespaces may be added between two turns. A key for some of them costs nothing
        more where there are very many."""
        if request.access.namespaces is None:
            return list(self._namespaces)
        known = map(self._namespaces.known, request.access.namespaces)
        return [each for each in known if each is not None]

    async def show(self, request: Request) -> View:
        return await self._view(request, await self._existing(request))

    async def change(self, request: Request) -> View | Redirect:
        namespace = await self._existing(request)
        body, errors = body_of(request.form)
        errors += errors_of(body, namespace)
        if not errors:
            try:
                await self._put(request, namespace.name, body)
            except InvalidInput as error:
                errors.append(error)
        if errors:
            return await self._view(request, namespace, errors)
        return Redirect(path_of(namespace.name), "The namespace was changed.")

    async def ask(self, request: Request) -> View:
        return _new_view(request)

    async def create(self, request: Request) -> View | Redirect:
        name = request.form.text("namespace").strip()
        request.caller.reach(name)
        body, wrong = body_of(request.form)
        errors = [*await self._name_errors(name), *wrong]
        errors += errors_of(body, Namespace("new", DEFAULT_SHARDS))
        if not errors:
            try:
                await self._put(request, name, body)
            except InvalidInput as error:
                errors.append(error)
        if errors:
            return _new_view(request, errors)
        return Redirect(path_of(name), "The namespace was created.")

    async def _name_errors(self, name: str) -> Sequence[InvalidInput]:
        try:
            check_namespace(Namespace(name, DEFAULT_SHARDS))
            check_typeable(name)
        except InvalidInput as error:
            return [error]
        if await self._namespaces.current(name) is not None:
            return [InvalidInput("namespace", "exists already")]
        return []

    async def _put(self, request: Request, name: str, body: NamespaceBody) -> None:
        request.caller.note(given_members(body, "retention"))
        shards = body.num_shards if isinstance(body.num_shards, int) else None
        await self._namespaces.put(
            name, shards, lambda options: changed_options(body, options), request.access
        )

    async def _existing(self, request: Request) -> Namespace:
        """Raises `NamespaceNotFound`."""
        name = request.caller.reach(request.part("namespace"))
        namespace = await self._namespaces.current(name)
        if namespace is None:
            raise NoSuchNamespace(name)
        return namespace

    async def _view(
        self, request: Request, namespace: Namespace, errors: Sequence[InvalidInput] = ()
    ) -> View:
        name = namespace.name
        counts = await self._reports.counts.of(frozenset({name}), patience_seconds=PATIENCE_SECONDS)
        budget = self._services.objectives.budget_of(namespace)
        return View(
            template="pages/admin/namespace.html",
            title=name,
            values={
                "namespace": namespace,
                "path": path_of(name),
                "facts": facts_of(namespace),
                "counts": None if counts is None else counts.timers,
                "objective": shown_objective(namespace.options.slo, budget),
                "groups": namespace_groups(
                    namespace,
                    request.form,
                    sentences_of(errors),
                    may_change_limits=request.sees_everything,
                ),
                "is_refused": bool(errors),
            },
            live=() if errors else ("numbers", "objective"),
            refusal=errors[0] if errors else None,
        )


class _Choice:
    """The first namespaces in their order that match the query."""

    def __init__(self, request: Request) -> None:
        self.words = request.query.get("q") or ""
        self._wanted = self.words.casefold()
        self.after = request.query.get("after")
        self.found = 0
        self.first: list[Namespace] = []

    def look_at(self, namespace: Namespace) -> None:
        name = namespace.name
        if self._wanted not in name.casefold():
            return
        self.found += 1
        if self.after is not None and name <= self.after:
            return
        if len(self.first) > SHOWN and name > self.first[-1].name:
            return
        insort(self.first, namespace, key=lambda each: each.name)
        del self.first[SHOWN + 1 :]


def _new_view(request: Request, errors: Sequence[InvalidInput] = ()) -> View:
    return View(
        template="pages/admin/new_namespace.html",
        title="New namespace",
        values={
            "groups": new_namespace_groups(request.form, sentences_of(errors)),
            "is_refused": bool(errors),
            "path": NEW,
        },
        refusal=errors[0] if errors else None,
    )
