"""`.env.example` and the configuration reference, written from the definitions of settings.

`python -m duetime.settings.reference` rewrites both in the working directory.
"""

import textwrap
from itertools import groupby
from pathlib import Path

from duetime.domain.defaults import DEFAULT_PORT
from duetime.domain.limits import MIN_API_KEY_CHARACTERS
from duetime.settings.definitions import SETTINGS
from duetime.settings.setting import Definition

EXAMPLE_PATH = Path(".env.example")
PAGE_PATH = Path("docs/reference/configuration.md")
PLACEHOLDER_API_KEY = f"replace-me-with-a-secret-of-at-least-{MIN_API_KEY_CHARACTERS}-characters"

_EXAMPLE_HEAD = """\
# Settings of Duetime, each with its default. Copy this file to .env and change what you need.
# The environment takes precedence over this file. docs/reference/configuration.md explains more.
"""

_PAGE_HEAD = f"""\
# Configuration

`duetime serve` reads its settings once, when it starts. The first of these sources that names a
setting wins:

1. the environment (and `--host`, `--port` and `--workers`, which stand for `HOST`, `PORT` and
   `WORKERS`),
2. the file `.env` in the working directory: lines `NAME=value`; quotes, a leading `export` and
   `# comments` are understood, and nothing like `$NAME` is expanded,
3. a TOML file named by `--config` or `DUETIME_CONFIG`,
4. the default.

An empty value stands for the default. If a value is not accepted, Duetime does not start: it
prints all problems, one line each, and exits with status 2. A name in `.env` that comes close to a
setting which is not given, such as `PROT`, is a problem too; other names belong to other programs.
So is a setting that `.env` gives twice, and a line without a value. In the environment, such a name
is logged as a warning (`settings.misspelt`).

Nobody leaves the door open by accident: `duetime serve` refuses the key of `.env.example`. It also
refuses `AUTH=none` on an address that other machines can reach, unless it is given `--insecure`.

In the TOML file the names are in lower case. Tables may group them; the names of tables mean
nothing, except below `namespaces`. An unknown name is an error, so that a typo is not overlooked.

```toml
port = 9090

[delivery]
callback_timeout_seconds = 10

[namespaces.notifications]
shards = 64
retention = "7d"
```

[Namespaces](../how-to/namespaces.md) explains these tables, which add to `NAMESPACES`.

`duetime dev` needs no settings. It listens on 127.0.0.1, on the first free port from `PORT` or
{DEFAULT_PORT} on, keeps its timers in `duetime-dev.db`, accepts any future instant, and lets
callbacks go to private and loopback addresses, too (`CALLBACK_NETWORKS`). It reads the environment.
From `.env`, which is for `duetime serve`, it takes only `PORT`, `TIMER_BROKER_URL` and
the settings of NATS. Its key is `API_KEY` of the environment, else a key that it creates in
`.duetime-dev-key`. While it runs, its URL is in `.duetime-dev-url`.
"""

_SERVER_URL = f"http://127.0.0.1:{DEFAULT_PORT}"

_PAGE_TAIL = f"""\
## The command line as a client

`duetime create`, `get`, `list`, `update`, `cancel`, `redrive`, `reschedule`, `run-now`,
`operations`, `import`, `export`, `namespaces`, `keys`, `secrets`, `audit-log`, `endpoints` and
`health` talk to a server. They read these from the environment or `.env`; `duetime bus` talks to
the broker of `TIMER_BROKER_URL` instead:

| Name | Default | Meaning |
|---|---|---|
| `DUETIME_URL` | `{_SERVER_URL}`, with `PORT` if that is set | The server, as with `--server`. |
| `DUETIME_API_KEY` | `API_KEY`, else the key of `duetime dev` | The key, as with `--api-key`. |

If `duetime dev` runs in the same directory, its URL takes the place of the default, and its own key
comes before the keys in `.env`, which are for other servers.

Without `--secret`, `duetime listen` takes the secrets that must have signed each callback from
`DUETIME_WEBHOOK_SECRET`, with spaces between them.
"""


def example_text() -> str:
    parts = [_EXAMPLE_HEAD]
    for heading, definitions in groupby(SETTINGS.values(), lambda each: each.group):
        parts.append(f"\n# ---- {heading} ----\n")
        parts.extend(map(_example_entry, definitions))
    return "".join(parts)


def _example_entry(definition: Definition) -> str:
    text = f"{definition.description} ({definition.unit})"
    comment = textwrap.fill(text, 98, initial_indent="# ", subsequent_indent="# ")
    if definition.name == "API_KEY":
        return f"\n{comment}\n{definition.name}={PLACEHOLDER_API_KEY}\n"
    return f"\n{comment}\n#{definition.name}={definition.default or ''}\n"


def page_text() -> str:
    parts = [_PAGE_HEAD]
    for heading, definitions in groupby(SETTINGS.values(), lambda each: each.group):
        parts.append(f"\n## {heading}\n\n| Name | Default | Unit or values | Meaning |\n")
        parts.append("|---|---|---|---|\n")
        parts.extend(map(_page_row, definitions))
    return "".join(parts) + "\n" + _PAGE_TAIL


def _page_row(definition: Definition) -> str:
    default = "none" if definition.default is None else f"`{definition.default}`"
    return f"| `{definition.name}` | {default} | {definition.unit} | {definition.description} |\n"


def write_files(root: Path) -> None:
    (root / EXAMPLE_PATH).write_text(example_text(), encoding="utf-8")
    (root / PAGE_PATH).parent.mkdir(parents=True, exist_ok=True)
    (root / PAGE_PATH).write_text(page_text(), encoding="utf-8")


if __name__ == "__main__":
    write_files(Path.cwd())
