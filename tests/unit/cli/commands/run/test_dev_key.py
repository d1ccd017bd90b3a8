"""The API key of `duetime dev`."""

import stat
from pathlib import Path

from duetime.cli.client.dev_server import DEV_KEY_PATH
from duetime.cli.commands.run.dev import dev_api_key


def test_only_the_owner_can_read_a_new_key(tmp_path: Path) -> None:
    key = dev_api_key({}, tmp_path)
    assert len(key) >= 32
    assert dev_api_key({}, tmp_path) == key
    assert stat.S_IMODE((tmp_path / DEV_KEY_PATH).stat().st_mode) == 0o600


def test_a_given_key_takes_precedence_and_the_one_of_serve_does_not(tmp_path: Path) -> None:
    made = dev_api_key({}, tmp_path)
    (tmp_path / ".env").write_text("API_KEY=from-dotenv")
    assert dev_api_key({}, tmp_path) == made
    assert dev_api_key({"API_KEY": "from-environment"}, tmp_path) == "from-environment"
    assert (tmp_path / DEV_KEY_PATH).read_text().strip() == made
