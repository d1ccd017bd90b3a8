"""Secrets are created, listed, rotated and revoked, and sign as long as they should."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from duetime.delivery.signing import make_signer
from duetime.domain.errors import (
    InvalidInput,
    LocalShortage,
    NamespaceDeleting,
    NoSuchNamespace,
    SecretConfigured,
    SecretNotFound,
    TooManySecrets,
)
from duetime.domain.instants import Instant, plus_ms
from duetime.domain.limits import MAX_SECRET_OVERLAP_MS, MAX_SECRETS
from duetime.domain.namespace import ConfiguredNamespace
from duetime.domain.security.credentials import SecretKind, WebhookSecret
from duetime.domain.security.secret_text import format_secret, parse_secret
from duetime.sealing.sealer import Sealer, SealingKey
from duetime.sealing.webhook_secrets import SecretSealer
from duetime.service.namespaces import Namespaces
from duetime.service.security.credential_watch import CredentialWatch
from duetime.service.security.known_signers import KnownSigners, text_of
from duetime.service.security.webhook_secrets import NewSecret, WebhookSecrets
from duetime.stores.memory import MemoryStore
from duetime.testing import VirtualClock

HOUR_MS = 3_600_000
K1, K2, K3 = (SealingKey(f"k{number}", bytes([number] * 32)) for number in (1, 2, 3))
CONFIGURED = format_secret(SecretKind.HMAC, b"c" * 32)


class Node:
    """A process with its view of a store that others may share."""

    def __init__(
        self,
        store: MemoryStore,
        clock: VirtualClock,
        configured: tuple[str, ...] = (),
        keys: tuple[SealingKey, ...] | None = None,
    ) -> None:
        sealer = SecretSealer(Sealer(keys or ()))
        self.store = store
        self.clock = clock
        self.signers = KnownSigners(
            clock,
            make_signer,
            configured=configured,
            open_secret=sealer.text_of if keys is not None else text_of,
        )
        self.watch = CredentialWatch(store.security, clock)
        self.watch.subscribe(self.signers.see)
        self.namespaces = Namespaces(store)
        self.secrets = WebhookSecrets(
            store.security, self.watch, self.signers, self.namespaces, clock, seal=sealer.sealed
        )

    def signatures(self, namespace: str = "orders") -> set[bytes]:
        return {each.sign(b"id.1.body") for each in self.signers.signers(namespace)}

    async def ids(self, namespace: str = "orders") -> list[str]:
        return [each.id for each in await self.secrets.current(namespace)]


def sealing_node(node: Node, *keys: SealingKey) -> Node:
    """Another process on the same store, with these encryption keys."""
    return Node(node.store, node.clock, keys=keys)


def signature(*secrets: NewSecret | str) -> set[bytes]:
    texts = [each if isinstance(each, str) else each.text for each in secrets]
    return {make_signer(*parse_secret(text)).sign(b"id.1.body") for text in texts}


@pytest.fixture
async def node() -> Node:
    node = Node(MemoryStore(), VirtualClock())
    names = (ConfiguredNamespace("default"), ConfiguredNamespace("orders"))
    await node.namespaces.add_all(names)
    return node


@pytest.fixture
async def configured(node: Node) -> Node:
    return Node(node.store, node.clock, (CONFIGURED,))


async def test_a_new_secret_signs_at_once_and_only_in_its_namespace(node: Node) -> None:
    assert node.signatures() == set()
    new = await node.secrets.create("orders")
    assert new.text.startswith("whsec_")
    assert node.signatures() == signature(new)
    assert node.signatures("default") == set()


async def test_secrets_are_never_the_same(node: Node) -> None:
    new = [await node.secrets.create("orders") for _ in range(5)]
    assert len({each.text for each in new}) == len({each.listed.id for each in new}) == 5


async def test_another_node_signs_with_the_secret_once_it_has_looked(node: Node) -> None:
    other = Node(node.store, node.clock)
    new = await node.secrets.create("orders")
    assert other.signatures() == set()
    await other.watch.refresh()
    assert other.signatures() == signature(new)


@pytest.mark.parametrize("hours", [(1, 24), (24, 1)])
async def test_of_two_rotations_at_once_the_shorter_overlap_counts(
    node: Node, hours: tuple[int, int]
) -> None:
    old = await node.secrets.create("orders")
    other = Node(node.store, node.clock)
    replace_credential = node.store.security.replace_credential

    async def rotate_elsewhere_first(*args: Any, **options: Any) -> bool:
        node.store.security.replace_credential = replace_credential  # type: ignore[method-assign]
        await other.secrets.create("orders", expire_others_after_ms=hours[0] * HOUR_MS)
        return await replace_credential(*args, **options)

    node.store.security.replace_credential = rotate_elsewhere_first  # type: ignore[method-assign]
    await node.secrets.create("orders", expire_others_after_ms=hours[1] * HOUR_MS)
    current = {each.id: each.expires_at for each in await node.secrets.current("orders")}
    assert current[old.listed.id] == plus_ms(node.clock.now(), HOUR_MS)


async def test_a_rotation_lets_all_sign_and_then_only_the_new_one(node: Node) -> None:
    old = await node.secrets.create("orders")
    node.clock.advance(1)
    new = await node.secrets.create("orders", expire_others_after_ms=24 * HOUR_MS)
    expiries = [each.expires_at for each in await node.secrets.current("orders")]
    assert expiries == [plus_ms(node.clock.now(), 24 * HOUR_MS), None]
    node.clock.advance(24 * 3_600 - 1)
    assert node.signatures() == signature(old, new)
    node.clock.advance(1)
    assert node.signatures() == signature(new)
    assert await node.ids() == [new.listed.id]
    stored = await node.store.security.credentials(None)
    assert stored is not None
    assert [each.id for each in stored.credentials] == [new.listed.id]


async def test_a_rotation_without_overlap_ends_the_others_at_once(node: Node) -> None:
    await node.secrets.create("orders")
    new = await node.secrets.create("orders", expire_others_after_ms=0)
    assert node.signatures() == signature(new)


async def test_a_second_rotation_does_not_prolong_the_first(node: Node) -> None:
    first = await node.secrets.create("orders")
    second = await node.secrets.create("orders", expire_others_after_ms=HOUR_MS)
    third = await node.secrets.create("orders", expire_others_after_ms=24 * HOUR_MS)
    assert node.signatures() == signature(first, second, third)
    node.clock.advance(3_600)
    assert node.signatures() == signature(second, third)


async def test_a_rotation_leaves_secrets_of_the_other_type(node: Node) -> None:
    public = await node.secrets.create("orders", SecretKind.ED25519)
    await node.secrets.create("orders", SecretKind.HMAC)
    new = await node.secrets.create("orders", SecretKind.HMAC, 0)
    assert node.signatures() == signature(public, new)


async def test_without_a_type_the_new_secret_is_like_the_others(node: Node) -> None:
    await node.secrets.create("orders", SecretKind.ED25519)
    new = await node.secrets.create("orders", expire_others_after_ms=0)
    assert new.text.startswith("whsk_")
    await node.secrets.create("orders", SecretKind.HMAC)
    with pytest.raises(InvalidInput, match="type is needed"):
        await node.secrets.create("orders")


async def test_hmac_signs_first(node: Node) -> None:
    await node.secrets.create("orders", SecretKind.ED25519)
    await node.secrets.create("orders", SecretKind.HMAC)
    versions = [each.sign(b"id.1.").partition(b",")[0] for each in node.signers.signers("orders")]
    assert versions == [b"v1", b"v1a"]


@pytest.mark.parametrize("overlap_ms", [-1, MAX_SECRET_OVERLAP_MS + 1])
async def test_an_overlap_has_bounds(node: Node, overlap_ms: int) -> None:
    with pytest.raises(InvalidInput, match="expire_others_after must be from 0s to 30d"):
        await node.secrets.create("orders", expire_others_after_ms=overlap_ms)


async def test_a_revoked_secret_signs_no_more(node: Node) -> None:
    first, second = [await node.secrets.create("orders") for _ in range(2)]
    await node.secrets.revoke("orders", first.listed.id)
    assert node.signatures() == signature(second)
    with pytest.raises(SecretNotFound):
        await node.secrets.revoke("orders", first.listed.id)


async def test_a_secret_is_revoked_by_its_own_namespace_only(node: Node) -> None:
    new = await node.secrets.create("orders")
    with pytest.raises(SecretNotFound):
        await node.secrets.revoke("default", new.listed.id)
    assert node.signatures() == signature(new)


async def test_a_namespace_has_a_limited_number_of_secrets(node: Node) -> None:
    for _ in range(MAX_SECRETS):
        await node.secrets.create("orders")
    with pytest.raises(TooManySecrets, match="has 10 secrets: revoke one first"):
        await node.secrets.create("orders")
    with pytest.raises(TooManySecrets):
        await node.secrets.create("orders", expire_others_after_ms=1)
    new = await node.secrets.create("orders", expire_others_after_ms=0)
    assert node.signatures() == signature(new)


async def test_an_unknown_namespace_has_no_secrets(node: Node) -> None:
    with pytest.raises(NoSuchNamespace):
        await node.secrets.create("unknown")
    with pytest.raises(NoSuchNamespace):
        await node.secrets.current("unknown")
    with pytest.raises(NoSuchNamespace):
        await node.secrets.revoke("unknown", "id")


async def test_a_namespace_that_is_being_deleted_gets_no_secret(node: Node) -> None:
    await node.namespaces.mark_deleting("orders", deleting=True)
    with pytest.raises(NamespaceDeleting):
        await node.secrets.create("orders")


async def test_only_secrets_older_than_the_deletion_are_forgotten(node: Node) -> None:
    await node.secrets.create("orders")
    marked_at = node.clock.now()
    node.clock.advance(1)
    new = await node.secrets.create("orders")
    other = await node.secrets.create("default")
    await node.secrets.forget("orders", marked_at)
    assert node.signatures() == signature(new)
    assert node.signatures("default") == signature(other)


async def test_configured_secrets_sign_besides_the_stored_ones(configured: Node) -> None:
    assert configured.signatures("default") == signature(CONFIGURED)
    new = await configured.secrets.create("default")
    assert configured.signatures("default") == signature(CONFIGURED, new)
    listed = await configured.secrets.current("default")
    assert [(each.id, each.created_at is None) for each in listed] == [
        ("configured-1", True),
        (new.listed.id, False),
    ]


async def test_configured_secrets_are_neither_revoked_nor_rotated(configured: Node) -> None:
    with pytest.raises(SecretConfigured, match="take it out of WEBHOOK_SECRETS"):
        await configured.secrets.revoke("default", "configured-1")
    new = await configured.secrets.create("default", expire_others_after_ms=0)
    assert configured.signatures("default") == signature(CONFIGURED, new)


async def test_public_keys_are_those_of_the_namespaces_current_ed25519_secrets(node: Node) -> None:
    assert node.secrets.public_keys("orders") == {}
    await node.secrets.create("default", SecretKind.HMAC)
    old = await node.secrets.create("orders", SecretKind.ED25519)
    new = await node.secrets.create("orders", SecretKind.ED25519, HOUR_MS)
    assert node.secrets.public_keys("orders") == {
        old.listed.id: old.listed.public_key,
        new.listed.id: new.listed.public_key,
    }
    assert node.secrets.public_keys("default") == node.secrets.public_keys("unknown") == {}
    node.clock.advance(3_600)
    assert list(node.secrets.public_keys("orders")) == [new.listed.id]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"secret": "whsec_@"}, "whsec_ and base64 after it"),
        ({"is_sealed": True}, "it is sealed, and ENCRYPTION_KEYS is not set"),
    ],
)
async def test_a_namespace_with_an_unreadable_secret_is_short_of_it_until_it_is_revoked(
    node: Node, changes: dict[str, Any], reason: str
) -> None:
    secret = WebhookSecret(
        id="unreadable", namespace="orders", secret=CONFIGURED, created_at=Instant(0)
    )
    await node.store.security.add_credential(replace(secret, **changes))
    with capture_logs() as logs:
        new = await node.secrets.create("orders")
        for _ in range(2):
            with pytest.raises(LocalShortage, match=r"readable webhook secret \(unreadable\)"):
                node.signatures()
    assert [(each["event"], each["secret"], each["reason"]) for each in logs] == [
        ("secret.unreadable", "unreadable", reason)
    ]
    assert new.text not in str(logs)
    assert node.signatures("default") == set()
    await node.secrets.revoke("orders", "unreadable")
    assert node.signatures() == signature(new)


async def test_a_namespace_without_the_key_of_its_secret_is_short_of_the_key(node: Node) -> None:
    new = await sealing_node(node, K1).secrets.create("orders")
    for keys in ((), (K2,)):
        other = sealing_node(node, *keys)
        await other.secrets.seal_again()
        with pytest.raises(LocalShortage, match="encryption key k1"):
            other.signatures()
    node = sealing_node(node, K2, K1)
    await node.watch.refresh()
    assert node.signatures() == signature(new)


async def test_secrets_are_sealed_again_by_the_first_key(node: Node) -> None:
    plain = await node.secrets.create("orders")
    old = await sealing_node(node, K1).secrets.create("orders", expire_others_after_ms=HOUR_MS)
    lost = await sealing_node(node, K3).secrets.create("default")
    before = await node.secrets.current("orders")
    nodes = [sealing_node(node, K2, K1) for _ in range(2)]
    await asyncio.gather(*(each.secrets.seal_again() for each in nodes))
    stored = await node.store.security.credentials(None)
    assert stored is not None
    assert {
        each.id: each.secret.partition(".")[0]
        for each in stored.credentials
        if isinstance(each, WebhookSecret)
    } == {plain.listed.id: "k2", old.listed.id: "k2", lost.listed.id: "k3"}
    after = sealing_node(node, K2)
    await after.secrets.seal_again()
    assert after.signatures() == signature(plain, old)
    assert await after.secrets.current("orders") == before
    assert await node.store.security.credentials(stored.version) is None


async def test_a_secret_is_sealed_before_it_is_stored_and_opened_to_sign(node: Node) -> None:
    signers = KnownSigners(
        node.clock, make_signer, open_secret=lambda each: each.secret.removeprefix("sealed:")
    )
    node.watch.subscribe(signers.see)
    secrets = WebhookSecrets(
        node.store.security,
        node.watch,
        signers,
        node.namespaces,
        node.clock,
        seal=lambda each: replace(each, secret=f"sealed:{each.secret}", is_sealed=True),
    )
    old = await secrets.create("orders")
    new = await secrets.create("orders", expire_others_after_ms=HOUR_MS)
    stored = await node.store.security.credentials(None)
    assert stored is not None
    assert [isinstance(each, WebhookSecret) and each.secret for each in stored.credentials] == [
        f"sealed:{old.text}",
        f"sealed:{new.text}",
    ]
    signed = {each.sign(b"id.1.body") for each in signers.signers("orders")}
    assert signed == signature(old, new)
