"""The texts that settings are given as: their sources, which source wins, and their values."""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from duetime.dotenv_file import read_dotenv, why_unreadable
from duetime.settings.definitions import SETTINGS
from duetime.settings.misspellings import misspelt_in_environment, misspelt_name
from duetime.settings.namespaces import NamespaceTables
from duetime.settings.parsers import suggestion, without_secrets
from duetime.settings.setting import definition_of

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

DeclaringT = TypeVar("DeclaringT", bound="DataclassInstance")

_ENVIRONMENT = "the environment"
_CONFIG_FILE = "DUETIME_CONFIG"
_NAMESPACES = "namespaces"
_LONGEST_SHOWN = 60
_STORE_NAMES = (
    "DATABASE_URL", "TIMER_DB_PATH", "PG_HOST", "PG_PORT", "PG_USER", "PG_PASSWORD", "PG_DB_NAME",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Given:
    text: str
    source: str


class GivenValues:
    """The given texts of all sources together, and the problems found so far.

    The environment takes precedence over `.env`, which takes precedence over the TOML file
    (`toml_path`, else DUETIME_CONFIG). An empty text counts as not given.
    """

    def __init__(
        self, environ: Mapping[str, str], dotenv_path: Path | None, toml_path: Path | None
    ) -> None:
        self.problems: list[str] = []
        self.namespace_tables = NamespaceTables()
        self._given: dict[str, _Given] = {}
        dotenv = {} if dotenv_path is None else read_dotenv(dotenv_path, self.problems, SETTINGS)
        self._add(dotenv, str(dotenv_path))
        self._add(environ, _ENVIRONMENT)
        if toml_path is None and self.has(_CONFIG_FILE):
            toml_path = Path(self._given[_CONFIG_FILE].text)
        if toml_path is not None:
            before, self._given = self._given, {}
            texts, tables = _read_toml(toml_path, self.problems)
            self._add(texts, str(toml_path))
            self._given |= before
            self.namespace_tables = NamespaceTables(tables, str(toml_path))
        given = [name for name in SETTINGS if self.has(name)]
        for name in dotenv:
            problem = misspelt_name(name, SETTINGS, given)
            if problem is not None:
                self.problems.append(f"{dotenv_path}: {name!r} {problem}")
        self.warnings = tuple(misspelt_in_environment(environ, SETTINGS, given))

    def _add(self, texts: Mapping[str, str], source: str) -> None:
        self._given |= {name: _Given(texts[name], source) for name in SETTINGS if name in texts}

    def has(self, name: str) -> bool:
        return name in self._given and self._given[name].text != ""

    def ignore(self, name: str) -> None:
        self._given.pop(name, None)

    def choose_store(self, url: str, schema: str | None, source: str) -> None:
        """Use the store of this URL, whatever else was given. Problems name the `source`, an
        option of the command line, and not the setting."""
        for name in _STORE_NAMES:
            self.ignore(name)
        self._add({"DATABASE_URL": url}, source)
        if schema is not None:
            self._add({"PG_SCHEMA": schema}, f"{source}-schema")

    def read(self, declaring: type[DeclaringT], **others: object) -> DeclaringT:
        """An instance of the class with the values of all settings that it declares, and the
        values of its other fields. A text that cannot be parsed becomes a problem, and its
        setting keeps the default."""
        values = dict(others)
        for declared in fields(declaring):
            definition = definition_of(declared)
            if definition is not None and self.has(definition.name):
                try:
                    values[declared.name] = definition.parse(self._given[definition.name].text)
                except ValueError as error:
                    self.problem(definition.name, f"must be {error}")
        make: Callable[..., DeclaringT] = declaring
        return make(**values)

    def problem(self, name: str, text: str) -> None:
        """Record a problem with a setting that was given, in one line."""
        definition, given = SETTINGS[name], self._given[name]
        shown = without_secrets(given.text) if definition.url else given.text
        if len(shown) > _LONGEST_SHOWN:
            shown = shown[: _LONGEST_SHOWN - 3] + "..."
        value = "" if definition.secret else f"={shown!r}"
        if given.source.startswith("--"):
            self.problems.append(f"{given.source}{value}: {text}")
            return
        source = "" if given.source == _ENVIRONMENT else f" (from {given.source})"
        self.problems.append(f"{name}{value}{source}: {text}")

    def missing(self, name: str, text: str) -> None:
        self.problems.append(f"{SETTINGS[name].name} is missing: {text}")


def _read_toml(path: Path, problems: list[str]) -> tuple[dict[str, str], dict[str, object]]:
    """The file's keys, in upper case, and the content of the table `namespaces`. Other tables
    only group keys; their names mean nothing."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"{path} cannot be read: {why_unreadable(error)}")
        return {}, {}
    except tomllib.TOMLDecodeError as error:
        problems.append(f"{path} is not valid TOML: {error}")
        return {}, {}
    tables = content.pop(_NAMESPACES) if isinstance(content.get(_NAMESPACES), dict) else {}
    known = [name.lower() for name in SETTINGS if name != _CONFIG_FILE]
    texts: dict[str, str] = {}
    for key, value in _flat(content):
        if key not in known:
            problems.append(f"{path}: {key!r} is not a setting{suggestion(key, known)}")
        elif key.upper() in texts:
            problems.append(f"{path}: {key!r} is set more than once")
        elif not isinstance(value, str | int | float) or isinstance(value, bool):
            problems.append(f"{path}: {key!r} must be a text or a number")
        else:
            texts[key.upper()] = str(value)
    return texts, tables


def _flat(table: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value)
        else:
            yield key, value
