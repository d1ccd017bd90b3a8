"""`duetime listen`: receive callbacks and print them."""

import sys
from typing import Annotated

import typer

from duetime.cli.commands.number_options import whole_number
from duetime.cli.commands.run.receiver import Receiver
from duetime.cli.commands.run.signature_check import SignatureCheck
from duetime.cli.output.received_callback import ReceivedCallback, json_line, readable_line
from duetime.cli.terminal import ExitCode, console, fail, refuse
from duetime.clock import SystemClock
from duetime.domain.limits import MAX_PORT
from duetime.event_loop import run, stop_signal
from duetime.listener import AddressUnavailable, bind, take_connections, url_of


def listen(
    port: Annotated[
        int, whole_number(0, MAX_PORT, help="Port to listen on; 0 picks a free one.")
    ] = 9000,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    status: Annotated[int, whole_number(200, 599, help="HTTP status of every answer.")] = 200,
    secret: Annotated[
        list[str] | None,
        typer.Option(
            metavar="whsec_...|whpk_...",
            envvar="DUETIME_WEBHOOK_SECRET",
            help="Secret or public key that must have signed each callback; repeatable. Others are "
            "answered with 401.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print each callback as one JSON line.")
    ] = False,
) -> None:
    """Receive callbacks, and print each one with its lateness and the answer it got.

    The body of a 200 is `{"ok": true}`, which completes timers of both APIs.

    Lateness is measured from `?due=<instant>` in the URL, from the `executeAt` of a v1 callback, or
    from a field `due` or `execute_at` in the payload. `duetime create --id` makes v1 callbacks, and
    `duetime create --at` without a payload sends `execute_at`. A retry has no lateness, because its
    callback does not say when it was due.

    Examples:

    * `duetime listen`
    * `duetime listen --port 9001 --status 500` shows retries
    * `duetime listen --secret whsec_...` verifies signatures
    """
    try:
        signatures = SignatureCheck(secret) if secret else None
    except ValueError as error:
        refuse("--secret", f"must be {error}")
    try:
        run(_listen(host, port, status, as_json, signatures))
    except AddressUnavailable as error:
        fail(error.message, ExitCode.FAILED)


async def _listen(
    host: str, port: int, status: int, as_json: bool, signatures: SignatureCheck | None
) -> None:
    output = console()

    def show(callback: ReceivedCallback) -> None:
        if as_json:
            print(json_line(callback), flush=True)
        else:
            output.print(readable_line(callback), soft_wrap=True)

    stopped = stop_signal()
    listener = bind(host, port)
    take_connections(listener, backlog=128)
    receiver = Receiver(SystemClock(), show, status, signatures)
    await receiver.start(listener)
    greeting = f"Listening on {url_of(listener)} (Ctrl-C stops)"
    print(greeting, file=sys.stderr if as_json else sys.stdout, flush=True)
    await stopped.wait()
    await receiver.stop()
