"""Keys and secrets are decoded once, however often all of them are read."""

from duetime.domain.security.credentials import Credential
from duetime.stores.security_rows import CredentialRows, credential_text
from duetime.testing.store_contract.security.credentials import make_key, make_secret


def rows_of(*credentials: Credential) -> list[tuple[str, bytes]]:
    return [(each.id, credential_text(each).encode()) for each in credentials]


def test_credentials_that_did_not_change_are_the_same_objects() -> None:
    rows = CredentialRows()
    key, secret = rows.read(rows_of(make_key(), make_secret()))
    changed, same = rows.read(rows_of(make_key(name="other"), make_secret()))
    assert (key, changed, same) == (make_key(), make_key(name="other"), make_secret())
    assert same is secret


def test_credentials_that_are_gone_are_forgotten() -> None:
    rows = CredentialRows()
    (key,) = rows.read(rows_of(make_key()))
    assert rows.read([]) == []
    (again,) = rows.read(rows_of(make_key()))
    assert again == key
    assert again is not key
