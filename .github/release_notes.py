"""Print the notes of a release: `python .github/release_notes.py v0.1.0`.

The notes are the section of that version in CHANGELOG.md. The exit code is 1, and one line says
why, if the tag is not the version of the package, or if the section is missing, undated or empty.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)


class NotReady(Exception):
    """The version cannot be released. The message says what to change first."""


def release_notes(tag: str, root: Path) -> str:
    """The text below the heading of the tag's version."""
    found = _VERSION.search((root / "src/duetime/__init__.py").read_text(encoding="utf-8"))
    version = found[1] if found else "unknown"
    if tag != f"v{version}":
        raise NotReady(
            f"the tag {tag} is not v{version}: set __version__ in src/duetime/__init__.py"
        )
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    heading = rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d\n(.*?)(?=^## \[|\Z)"
    section = re.search(heading, changelog, re.MULTILINE | re.DOTALL)
    if section is None or not section[1].strip():
        raise NotReady(
            f"CHANGELOG.md has no section '## [{version}] - YYYY-MM-DD' with text: "
            "rename 'Unreleased' and add the day"
        )
    return section[1].strip() + "\n"


if __name__ == "__main__":
    try:
        sys.stdout.write(release_notes(sys.argv[1], ROOT))
    except NotReady as reason:
        sys.exit(f"not ready for a release: {reason}")
