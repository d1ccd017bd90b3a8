"""The markup of a drawing, made piece by piece and escaped on the way."""

from collections.abc import Iterable
from html import escape


class Drawing:
    """Markup that templates show as it is."""

    def __init__(self, markup: str) -> None:
        self._markup = markup

    def __html__(self) -> str:
        return self._markup

    def __str__(self) -> str:
        return self._markup


def element(name: str, *content: str, **attributes: object) -> str:
    """An element of SVG. The content is markup already; the values of attributes are escaped. A
    dash in an attribute's name is written as an underscore, and `kind` stands for `class`."""
    given = "".join(
        f' {_names.get(key, key.replace("_", "-"))}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = "".join(content)
    return f"<{name}{given}>{inner}</{name}>" if inner else f"<{name}{given}/>"


def text(words: str) -> str:
    return escape(words, quote=False)


def title(words: str) -> str:
    """The words that a pointer shows over the element around."""
    return f"<title>{text(words)}</title>"


def plain(number: float) -> str:
    """A coordinate, as short as its precision allows."""
    return f"{number:.2f}".rstrip("0").rstrip(".") or "0"


def share(number: float) -> str:
    """A part of the width, which is 1."""
    return f"{plain(number * 100)}%"


def picture(
    pieces: Iterable[str], *, height: float, label: str, description: str, kind: str
) -> Drawing:
    """A drawing as wide as its place. Widths are parts of that, heights are pixels; so text keeps
    its size on every screen."""
    return Drawing(
        element(
            "svg",
            *pieces,
            kind=f"chart {kind}",
            role="img",
            aria_label=f"{label}. {description}",
            width="100%",
            height=plain(height),
        )
    )


def stretched(*pieces: str, width: float, height: float, y: float) -> str:
    """A part whose own coordinates are stretched to the whole width. Lines keep their strength."""
    return element(
        "svg",
        *pieces,
        x="0",
        y=plain(y),
        width="100%",
        height=plain(height),
        viewBox=f"0 0 {plain(width)} {plain(height)}",
        preserveAspectRatio="none",
    )


def _value(value: object) -> str:
    return plain(value) if isinstance(value, float) else escape(str(value))


_names = {"kind": "class", "viewBox": "viewBox", "preserveAspectRatio": "preserveAspectRatio"}
