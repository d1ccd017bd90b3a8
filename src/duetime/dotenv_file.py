"""Reading the file `.env`."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from dotenv.parser import Binding, parse_stream


def read_dotenv(path: Path, problems: list[str], once: Collection[str] = ()) -> dict[str, str]:
    """The file's assignments, without their quotes, `export` and comments; nothing is expanded.

    A missing file assigns nothing. The names in `once` must not be given twice.
    """
    try:
        with path.open(encoding="utf-8") as stream:
            bindings = list(parse_stream(stream))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"{path} cannot be read: {why_unreadable(error)}")
        return {}
    problems.extend(f"{path}, {problem}" for problem in _problems(bindings, once))
    return {b.key: b.value for b in bindings if b.key is not None and b.value is not None}


def _problems(bindings: Sequence[Binding], once: Collection[str]) -> Iterator[str]:
    seen: set[str | None] = set()
    for binding in bindings:
        # A parsed text begins with the empty lines before it.
        text = binding.original.string
        line = binding.original.line + len(text) - len(text.lstrip("\n"))
        is_export = text.split()[:1] == ["export"]
        if binding.error or (binding.key and binding.value is None and not is_export):
            yield f"line {line}: must be NAME=value or a # comment"
        elif binding.key in once and binding.value is not None:
            if binding.key in seen:
                yield f"line {line}: {binding.key} is given again; remove one of the lines"
            seen.add(binding.key)


def why_unreadable(error: OSError | UnicodeDecodeError) -> str:
    return "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error.strerror)
