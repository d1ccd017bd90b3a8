"""The page on which a namespace is deleted."""

from duetime.api.app import Services
from duetime.domain.errors import DuetimeError, InvalidInput, NamespaceNotEmpty, NoSuchNamespace
from duetime.domain.security.access import Role
from duetime.domain.timer import unfinished_of
from duetime.web.endpoint import WebEndpoint, action, page
from duetime.web.pages.admin.namespace_words import path_of
from duetime.web.rendering.view import Redirect, View
from duetime.web.request import Request

_PATH = "/ui/namespaces/{namespace}/delete"


class NamespaceDeletionPage:
    """Timers are counted first, and the name has to be typed."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def endpoints(self) -> tuple[WebEndpoint, ...]:
        return (
            page("uiAskToDeleteNamespace", _PATH, self.ask, role=Role.ADMIN),
            action(
                "uiDeleteNamespace", _PATH, self.delete, audit="namespace.delete", role=Role.ADMIN
            ),
        )

    async def ask(self, request: Request) -> View:
        return await self._view(request, await self._existing(request))

    async def delete(self, request: Request) -> View | Redirect:
        caller = request.caller
        name = await self._existing(request)
        force = request.form.has("force")
        caller.note({"force": force or None})
        try:
            # Fields have one line, and a name may have any characters.
            if request.form.text("typed").split() != name.split():
                raise InvalidInput("typed", f"must be {name}")
            operation = await self._services.operations.delete_namespace(
                name, force=force, started_by=caller.access.name
            )
        except (InvalidInput, NamespaceNotEmpty) as error:
            return await self._view(request, name, error)
        caller.note({"operation": operation.id})
        return Redirect(f"/ui/operations/{operation.id}", "The deletion has started.")

    async def _existing(self, request: Request) -> str:
        """Raises `NamespaceNotFound`."""
        name = request.caller.reach(request.part("namespace"))
        if await self._services.namespaces.current(name) is None:
            raise NoSuchNamespace(name)
        return name

    async def _view(self, request: Request, name: str, error: DuetimeError | None = None) -> View:
        counts = await self._services.v1.counts(name)
        unfinished = unfinished_of(counts)
        is_typed_wrong = isinstance(error, InvalidInput) and error.field == "typed"
        return View(
            template="pages/admin/delete_namespace.html",
            title=f"Delete {name}",
            values={
                "name": name,
                "path": path_of(name),
                "counts": {status.label: count for status, count in counts.items() if count},
                "total": sum(counts.values()),
                "unfinished": unfinished,
                "typed": request.form.text("typed"),
                "is_forced": request.form.has("force"),
                "typed_error": f"Type {name}" if is_typed_wrong else None,
                "force_error": (
                    "Tick this, or cancel these timers first."
                    if isinstance(error, NamespaceNotEmpty)
                    else None
                ),
                "other_error": (
                    error.message
                    if isinstance(error, InvalidInput) and not is_typed_wrong
                    else None
                ),
            },
            refusal=error,
        )
