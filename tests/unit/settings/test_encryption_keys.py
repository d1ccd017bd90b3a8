"""ENCRYPTION_KEYS."""

from base64 import b64encode, urlsafe_b64encode
from pathlib import Path

import pytest

from duetime.domain.errors import SettingsError
from duetime.settings import Settings, load_settings

SECRETS = [bytes([number, 0xFB, 0xFF]) + bytes(29) for number in range(2)]
FIRST = b64encode(SECRETS[0]).decode()


def loaded(text: str, tmp_path: Path) -> Settings:
    environ = {"AUTH": "none", "DATABASE_URL": "memory:", "ENCRYPTION_KEYS": text}
    return load_settings(environ, tmp_path / "none")


def test_keys_are_read_in_order_and_never_shown(tmp_path: Path) -> None:
    text = f"k1:{FIRST}, new_key-2:{urlsafe_b64encode(SECRETS[1]).decode()}"
    settings = loaded(text, tmp_path)
    assert settings.encryption_keys == (("k1", SECRETS[0]), ("new_key-2", SECRETS[1]))
    assert "k1" not in repr(settings)
    assert loaded("", tmp_path).encryption_keys is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (FIRST, "key 1 has no id"),
        (f"k1:{FIRST},", "key 2 has no id"),
        (f"a b:{FIRST}", "key 1 has no id"),
        (f"k1:{FIRST[:-4]}", "the key 'k1' has 30"),
        (f"k1:{FIRST[1:]}", "the key 'k1' is not base64"),
        (f"k1:{FIRST},k1:{FIRST}", "'k1' is there more than once"),
    ],
)
def test_bad_keys_are_refused_without_being_shown(text: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as refused:
        loaded(text, tmp_path)
    assert refused.value.message.startswith("ENCRYPTION_KEYS: must be ")
    assert problem in refused.value.message
    assert FIRST[:8] not in refused.value.message
