"""Another program with a read transaction on an SQLite file."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_READ = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1])
database.execute("BEGIN")
database.execute("SELECT count(*) FROM sqlite_schema").fetchone()
print("reading", flush=True)
sys.stdin.read()
"""


@contextmanager
def foreign_reader(path: Path, launcher: Sequence[str] = ()) -> Iterator[int]:
    """Its process id. The program ends with the block; `launcher` is a command that starts it."""
    command = [*launcher, sys.executable, "-c", _READ, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"reading\n"
        # Its input ends when the block is left, and its end is waited for.
        yield process.pid
