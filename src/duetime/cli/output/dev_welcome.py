"""The welcome of `duetime dev`."""

import os
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from duetime.cli.client.server_lookup import client_dotenv, find_url


@dataclass(frozen=True, slots=True, kw_only=True)
class DevAddresses:
    api_url: str
    ui_link: str
    receiver_url: str
    api_key: str
    db_path: Path
    broker: str | None = None


def print_welcome(output: Console, dev: DevAddresses) -> None:
    """The addresses in a frame, and the commands outside it so that they can be copied."""
    facts = {
        "Web UI": dev.ui_link,
        "API": dev.api_url,
        "Docs": f"{dev.api_url}/docs",
        "API key": dev.api_key,
        "Receiver": f"{dev.receiver_url} (callbacks appear below)",
        "Database": str(dev.db_path),
    }
    if dev.broker is not None:
        facts["Broker"] = dev.broker
    if output.is_terminal:
        table = Table.grid(padding=(0, 2))
        for name, value in facts.items():
            table.add_row(Text(name, style="dim"), Text(value, style="bold", overflow="fold"))
        output.print(Panel.fit(table, title="Duetime", border_style="green", padding=(1, 2)))
    else:
        output.print("Duetime is running.", soft_wrap=True)
        for name, value in facts.items():
            output.print(f"{name + ':':<10} {value}", soft_wrap=True)
    _print_command(output, "Create a timer that is due in 10 seconds:", curl_command(dev))
    _print_command(output, "Or, shorter, from this directory:", create_command(dev))
    output.print("\nCtrl-C stops.\n", style="dim", soft_wrap=True)


def curl_command(dev: DevAddresses) -> str:
    """A create of the v1 API, whose timers are retried. Each paste has an id of its own, because
    a repeated id would be answered with the first timer."""
    return f"""\
curl -sS {dev.api_url}/api/v1/timers -H "X-API-Key: {dev.api_key}" -d '{{
  "id": "hello-'$(date +%s)'", "executeIn": "10s",
  "callbackUrl": "{dev.receiver_url}/hello", "payload": {{"hello": "world"}}}}'"""


def create_command(dev: DevAddresses) -> str:
    usual_url = os.environ.get("DUETIME_URL") or find_url(client_dotenv())
    server = "" if dev.api_url == usual_url else f" --server {dev.api_url}"
    return (
        f"{_this_command()} create --id hello-$(date +%s) --in 10s "
        f"--url {dev.receiver_url}/hello{server}"
    )


def _this_command() -> str:
    """`duetime`, or the path of the running program if `duetime` is not on the PATH."""
    if shutil.which("duetime"):
        return "duetime"
    return shlex.quote(os.path.relpath(sys.argv[0]))


def _print_command(output: Console, heading: str, command: str) -> None:
    output.print(f"\n{heading}\n", soft_wrap=True)
    output.print(command, style="cyan", soft_wrap=True)
