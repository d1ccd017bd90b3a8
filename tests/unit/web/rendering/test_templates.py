"""Templates are compiled before the service starts."""

import pytest
from jinja2 import Environment

from duetime.web.rendering.environment import compile_templates, environment


def test_no_page_waits_for_its_template(monkeypatch: pytest.MonkeyPatch) -> None:
    compile_templates()
    compiled: list[str | None] = []
    monkeypatch.setattr(
        Environment, "compile", lambda self, source, name=None, *rest, **more: compiled.append(name)
    )
    made = environment()
    for name in made.list_templates():
        made.get_template(name)
    assert compiled == []
