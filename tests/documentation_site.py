"""The site of the documentation, built as `make docs` builds it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.polling import PATIENCE_SECONDS

ROOT = Path(__file__).resolve().parents[1]


def build_site(directory: Path, root: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Build the documentation of a repository into `site` in the directory."""
    staged = _run(sys.executable, str(root / "docs/site/stage.py"), str(directory))
    if staged.returncode:
        return staged
    zensical = str(Path(sys.executable).with_name("zensical"))
    return _run(zensical, "build", "--strict", "--config-file", str(directory / "zensical.toml"))


def small_repository(directory: Path, **pages: str) -> Path:
    """A repository whose documentation has these pages and our own site."""
    shutil.copytree(ROOT / "docs" / "site", directory / "docs" / "site")
    for name, text in pages.items():
        (directory / "docs" / f"{name}.md").write_text(text, encoding="utf-8")
    return directory


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
        env={**os.environ, "NO_COLOR": "1"},
    )
