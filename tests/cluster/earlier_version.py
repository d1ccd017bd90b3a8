"""The code of an earlier version, taken from the history of the repository."""

import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

EARLIER_COMMIT = "067545ea6646e862cf242edd359a6e776455e34b"
"""The version whose nodes must work beside new ones. Until there are releases it is a commit with
the first of the present migrations only; then it is the release before. A migration that its nodes
cannot live with has to wait until this has moved on."""

ROOT = Path(__file__).resolve().parents[2]


def check_out(directory: Path, commit: str = EARLIER_COMMIT) -> dict[str, str]:
    """Write the code to the directory. Answers the setting with which `duetime` runs it.

    Skips the test where the history is missing, as in a shallow clone; fails where CI is set."""
    archive = subprocess.run(
        ["git", "-C", str(ROOT), "archive", "--format=tar", commit, "src"],
        capture_output=True,
        check=False,
    )
    if archive.returncode:
        missing = (
            f"the commit {commit[:12]} of an earlier version is missing: `git fetch --unshallow`"
        )
        if os.environ.get("CI"):
            pytest.fail(missing, pytrace=False)
        pytest.skip(missing)
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(directory, filter="data")
    return {"PYTHONPATH": str(directory / "src")}
