"""`duetime open` asks the server for a link, and shows it in the browser or prints it."""

import webbrowser
from pathlib import Path

import pytest

from tests.unit.cli.scripted_server import URL, ScriptedServer, invoke, refusal, scripted_server

PATH = "/api/v1/ui-links"
LINK = {"path": "/ui/sign-in?code=abc", "expiresAt": "2030-01-01T00:01:00Z"}
SCREENS = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ScriptedServer:
    monkeypatch.chdir(tmp_path)
    for name in SCREENS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    server = scripted_server(monkeypatch)
    server.answer("POST", PATH, LINK, 201)
    return server


class Browser:
    """Replaces the browsers of this machine."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, works: bool = True) -> None:
        self.shown: list[str] = []
        self._works = works
        monkeypatch.setattr(webbrowser, "open", self._open)

    def _open(self, url: str) -> bool:
        self.shown.append(url)
        return self._works


@pytest.mark.parametrize("screen", SCREENS)
def test_the_link_is_opened_and_its_code_not_shown(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, screen: str
) -> None:
    monkeypatch.setenv(screen, ":0")
    browser = Browser(monkeypatch)
    result = invoke("open", "--api-key", "k")
    assert (result.exit_code, result.stdout) == (0, f"Opened {URL}/ui in your browser.\n")
    assert browser.shown == [f"{URL}/ui/sign-in?code=abc"]
    (request,) = server.of("POST", PATH)
    assert request.headers["x-api-key"] == "k"


def test_without_a_screen_the_link_is_printed(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = Browser(monkeypatch)
    result = invoke("open")
    assert result.exit_code == 0
    assert result.stdout == f"{URL}/ui/sign-in?code=abc\n"
    assert "within a minute; it works once" in result.stderr
    assert browser.shown == []


def test_a_browser_that_fails_leaves_the_link(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    Browser(monkeypatch, works=False)
    assert invoke("open").stdout == f"{URL}/ui/sign-in?code=abc\n"


def test_print_opens_nothing(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    browser = Browser(monkeypatch)
    result = invoke("open", "--print")
    assert (result.stdout, result.stderr) == (f"{URL}/ui/sign-in?code=abc\n", "")
    assert browser.shown == []


@pytest.mark.parametrize("path", ["@evil.example/", "//evil.example", "/ui\n", "javascript:x"])
def test_a_link_to_elsewhere_is_not_opened(
    monkeypatch: pytest.MonkeyPatch, server: ScriptedServer, path: str
) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    browser = Browser(monkeypatch)
    server.answer("POST", PATH, {**LINK, "path": path}, 201)
    invoke("open")
    result = invoke("open")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"{URL} answered, but not as Duetime does\n"
    assert browser.shown == [f"{URL}/ui/sign-in?code=abc"]


def test_a_refusal_is_one_line(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.answer("POST", PATH, refusal("FORBIDDEN", "not for you"), 403)
    invoke("open")
    result = invoke("open")
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", "not for you\n")
