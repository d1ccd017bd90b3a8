"""The example file and the reference page agree with the code."""

import re
from pathlib import Path

from duetime.settings import load_settings
from duetime.settings.definitions import SETTINGS
from duetime.settings.reference import EXAMPLE_PATH, PAGE_PATH, example_text, page_text

ROOT = Path(__file__).resolve().parents[3]
REWRITE = "rewrite it with: .venv/bin/python -m duetime.settings.reference"

DEFAULTS = {name: setting.default or "" for name, setting in SETTINGS.items()}


def test_files_are_made_from_the_definitions() -> None:
    assert (ROOT / EXAMPLE_PATH).read_text(encoding="utf-8") == example_text(), REWRITE
    assert (ROOT / PAGE_PATH).read_text(encoding="utf-8") == page_text(), REWRITE


def test_example_lists_every_setting_with_its_default() -> None:
    text = (ROOT / EXAMPLE_PATH).read_text(encoding="utf-8")
    listed = dict(re.findall(r"^#?([A-Z_]+)=(.*)$", text, re.MULTILINE))
    placeholder = listed.pop("API_KEY")
    assert len(placeholder) >= 32
    assert listed == {name: text for name, text in DEFAULTS.items() if name != "API_KEY"}


def test_page_lists_every_setting_with_its_default() -> None:
    text = (ROOT / PAGE_PATH).read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([A-Z_]+)` \| (?:`(.*?)`|none) \| .+ \| .+ \|$", text, re.MULTILINE)
    assert {name: default for name, default in rows if name in SETTINGS} == DEFAULTS


def test_example_loads_as_it_is() -> None:
    example = load_settings({}, dotenv_path=ROOT / EXAMPLE_PATH)
    defaults = load_settings({"API_KEY": example.api_key or ""}, dotenv_path=None)
    assert example == defaults
