"""`python -m bench`: measure, print a table, leave `results.json` and `lateness.png`.

The exit code is 0 whether or not bounds hold: machines differ. It is 1 when something is wrong
whatever the machine: a timer lost, early or repeated, or a server that does not work.
"""

import argparse
import sys
from pathlib import Path

import msgspec
from rich.console import Console

from bench.child import ChildFailed
from bench.picture import draw
from bench.progress import Steps
from bench.report import print_report
from bench.scale import FULL, QUICK
from bench.server import ServerFailed
from bench.session import NAMES, run_session

DEFAULT_OUTPUT = Path(__file__).parent / "output"


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Measure Duetime beside its bare limits."
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the work, indicative only")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=NAMES,
        metavar="NAME",
        help=f"some of: {', '.join(NAMES)} (loaded repeats creates, burst, steady)",
    )
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT, metavar="DIR")
    return parser.parse_args()


def main() -> int:
    arguments = parse_arguments()
    output: Path = arguments.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    console = Console()
    try:
        with Steps(console) as steps:
            results = run_session(
                set(arguments.only or NAMES), QUICK if arguments.quick else FULL, output, steps
            )
    except (ServerFailed, ChildFailed) as error:
        console.print(f"[bold red]stopped:[/] {error}", highlight=False)
        return 1
    except KeyboardInterrupt:
        return 130
    (output / "results.json").write_bytes(msgspec.json.format(msgspec.json.encode(results)))
    drawn = draw(results, output / "lateness.png")
    print_report(results, console)
    console.print(f"{output}/results.json" + (f", {output}/lateness.png" if drawn else ""))
    return 1 if results.faults else 0


if __name__ == "__main__":
    sys.exit(main())
