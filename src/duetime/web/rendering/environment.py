"""The Jinja environment: escapes everything, and knows how instants and numbers are shown."""

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from duetime import __version__
from duetime.domain.instants import Instant, datetime_of, format_instant
from duetime.domain.wording import counted, span
from duetime.web.navigation import menu_for
from duetime.web.rendering.words import capped, number, percent, quick
from duetime.web.static_files import static_path

DASH = "\N{EN DASH}"


@cache
def environment() -> Environment:
    made = Environment(
        loader=PackageLoader("duetime.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(
        capped=capped,
        counted=counted,
        instant=instant,
        iso=format_instant,
        number=number,
        percent=percent,
        quick=quick,
        span=lambda ms: DASH if ms is None else span(ms),
    )
    made.globals.update(menu_for=menu_for, static=static_path, version=__version__)
    return made


def compile_templates() -> None:
    """Compile every template, which takes a tenth of a second or two: no timer has to wait for it
    later."""
    made = environment()
    for name in made.list_templates():
        made.get_template(name)


def instant(value: Instant | None, style: str = "both") -> str | Markup:
    """A point in time. Without scripts it is in UTC; with them it follows the switch between UTC
    and local time. The style says what is shown: `both` adds the distance from now, `relative` is
    the distance alone, `time` neither, and `exact` has milliseconds."""
    if value is None:
        return DASH
    moment = datetime_of(value)
    text = f"{moment:%Y-%m-%d %H:%M:%S}"
    if style == "exact":
        text += f".{moment.microsecond // 1_000:03d}"
    # Nothing here has to be escaped: a list has hundreds of instants.
    return Markup(
        f'<time datetime="{format_instant(value)}" data-style="{style}">{text} UTC</time>'
    )
