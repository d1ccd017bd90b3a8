"""The description that a process gives of itself to other members."""

import pytest

from duetime.descriptors import DescriptorBudget
from duetime.engine_settings import engine_options
from duetime.settings import load_settings
from duetime.testing import VirtualClock


@pytest.mark.parametrize(("port", "url"), [("8080", "http://127.0.0.1:8080"), ("0", "")])
def test_members_are_told_an_address_that_is_known(port: str, url: str) -> None:
    env = {"AUTH": "none", "HOST": "127.0.0.1", "PORT": port}
    settings = load_settings(env, dotenv_path=None, toml_path=None)
    options = engine_options(settings, VirtualClock(), DescriptorBudget(4_096, 2_000, 1_000, 100))
    assert options.facts.url == url
