"""`duetime open`: the Web UI of a server in the browser, signed in."""

import sys
from typing import Annotated

import typer

from duetime.cli.browser import open_in_browser
from duetime.cli.client.answers import UiLink
from duetime.cli.client.v1 import V1Client
from duetime.cli.commands.options import ApiKeyOption, ServerOption
from duetime.cli.terminal import ExitCode, fail

_UI_PATH = "/ui"


def open_web_ui(
    only_print: Annotated[
        bool, typer.Option("--print", help="Print the link instead of opening it.")
    ] = False,
    server: ServerOption = None,
    api_key: ApiKeyOption = None,
) -> None:
    """Open the Web UI in the browser, signed in with the API key.

    The link works once, and for a minute. Where no browser can be opened, it is printed.

    Examples:

    * `duetime open`
    * `duetime open --server https://timers.example.com`
    * `duetime open --print`
    """
    client = V1Client(server, api_key)
    link = client.read_as(UiLink, client.request("POST", "/ui-links"))
    if not link.path.startswith(_UI_PATH) or not link.path.isprintable():
        fail(f"{client.url} answered, but not as Duetime does", ExitCode.FAILED)
    url = client.url + link.path
    if only_print:
        print(url)
    elif open_in_browser(url):
        print(f"Opened {client.url}{_UI_PATH} in your browser.")
    else:
        lasting = "" if link.expires_at is None else " within a minute; it works once"
        print(f"No browser can be opened here. Open this link{lasting}:", file=sys.stderr)
        print(url)
