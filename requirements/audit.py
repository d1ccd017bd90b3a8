"""Audit the locks for known vulnerabilities: `python requirements/audit.py`.

The exit code is 1 if a locked version has a known vulnerability, or a lock cannot be read. Where
the data cannot be reached in time, one line says so, and the exit code is 0. Further options are
passed on to pip-audit.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LIMIT_SECONDS = 40.0
"""Time for all answers. pip-audit keeps them, so the next audit needs fewer."""

ANSWER_SECONDS = "5"

IGNORED: dict[str, str] = {}
"""Vulnerabilities that do not concern Duetime, by their id, with the reason."""

HERE = Path(__file__).resolve().parent


def main(options: list[str]) -> int:
    locks = [option for lock in sorted(HERE.glob("*.txt")) for option in ("-r", str(lock))]
    # Everything is pinned with hashes, so nothing is resolved or installed.
    command = [sys.executable, "-m", "pip_audit", *locks, "--disable-pip", "--format", "json"]
    command += ["--progress-spinner", "off", "--timeout", ANSWER_SECONDS, *options]
    command += [option for each in IGNORED for option in ("--ignore-vuln", each)]
    read = subprocess.run([*command, "--dry-run"], capture_output=True, text=True, check=False)
    if read.returncode:
        print(f"vulnerabilities: the locks cannot be audited: {last_line(read.stderr)}")
        return 1
    try:
        audit = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS
        )
    except subprocess.TimeoutExpired:
        return skipped(f"not all answers came within {LIMIT_SECONDS:g} s")
    if not audit.stdout.strip():
        return skipped(last_line(audit.stderr))
    return judge(json.loads(audit.stdout)["dependencies"])


def judge(dependencies: list[dict[str, Any]]) -> int:
    by_name = {(each["name"], each.get("version")): each for each in dependencies}
    unknown = sorted(each["name"] for each in by_name.values() if "skip_reason" in each)
    audited = len(by_name) - len(unknown)
    if not audited:
        return skipped("the index knows none of the locked versions")
    found = [line for each in by_name.values() for line in findings(each)]
    for line in found:
        print(line)
    print(f"vulnerabilities: {len(found)} known in {audited} locked versions")
    if unknown:
        print(f"vulnerabilities: not audited, because the index has no data: {', '.join(unknown)}")
    return 1 if found else 0


def findings(dependency: dict[str, Any]) -> Iterator[str]:
    for each in dependency.get("vulns", ()):
        fixed = ", ".join(each["fix_versions"]) or "no version yet"
        names = " ".join([each["id"], *each.get("aliases", ())])
        yield f"{dependency['name']} {dependency['version']}: {names}; fixed in {fixed}"


def skipped(reason: str) -> int:
    print(f"vulnerabilities: SKIPPED, their data cannot be reached: {reason}")
    return 0


def last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no reason given"])[-1][:300]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
