"""The server and the key that a command uses."""

from pathlib import Path

import pytest

from duetime.cli.client.dev_server import DEV_KEY_PATH, DEV_URL_PATH, DevAnnouncement
from duetime.cli.client.server_lookup import find_key, find_url

DEV_URL = "http://127.0.0.1:18400"


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("given", "dotenv", "environ", "source"),
    [
        ("a", {}, {}, "--api-key"),
        ("a", {"API_KEY": "b"}, {"DUETIME_API_KEY": "a", "API_KEY": "c"}, "DUETIME_API_KEY"),
        ("c", {}, {"API_KEY": "c"}, "API_KEY"),
        (None, {"API_KEY": "b"}, {}, "API_KEY in .env"),
        (None, {"API_KEY": "b", "DUETIME_API_KEY": "d"}, {}, "DUETIME_API_KEY in .env"),
    ],
)
def test_the_source_of_a_key_is_known(
    given: str | None, dotenv: dict[str, str], environ: dict[str, str], source: str
) -> None:
    key = find_key(given, dotenv, environ)
    assert key is not None
    assert key.source == source


@pytest.mark.parametrize(
    ("dotenv", "environ", "url"),
    [
        ({}, {}, "http://127.0.0.1:8080"),
        ({"PORT": "18300"}, {}, "http://127.0.0.1:18300"),
        ({"PORT": "18300"}, {"PORT": "18301"}, "http://127.0.0.1:18301"),
        ({}, {"PORT": "18301"}, "http://127.0.0.1:18301"),
        ({"PORT": "18300"}, {"PORT": ""}, "http://127.0.0.1:8080"),
        ({"PORT": "18300"}, {"PORT": "0"}, "http://127.0.0.1:8080"),
        ({"DUETIME_URL": "http://x"}, {"PORT": "18301"}, "http://x"),
    ],
)
def test_a_server_is_looked_for_where_it_would_listen(
    dotenv: dict[str, str], environ: dict[str, str], url: str
) -> None:
    assert find_url(dotenv, environ) == url


def test_a_running_dev_is_found_with_its_own_key(directory: Path) -> None:
    dotenv = {"API_KEY": "of-serve", "PORT": "18300"}
    (directory / DEV_KEY_PATH).write_text("of-dev\n")
    announcement = DevAnnouncement(DEV_URL, directory)
    assert find_url(dotenv, {}) == DEV_URL
    for url in (DEV_URL, "http://localhost:18400"):
        key = find_key(None, dotenv, {}, url=url)
        assert key is not None
        assert key.text == "of-dev"
    for given, url in ((None, "http://127.0.0.1:18300"), ("of-serve", DEV_URL)):
        key = find_key(given, dotenv, {}, url=url)
        assert key is not None
        assert key.text == "of-serve"
    announcement.withdraw()
    assert find_url(dotenv, {}) == "http://127.0.0.1:18300"
    assert list(directory.iterdir()) == [directory / DEV_KEY_PATH]


def test_the_file_of_a_killed_dev_misleads_nobody(directory: Path) -> None:
    (directory / DEV_URL_PATH).write_text(f"{DEV_URL}\n")
    assert find_url({}, {}) == "http://127.0.0.1:8080"


def test_the_later_dev_of_a_directory_is_found(directory: Path) -> None:
    first = DevAnnouncement(DEV_URL, directory)
    second = DevAnnouncement("http://127.0.0.1:18402", directory)
    first.withdraw()
    assert find_url({}, {}) == "http://127.0.0.1:18402"
    second.withdraw()
    assert find_url({}, {}) == "http://127.0.0.1:8080"
