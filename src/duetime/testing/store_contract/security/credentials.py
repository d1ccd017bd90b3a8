"""Keys and secrets: every change is seen once, and uses never go back."""

import asyncio

import pytest
from msgspec.structs import replace

from duetime.domain.errors import InvalidInput, StoreUnavailable
from duetime.domain.security.access import Role
from duetime.domain.security.credentials import (
    ApiKey,
    Credential,
    RateLimit,
    SecretKind,
    UiLink,
    UiSession,
    WebhookSecret,
)
from duetime.ports.security import SecurityStore
from duetime.testing.store_contract.durability import durable
from duetime.testing.store_contract.steps import Reopen, Store, at

ODD_TEXT = 'it\'s "quoted" \\ ; -- $1 ?1 %s \0 \t é 😀 \u2028'


def make_key(id: str = "k1", **changes: object) -> ApiKey:
    key = ApiKey(
        id=id, name=f"name of {id}", secret_sha256="ab" * 32, created_at=at(0), roles=(Role.READ,)
    )
    return replace(key, **changes)


def make_secret(id: str = "s1", **changes: object) -> WebhookSecret:
    secret = WebhookSecret(id=id, namespace="default", secret="whsec_MTIz", created_at=at(0))
    return replace(secret, **changes)


async def version_of(security: SecurityStore) -> int:
    answer = await security.credentials(None)
    assert answer is not None
    return answer.version


async def stored(
    security: SecurityStore, known_version: int | None = None
) -> dict[str, Credential]:
    answer = await security.credentials(known_version)
    assert answer is not None, "nothing changed"
    assert len({each.id for each in answer.credentials}) == len(answer.credentials)
    return {each.id: each for each in answer.credentials}


