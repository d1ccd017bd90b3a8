"""Reading the file `.env`."""

from pathlib import Path

from dotenv.parser import parse_stream


def read_dotenv(path: Path, problems: list[str]) -> dict[str, str]:
    """The file's assignments, without their quotes, `export` and comments; nothing is expanded.

    A missing file assigns nothing.
    """
    try:
        with path.open(encoding="utf-8") as stream:
            bindings = list(parse_stream(stream))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"{path} cannot be read: {why_unreadable(error)}")
        return {}
    problems.extend(
        f"{path}, line {binding.original.line}: must be NAME=value or a # comment"
        for binding in bindings
        if binding.error
    )
    return {b.key: b.value for b in bindings if b.key is not None and b.value is not None}


def why_unreadable(error: OSError | UnicodeDecodeError) -> str:
    return "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error.strerror)
