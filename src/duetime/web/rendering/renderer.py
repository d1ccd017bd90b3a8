"""Renders views in turns, so that no page keeps a timer waiting."""

from collections.abc import Iterable, Mapping
from typing import Any

from jinja2 import Template

from duetime.service.turns import Turns
from duetime.web.rendering.environment import environment
from duetime.web.rendering.view import View
from duetime.web.request import Request


class Renderer:
    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    async def page(self, view: View, request: Request | None) -> bytes:
        """The whole page. Without a request nobody is signed in, and there is no menu."""
        template = environment().get_template(view.template)
        pieces = template.generate(_values(view, request))
        return (await self._joined(pieces)).encode()

    async def live_blocks(self, view: View, request: Request) -> dict[str, str]:
        """The blocks of the page that change while it is open."""
        template = environment().get_template(view.template)
        values = _values(view, request)
        return {name: await self._block(template, name, values) for name in view.live}

    async def _block(self, template: Template, name: str, values: Mapping[str, Any]) -> str:
        context = template.new_context(dict(values))
        # Names that the template sets at its top, such as imported macros, belong to its blocks.
        for _ in template.root_render_func(context):
            break
        return await self._joined(context.blocks[name][0](context))

    async def _joined(self, pieces: Iterable[str]) -> str:
        return "".join(await self._turns.map(str, pieces))


def _values(view: View, request: Request | None) -> dict[str, Any]:
    return {
        **view.values,
        "title": view.title,
        "live": view.live,
        "request": request,
        "may_write": request is not None and request.may_write,
        "is_admin": request is not None and request.is_admin,
    }