@pytest.mark.asyncio
class CredentialsContract:
    async def test_a_new_store_has_no_credentials(self, store: Store) -> None:
        assert await stored(store.security) == {}
        assert await store.security.last_uses() == {}

    async def test_every_field_of_a_credential_is_kept(self, store: Store, reopen: Reopen) -> None:
        credentials: list[Credential] = [
            make_key("plain"),
            make_key(
                "full",
                name=ODD_TEXT,
                roles=tuple(Role),
                namespaces=("default", ODD_TEXT),
                expires_at=at(9.000001),
                rate_limit=RateLimit(per_second=0.5, burst=7),
                max_concurrent=3,
            ),
            make_key("nothing", roles=(), namespaces=()),
            make_secret("hmac"),
            make_secret(
                "ed25519",
                namespace=ODD_TEXT,
                secret="sealed:" + "x" * 10_000,
                kind=SecretKind.ED25519,
                expires_at=at(-5),
                is_sealed=True,
            ),
            UiSession(id="session", created_at=at(0), expires_at=at(1), key_id="plain"),
            UiLink(id="link", created_at=at(0), expires_at=at(1), key_proof="ab" * 32),
        ]
        for each in credentials:
            assert await store.security.add_credential(each)
        expected = {each.id: each for each in credentials}
        assert await stored(store.security) == expected
        assert await stored((await durable(store, reopen)).security) == expected

    async def test_a_known_version_is_answered_with_nothing(self, store: Store) -> None:
        version = await version_of(store.security)
        assert await store.security.credentials(version) is None
        await store.security.add_credential(make_key())
        assert await stored(store.security, version) == {"k1": make_key()}
        newer = await version_of(store.security)
        assert newer > version
        assert await store.security.credentials(newer) is None
        # A node may know a version of a store that was lost since.
        assert await stored(store.security, newer + 1_000) == {"k1": make_key()}

    async def test_every_change_makes_a_greater_version(self, store: Store) -> None:
        security = store.security
        versions = [await version_of(security)]
        for change in (
            security.add_credential(make_key()),
            security.add_credential(make_secret()),
            security.replace_credential(make_key(name="other")),
            # Equal content may be a change that a node missed.
            security.replace_credential(make_key(name="other")),
            security.remove_credential("s1"),
        ):
            assert await change
            versions.append(await version_of(security))
        assert versions == sorted(set(versions))
        assert await stored(security) == {"k1": make_key(name="other")}

    async def test_a_change_that_does_not_apply_changes_nothing(self, store: Store) -> None:
        security = store.security
        await security.add_credential(make_key())
        version = await version_of(security)
        assert not await security.add_credential(make_key(name="second"))
        assert not await security.add_credential(make_secret("k1"))
        assert not await security.replace_credential(make_key("unknown"))
        assert not await security.remove_credential("unknown")
        assert await security.credentials(version) is None
        assert await stored(security) == {"k1": make_key()}

    async def test_a_removed_id_can_be_added_again(self, store: Store) -> None:
        security = store.security
        await security.add_credential(make_key())
        await security.note_uses({"k1": at(5)})
        assert await security.remove_credential("k1")
        assert not await security.remove_credential("k1")
        assert await security.last_uses() == {}
        assert await security.add_credential(make_key())
        assert await security.last_uses() == {}

    async def test_a_secret_may_replace_a_key(self, store: Store) -> None:
        await store.security.add_credential(make_key("a"))
        assert await store.security.replace_credential(make_secret("a"))
        assert await stored(store.security) == {"a": make_secret("a")}

    async def test_a_credential_is_replaced_only_if_it_is_the_expected_one(
        self, store: Store
    ) -> None:
        security = store.security
        key, secret = make_key(namespaces=("a", ODD_TEXT)), make_secret(expires_at=at(9))
        for credential in (key, secret):
            await security.add_credential(credential)
            changed = replace(credential, expires_at=at(5))
            assert await security.replace_credential(changed, expected=credential)
            version = await version_of(security)
            late = replace(credential, expires_at=at(7))
            assert not await security.replace_credential(late, expected=credential)
            assert not await security.replace_credential(late, expected=make_key("other"))
            assert await security.credentials(version) is None
            assert (await stored(security))[credential.id] == changed
        unknown = make_key("unknown")
        assert not await security.replace_credential(unknown, expected=unknown)

    async def test_of_many_replacements_of_one_credential_at_once_one_counts(
        self, store: Store
    ) -> None:
        await store.security.add_credential(make_key())
        changed = [make_key(name=str(n)) for n in range(20)]
        replaced = await asyncio.gather(
            *(store.security.replace_credential(each, expected=make_key()) for each in changed)
        )
        assert replaced.count(True) == 1
        assert await stored(store.security) == {"k1": changed[replaced.index(True)]}

    async def test_the_last_use_never_goes_back(self, store: Store) -> None:
        security = store.security
        for id in ("a", "b", "c"):
            await security.add_credential(make_key(id))
        await security.note_uses({"a": at(5), "b": at(5), "unknown": at(9)})
        await security.note_uses({"a": at(4), "b": at(6)})
        await security.note_uses({})
        assert await security.last_uses() == {"a": at(5), "b": at(6)}
        await security.replace_credential(make_key("a", name="other"))
        assert await security.last_uses() == {"a": at(5), "b": at(6)}

    async def test_a_use_is_no_change(self, store: Store) -> None:
        await store.security.add_credential(make_key())
        version = await version_of(store.security)
        await store.security.note_uses({"k1": at(5)})
        assert await store.security.credentials(version) is None

    async def test_of_many_adds_of_one_id_at_once_one_counts(self, store: Store) -> None:
        keys = [make_key(name=str(n)) for n in range(20)]
        added = await asyncio.gather(*map(store.security.add_credential, keys))
        assert added.count(True) == 1
        assert await stored(store.security) == {"k1": keys[added.index(True)]}

    async def test_no_change_at_once_with_others_is_missed(self, store: Store) -> None:
        """A node that asks with the version it knows has everything in the end, and each answer is
        of one moment."""
        security = store.security
        version = await version_of(security)
        seen: dict[str, Credential] = {}

        async def change(number: int) -> None:
            await security.add_credential(make_key(f"k{number}"))
            await security.replace_credential(make_key(f"k{number}", name="replaced"))
            if number % 2:
                await security.remove_credential(f"k{number}")

        changes = asyncio.gather(*map(change, range(20)))
        while not changes.done():
            await asyncio.wait([changes], timeout=0)
            answer = await security.credentials(version)
            if answer is not None:
                assert answer.version > version
                version = answer.version
                seen = {each.id: each for each in answer.credentials}
        await changes
        last = await security.credentials(version)
        if last is not None:
            seen = {each.id: each for each in last.credentials}
        assert seen == {f"k{n}": make_key(f"k{n}", name="replaced") for n in range(0, 20, 2)}

    @pytest.mark.parametrize(
        ("credential", "field"),
        [
            (make_key("lone \udc80"), "id"),
            (make_key("nul \0"), "id"),
            (make_key(name="lone \udc80"), "name"),
            (make_key(namespaces=("lone \udc80",)), "namespaces"),
            (make_secret(namespace="lone \udc80"), "namespace"),
        ],
    )
    async def test_text_that_cannot_be_kept_is_refused(
        self, store: Store, credential: Credential, field: str
    ) -> None:
        """A replacement might be the name of another namespace."""
        version = await version_of(store.security)
        for change in (store.security.add_credential, store.security.replace_credential):
            with pytest.raises(InvalidInput) as refused:
                await change(credential)
            assert refused.value.field == field
        assert await store.security.credentials(version) is None

    @pytest.mark.parametrize("id", ["", "nul \0", "lone \udc80", "' OR true --", "x" * 100_000])
    async def test_an_id_of_any_text_may_be_asked_for(self, store: Store, id: str) -> None:
        assert not await store.security.remove_credential(id)
        await store.security.note_uses({id: at(1)})
        assert await store.security.last_uses() == {}

    async def test_credentials_and_their_uses_survive(self, store: Store, reopen: Reopen) -> None:
        security = store.security
        for credential in (make_key("a"), make_key("b"), make_secret("c")):
            await security.add_credential(credential)
        await security.replace_credential(make_key("b", name="other"))
        await security.remove_credential("c")
        await security.note_uses({"a": at(5)})
        version = await version_of(security)
        reopened = (await durable(store, reopen)).security
        assert await reopened.credentials(version) is None
        assert await stored(reopened) == {"a": make_key("a"), "b": make_key("b", name="other")}
        assert await reopened.last_uses() == {"a": at(5)}

    async def test_a_durable_store_that_is_closed_is_unavailable(
        self, store: Store, reopen: Reopen
    ) -> None:
        if not store.capabilities.durable:
            return
        await store.close()
        for use in (
            store.security.credentials(None),
            store.security.add_credential(make_key()),
            store.security.last_uses(),
        ):
            with pytest.raises(StoreUnavailable):
                await use
        await reopen()
