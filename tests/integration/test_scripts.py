"""The scripts of the Web UI: TypeScript finds no error in their types, and they stay few."""

import re
import subprocess
from pathlib import Path

from tests.polling import PATIENCE_SECONDS
from tests.toolchain import tool

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted((ROOT / "src/duetime/web/static").glob("*.js"))
MAX_LINES = 600
"""Lines of code of all scripts together, without blank lines and comments."""

COMMENTS = re.compile(r"^\s*/\*.*?\*/|^\s*//[^\n]*", re.MULTILINE | re.DOTALL)


def lines_of_code(path: Path) -> int:
    code = COMMENTS.sub("", path.read_text(encoding="utf-8"))
    return sum(1 for line in code.splitlines() if line.strip())


def test_types_of_scripts_are_right() -> None:
    checked = subprocess.run(
        [tool("tsc"), "--project", ROOT / "jsconfig.json"],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_scripts_stay_few() -> None:
    lines = {path.name: lines_of_code(path) for path in SCRIPTS}
    assert 0 < sum(lines.values()) <= MAX_LINES, lines
