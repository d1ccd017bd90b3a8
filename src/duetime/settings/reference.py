"""`.env.example` and the configuration reference, written from the table of settings.

`python -m duetime.settings.reference` rewrites both in the working directory.
"""

import textwrap
from pathlib import Path

from duetime.settings.definitions import API_KEY, CONFIG_FILE, GROUPS, NAMESPACES, Setting

EXAMPLE_PATH = Path(".env.example")
PAGE_PATH = Path("docs/reference/configuration.md")
PLACEHOLDER_API_KEY = "replace-me-with-a-secret-of-at-least-32-characters"

_EXAMPLE_HEAD = """\
# Settings of Duetime, each with its default. Copy this file to .env and change what you need.
# The environment goes before this file; docs/reference/configuration.md explains all of it.
"""

_PAGE_HEAD = f"""\
# Configuration

`duetime serve` reads its settings once, when it starts. Each comes from the first of these that
names it:

1. the environment (and `--host`, `--port` and `--workers`, which stand for `HOST`, `PORT` and
   `WORKERS`),
2. the file `.env` in the working directory: lines `NAME=value`, where quotes, a leading `export`
   and `# comments` are understood and nothing like `$NAME` is expanded,
3. a TOML file named by `--config` or `{CONFIG_FILE.name}`,
4. the default.

An empty value stands for the default. A value that cannot be accepted stops the start: all
problems are printed, one line each, and the exit status is 2.

In the TOML file the names are in lower case. Tables may group them; the names of tables mean
nothing, except below `namespaces`. A name that is no setting is a problem, so that a typing error
is not overlooked.

```toml
port = 9090

[delivery]
callback_timeout_seconds = 10

[namespaces.notifications]
shards = 64
retention = "7d"
```

[Namespaces](../how-to/namespaces.md) explains these tables, which add to `{NAMESPACES.name}`.

`duetime dev` needs no settings: it listens on 127.0.0.1, from the port of `PORT` or 8080 on, keeps
its timers in `duetime-dev.db`, allows any future instant, and takes `API_KEY` or makes a key of its
own in `.duetime-dev-key`.
"""

_PAGE_TAIL = """\
## The command line as a client

`duetime create`, `get`, `list`, `update`, `cancel`, `redrive`, `import`, `export`, `namespaces` and
`health` talk to a server (`duetime bus` talks to the broker of `TIMER_BROKER_URL`). They read these
from the environment or `.env`:

| Name | Default | Meaning |
|---|---|---|
| `DUETIME_URL` | `http://127.0.0.1:8080`, with `PORT` of `.env` | The server, as with `--server`. |
| `DUETIME_API_KEY` | `API_KEY`, else the key of `duetime dev` | The key, as with `--api-key`. |
"""


def example_text() -> str:
    parts = [_EXAMPLE_HEAD]
    for heading, settings in GROUPS.items():
        parts.append(f"\n# ---- {heading} ----\n")
        parts.extend(_example_entry(setting) for setting in settings)
    return "".join(parts)


def _example_entry(setting: Setting[object]) -> str:
    text = f"{setting.description} ({setting.unit})"
    comment = textwrap.fill(text, 98, initial_indent="# ", subsequent_indent="# ")
    if setting is API_KEY:
        return f"\n{comment}\n{setting.name}={PLACEHOLDER_API_KEY}\n"
    return f"\n{comment}\n#{setting.name}={setting.default or ''}\n"


def page_text() -> str:
    parts = [_PAGE_HEAD]
    for heading, settings in GROUPS.items():
        parts.append(f"\n## {heading}\n\n| Name | Default | Unit or values | Meaning |\n")
        parts.append("|---|---|---|---|\n")
        parts.extend(_page_row(setting) for setting in settings)
    return "".join(parts) + "\n" + _PAGE_TAIL


def _page_row(setting: Setting[object]) -> str:
    default = "none" if setting.default is None else f"`{setting.default}`"
    return f"| `{setting.name}` | {default} | {setting.unit} | {setting.description} |\n"


def write_files(root: Path) -> None:
    (root / EXAMPLE_PATH).write_text(example_text(), encoding="utf-8")
    (root / PAGE_PATH).parent.mkdir(parents=True, exist_ok=True)
    (root / PAGE_PATH).write_text(page_text(), encoding="utf-8")


if __name__ == "__main__":
    write_files(Path.cwd())
