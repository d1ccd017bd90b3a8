"""Where the texts of settings come from, and which source wins."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from dotenv.parser import parse_stream

from duetime.settings.definitions import CONFIG_FILE, NAMESPACES, SETTINGS
from duetime.settings.namespace_tables import NamespaceTables
from duetime.settings.suggestion import suggestion

ENVIRONMENT = "the environment"


@dataclass(frozen=True, slots=True)
class Given:
    """The text of one setting and the source that gave it."""

    text: str
    source: str


def gather(
    environ: Mapping[str, str],
    dotenv_path: Path | None,
    toml_path: Path | None,
    problems: list[str],
) -> tuple[dict[str, Given], NamespaceTables]:
    """What each named setting was given as, from the source that goes first; and the tables of
    namespaces, which only the file can have."""
    given: dict[str, Given] = {}
    if dotenv_path is not None:
        given |= _from_mapping(read_dotenv(dotenv_path, problems), str(dotenv_path))
    given |= _from_mapping(environ, ENVIRONMENT)
    if toml_path is None and CONFIG_FILE.name in given and given[CONFIG_FILE.name].text:
        toml_path = Path(given[CONFIG_FILE.name].text)
    if toml_path is None:
        return given, NamespaceTables()
    texts, tables = read_toml(toml_path, problems)
    return _from_mapping(texts, str(toml_path)) | given, NamespaceTables(tables, str(toml_path))


def _from_mapping(texts: Mapping[str, str], source: str) -> dict[str, Given]:
    return {name: Given(texts[name], source) for name in SETTINGS if name in texts}


def read_dotenv(path: Path, problems: list[str]) -> dict[str, str]:
    """The file's assignments, without their quotes, `export` and comments; nothing is expanded.

    A file that is absent assigns nothing.
    """
    try:
        with path.open(encoding="utf-8") as stream:
            bindings = list(parse_stream(stream))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"{path} cannot be read: {_reason(error)}")
        return {}
    problems.extend(
        f"{path}, line {binding.original.line}: must be NAME=value or a # comment"
        for binding in bindings
        if binding.error
    )
    return {b.key: b.value for b in bindings if b.key is not None and b.value is not None}


def read_toml(path: Path, problems: list[str]) -> tuple[dict[str, str], dict[str, object]]:
    """The file's keys, in upper case, and what stands below `namespaces`. Other tables only
    group keys; their names mean nothing."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"{path} cannot be read: {_reason(error)}")
        return {}, {}
    except tomllib.TOMLDecodeError as error:
        problems.append(f"{path} is not valid TOML: {error}")
        return {}, {}
    namespaces = content.get(NAMESPACES.name.lower())
    tables = content.pop(NAMESPACES.name.lower()) if isinstance(namespaces, dict) else {}
    texts: dict[str, str] = {}
    for key, value in _flat(content):
        name = key.upper()
        if key != key.lower() or name not in SETTINGS or name == CONFIG_FILE.name:
            problems.append(f"{path}: {key!r} is not a setting{suggestion(key, _file_keys())}")
        elif name in texts:
            problems.append(f"{path}: {key!r} is set more than once")
        elif not isinstance(value, str | int | float) or isinstance(value, bool):
            problems.append(f"{path}: {key!r} must be a text or a number")
        else:
            texts[name] = str(value)
    return texts, tables


def _flat(table: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value)
        else:
            yield key, value


def _file_keys() -> list[str]:
    return [name.lower() for name in SETTINGS if name != CONFIG_FILE.name]


def _reason(error: OSError | UnicodeDecodeError) -> str:
    return "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error.strerror)
