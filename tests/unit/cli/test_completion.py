"""Completion of command lines, in a real bash."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from duetime.cli.main import COMMANDS

BASH = shutil.which("bash")

pytestmark = pytest.mark.skipif(BASH is None and not os.environ.get("CI"), reason="needs bash")

# Completes each line of standard input as bash does when Tab is pressed at its end.
SCRIPT = r"""
eval "$(duetime --show-completion)"
[ "$(complete -p duetime)" = "complete -o default -F _duetime_completion duetime" ] || exit 9
while IFS= read -r line; do
    read -ra COMP_WORDS <<< "$line"
    [[ $line == *" " ]] && COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    COMPREPLY=()
    _duetime_completion duetime
    echo "${COMPREPLY[*]}"
done
"""


def in_bash(script: str, directory: Path, stdin: str = "") -> str:
    (directory / "bin").mkdir()
    (directory / "bin" / "duetime").symlink_to(Path(sys.executable).with_name("duetime"))
    finished = subprocess.run(
        [BASH or "bash", "--norc", "-c", script],
        input=stdin,
        capture_output=True,
        text=True,
        cwd=directory,
        env={"PATH": f"{directory}/bin:/usr/bin:/bin", "HOME": str(directory)},
    )
    assert (finished.returncode, finished.stderr) == (0, "")
    return finished.stdout


def test_commands_options_and_values_are_completed(tmp_path: Path) -> None:
    lines = [
        "duetime ",
        "duetime re",
        "duetime list --status ",
        "duetime bus ",
        "duetime bus tail --l",
    ]
    output = in_bash(SCRIPT, tmp_path, "\n".join(lines) + "\n").splitlines()
    commands, beginning, statuses, group, option = (set(line.split()) for line in output)
    assert commands == set(COMMANDS)
    assert beginning == {"redrive", "reschedule", "restore"}
    assert statuses == {"pending", "executing", "completed", "failed", "canceled"}
    assert group == {"schedule", "cancel", "tail"}
    assert option == {"--last"}


def test_completion_is_installed_for_the_current_shell(tmp_path: Path) -> None:
    # The second command keeps bash from replacing itself with the first.
    output = in_bash("duetime --install-completion; true", tmp_path)
    assert output.startswith(f"bash completion installed in {tmp_path}")
    assert "source" in (tmp_path / ".bashrc").read_text()


def test_completing_a_known_command_imports_no_other(tmp_path: Path) -> None:
    script = """
import sys
from duetime.cli.main import main
try:
    main()
except SystemExit:
    print(" ".join(sys.modules))
"""
    environ = {"_DUETIME_COMPLETE": "complete_bash", "COMP_WORDS": "duetime\nlist\n--st"}
    finished = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=environ | {"COMP_CWORD": "2"},
    )
    completed, modules = finished.stdout.splitlines()
    assert completed == "--status"
    assert "duetime.cli.commands.run.serve" not in modules.split()
