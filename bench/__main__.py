"""`python -m bench`: measure, print a table, write `results.json` and pictures.

The exit code is 1 if a timer was lost, early or repeated, or the server failed. A missed bound
leaves it at 0, because machines differ.
"""

import argparse
import os
import sys
from pathlib import Path

import msgspec
from rich.console import Console

from bench.harness.child import ChildFailed
from bench.harness.progress import Steps
from bench.harness.server import ServerFailed
from bench.report.pictures import draw_firing, draw_scale, draw_v1
from bench.report.table import print_report
from bench.results import Results
from bench.scale import StoreName, scale_of
from bench.session import NAMES, most_stored, run_session
from bench.stores.disk_space import GB, MachineUnfit, disk_bytes
from bench.stores.opening import open_stores
from bench.stores.postgres_server import GIVEN_URL

DEFAULT_OUTPUT = Path(__file__).parent / "output"


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Measure Duetime beside bare limits of this machine."
    )
    parser.add_argument(
        "--store", type=StoreName, choices=list(StoreName), default=StoreName.SQLITE
    )
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of the work; figures are indicative only"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="NAME",
        help="measurements to run: "
        + "; ".join(f"{', '.join(names)} ({store})" for store, names in NAMES.items())
        + ". loaded repeats creates, burst and steady on filled stores",
    )
    parser.add_argument(
        "--stored",
        type=positive,
        metavar="N",
        help="pending timers, and as many finished ones, in the largest store",
    )
    parser.add_argument(
        "--burst", type=positive, metavar="N", help="timers of one instant in each burst"
    )
    parser.add_argument(
        "--held-seconds",
        type=positive,
        metavar="N",
        help="time for which a snapshot is held at each rate",
    )
    parser.add_argument(
        "--set",
        nargs="+",
        default=[],
        metavar="NAME=VALUE",
        dest="settings",
        help="settings of the PostgreSQL server started for the run",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help=f"directory of results and stores [{DEFAULT_OUTPUT}]",
    )
    arguments = parser.parse_args()
    unknown = set(arguments.only or ()) - set(NAMES[arguments.store])
    if unknown:
        parser.error(
            f"--only: {arguments.store} has no {', '.join(sorted(unknown))}; choose from"
            f" {', '.join(NAMES[arguments.store])}"
        )
    if not all("=" in each for each in arguments.settings):
        parser.error("--set: expected NAME=VALUE")
    return arguments


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def main() -> int:
    arguments = parse_arguments()
    store: StoreName = arguments.store
    default = DEFAULT_OUTPUT / store if store is not StoreName.SQLITE else DEFAULT_OUTPUT
    output: Path = (arguments.output or default).resolve()
    output.mkdir(parents=True, exist_ok=True)
    for log in output.glob("server-*.log"):
        log.unlink()
    scale = scale_of(
        store,
        quick=arguments.quick,
        stored=arguments.stored,
        burst=arguments.burst,
        held_seconds=arguments.held_seconds,
    )
    names = set(arguments.only or NAMES[store])
    settings = dict(each.split("=", 1) for each in arguments.settings)
    console = Console()
    timers = most_stored(names, scale)
    announce(store, timers, output, console)
    try:
        with Steps(console) as steps, open_stores(store, timers, output, settings) as stores:
            results = run_session(store, names, scale, stores, steps)
    except (ServerFailed, ChildFailed, MachineUnfit) as error:
        console.print(f"[bold red]stopped:[/] {error}", highlight=False)
        return 1
    except KeyboardInterrupt:
        return 130
    write(results, output, console)
    return 1 if results.faults else 0


def announce(store: StoreName, timers: int, output: Path, console: Console) -> None:
    is_given = store is StoreName.POSTGRESQL and os.environ.get(GIVEN_URL)
    place = "on the given server" if is_given else f"in {output}"
    console.print(
        f"This run needs up to {disk_bytes(store, timers) / GB:.1f} GB of disk {place}.",
        highlight=False,
    )


def write(results: Results, output: Path, console: Console) -> None:
    written = [output / "results.json"]
    written[0].write_bytes(msgspec.json.format(msgspec.json.encode(results)))
    print_report(results, console)
    if draw_firing(results, output / "lateness.png"):
        written.append(output / "lateness.png")
    if draw_scale(results, output / "postgres-scale.png"):
        written.append(output / "postgres-scale.png")
    if draw_v1(results.v1, output / "v1.png"):
        written.append(output / "v1.png")
    console.print(", ".join(map(str, written)))


if __name__ == "__main__":
    sys.exit(main())
