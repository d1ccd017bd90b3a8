"""How a setting is declared: a dataclass field that carries its definition."""

from collections.abc import Callable
from dataclasses import Field, dataclass, field
from typing import Any, Literal, TypeVar, overload

ValueT = TypeVar("ValueT")

Group = Literal[
    "Access",
    "API",
    "Store",
    "PostgreSQL",
    "Delivery",
    "Engine",
    "Bus",
    "NATS",
    "Logs",
    "Metrics",
    "Configuration file",
]


@dataclass(frozen=True, slots=True)
class Definition:
    """`default` is the text that one would write; None means that there is no default.

    A `secret` is never shown. A `url` is shown without user and password.
    """

    name: str
    group: Group
    parse: Callable[[str], object]
    default: str | None
    unit: str
    description: str
    secret: bool = False
    url: bool = False


@overload
def setting(
    group: Group,
    parse: Callable[[str], ValueT],
    default: str,
    unit: str,
    description: str,
    *,
    name: str = "",
) -> ValueT: ...


@overload
def setting(
    group: Group,
    parse: Callable[[str], ValueT],
    default: None,
    unit: str,
    description: str,
    *,
    name: str = "",
    secret: bool = False,
    url: bool = False,
) -> ValueT | None: ...


def setting(
    group: Group,
    parse: Callable[[str], Any],
    default: str | None,
    unit: str,
    description: str,
    *,
    name: str = "",
    secret: bool = False,
    url: bool = False,
) -> Any:
    """A dataclass field that declares a setting. The name of the setting is the name of the field
    in upper case, unless given."""

    def definition(field_name: str) -> Definition:
        setting_name = name or field_name.upper()
        return Definition(setting_name, group, parse, default, unit, description, secret, url)

    return field(
        default=None if default is None else parse(default),
        repr=not (secret or url),
        metadata={"definition": definition},
    )


def definition_of(declared: "Field[Any]") -> Definition | None:
    """None for a field that declares no setting."""
    definition: Callable[[str], Definition] | None = declared.metadata.get("definition")
    return None if definition is None else definition(declared.name)
