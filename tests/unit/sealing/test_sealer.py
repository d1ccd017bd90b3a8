"""Sealed texts and callbacks."""

from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest
from msgspec import Raw, json
from msgspec.structs import replace

from duetime.domain.callback import (
    BusCallback,
    Callback,
    CallbackProtocol,
    HttpCallback,
    NatsCallback,
)
from duetime.domain.errors import CannotUnseal, LocalShortage
from duetime.domain.instants import Instant
from duetime.domain.keys import TimerKey
from duetime.domain.security.credentials import WebhookSecret
from duetime.domain.transitions import claim_of, claimed
from duetime.sealing.callbacks import CallbackSealer
from duetime.sealing.sealer import Sealer, SealingKey
from duetime.sealing.webhook_secrets import SecretSealer
from duetime.testing.timers import make_timer

K1, K2 = SealingKey("k1", bytes(range(32))), SealingKey("k2", bytes(32))
KEY = TimerKey("orders", "one")
MARK = "m4rk"
CALLBACKS: list[Callback] = [
    HttpCallback(url="https://a/", headers={"X-Tag": MARK}, payload=Raw(b'{"a":  "m4rk"}')),
    HttpCallback(url=f"https://user:{MARK}@a/", timeout_ms=5, protocol=CallbackProtocol.ANSWER),
    HttpCallback(url=f"https://{MARK}@a/", headers={}, payload=Raw(b"null")),
    NatsCallback(topic="a", key="b", headers={"X-Tag": MARK}, payload=Raw(b'"m4rk"'), ack=True),
    BusCallback(payload=Raw(b'["m4rk"]'), timeout_ms=7),
]


class TestSealer:
    def test_every_key_unseals_and_the_first_one_seals(self) -> None:
        old = Sealer([K1]).seal(b"text", b"about")
        both = Sealer([K2, K1])
        assert both.unseal(old, b"about") == b"text"
        new = both.seal(b"text", b"about")
        assert (old.partition(".")[0], new.partition(".")[0]) == ("k1", "k2")
        assert Sealer([K2]).unseal(new, b"about") == b"text"

    def test_equal_texts_look_different(self) -> None:
        sealer = Sealer([K1])
        assert len({sealer.seal(b"text", b"") for _ in range(100)}) == 100

    @pytest.mark.parametrize("sealer", [Sealer(), Sealer([K2])])
    def test_a_missing_key_is_named(self, sealer: Sealer) -> None:
        sealed = Sealer([K1]).seal(b"text", b"about")
        with pytest.raises(CannotUnseal, match="'k1' is not among ENCRYPTION_KEYS") as raised:
            sealer.unseal(sealed, b"about")
        assert raised.value.key_id == "k1"

    def test_nothing_altered_or_moved_is_unsealed(self) -> None:
        sealer = Sealer([K1])
        key_id, _, encoded = sealer.seal(b"text", b"about").partition(".")
        content = urlsafe_b64decode(encoded)
        for position in range(len(content)):
            altered = bytearray(content)
            altered[position] ^= 1
            with pytest.raises(CannotUnseal, match="altered"):
                sealer.unseal(f"{key_id}.{urlsafe_b64encode(altered).decode()}", b"about")
        for sealed in (f"{key_id}.", f"{key_id}.?", f"{key_id}.{encoded[:20]}"):
            with pytest.raises(CannotUnseal, match="altered"):
                sealer.unseal(sealed, b"about")
        with pytest.raises(CannotUnseal, match="altered"):
            sealer.unseal(f"{key_id}.{encoded}", b"another")
        with pytest.raises(CannotUnseal, match="another key"):
            Sealer([SealingKey("k1", bytes(32))]).unseal(f"{key_id}.{encoded}", b"about")

    def test_keys_do_not_show_themselves(self) -> None:
        assert repr([K1]) == "[SealingKey('k1')]"


class TestSecretSealer:
    SECRET = WebhookSecret(
        id="s1", namespace="orders", secret="whsec_bTRyaw==", created_at=Instant(0)
    )

    def test_the_text_is_hidden_and_comes_back(self) -> None:
        stored = SecretSealer(Sealer([K1])).sealed(self.SECRET)
        assert stored.is_sealed
        assert self.SECRET.secret not in stored.secret
        assert SecretSealer(Sealer([K2, K1])).text_of(stored) == self.SECRET.secret
        with pytest.raises(CannotUnseal, match="'k1' is not among ENCRYPTION_KEYS"):
            SecretSealer(Sealer([K2])).text_of(stored)
        with pytest.raises(CannotUnseal, match="altered"):
            SecretSealer(Sealer([K1])).text_of(replace(stored, namespace="others"))

    def test_without_keys_it_is_stored_as_it_is(self) -> None:
        assert SecretSealer(Sealer()).sealed(self.SECRET) is self.SECRET
        assert SecretSealer(Sealer([K1])).text_of(self.SECRET) == self.SECRET.secret


class TestCallbackSealer:
    @pytest.mark.parametrize("callback", CALLBACKS)
    def test_the_contents_are_hidden_and_come_back(self, callback: Callback) -> None:
        sealer = CallbackSealer(Sealer([K1]))
        sealed = sealer.sealed(KEY, callback)
        stored = json.encode(sealed)
        assert MARK.encode() not in stored
        assert sealer.unsealed(KEY, json.decode(stored, type=Callback)) == callback
        with pytest.raises(CannotUnseal):
            sealer.unsealed(TimerKey("orders", "two"), sealed)

    def test_nothing_is_sealed_without_contents_or_keys(self) -> None:
        bare = HttpCallback(url="https://a/")
        assert CallbackSealer(Sealer([K1])).sealed(KEY, bare) is bare
        assert CallbackSealer(Sealer()).sealed(KEY, CALLBACKS[0]) is CALLBACKS[0]
        assert CallbackSealer(Sealer([K1])).unsealed(KEY, CALLBACKS[0]) is CALLBACKS[0]

    def test_a_claim_without_its_key_waits_for_it(self) -> None:
        timer = make_timer("one", callback=CALLBACKS[0])
        sealed = CallbackSealer(Sealer([K1])).sealed(timer.key, CALLBACKS[0])
        timer = make_timer("one", callback=sealed)
        claim = claim_of(claimed(timer, epoch=timer.epoch, now=timer.due_at))
        assert CallbackSealer(Sealer([K1])).unsealed_claim(claim).callback == CALLBACKS[0]
        with pytest.raises(LocalShortage) as raised:
            CallbackSealer(Sealer([K2])).unsealed_claim(claim)
        assert raised.value.resource == "encryption key k1"
