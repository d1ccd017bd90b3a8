"""The pictures of the Web UI in the documentation: all of them are there, shown, and small."""

from pathlib import Path

from docs.site.screenshots import FOLDER, MAX_BYTES, SHOTS, SIGN_IN

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/web-ui.md"


def test_every_picture_is_taken_shown_and_small() -> None:
    taken = {path.name: path.stat().st_size for path in FOLDER.iterdir()}
    assert set(taken) == {f"{name}.png" for name in (SIGN_IN, *(shot.name for shot in SHOTS))}
    assert max(taken.values()) <= MAX_BYTES, taken
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in taken if f"(../images/ui/{name})" not in text] == []
