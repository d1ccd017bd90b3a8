"""Callbacks with sealed contents: their headers, their payload and the secrets in their URL."""

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from duetime.domain.callback import BusCallback, Callback, HttpCallback, Payload
from duetime.domain.errors import CannotUnseal, LocalShortage
from duetime.domain.keys import TimerKey
from duetime.domain.security.redaction import shown_url
from duetime.domain.timer import Claim
from duetime.sealing.sealer import Sealer


class _Contents(Struct, frozen=True, omit_defaults=True):
    headers: dict[str, str] | None = None
    payload: Payload = UNSET
    url: str | None = None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Contents).decode


class CallbackSealer:
    """Seals the contents of callbacks for the timer that they belong to. A callback that is not
    sealed, from before there were keys, is left as it is."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer
        self.can_seal = sealer.can_seal

    def sealed(self, key: TimerKey, callback: Callback) -> Callback:
        """The callback without its contents, which `sealed` has; the same callback if it has no
        contents, or if there are no keys."""
        if not self.can_seal:
            return callback
        contents = _contents_of(callback)
        if contents is None:
            return callback
        sealed = self._sealer.seal(_encode(contents), _about(key))
        if isinstance(callback, BusCallback):
            return replace(callback, payload=UNSET, sealed=sealed)
        bare = replace(callback, headers=None, payload=UNSET, sealed=sealed)
        if isinstance(bare, HttpCallback) and contents.url is not None:
            return replace(bare, url=shown_url(bare.url))
        return bare

    def unsealed(self, key: TimerKey, callback: Callback) -> Callback:
        """The callback with its contents. Raises `CannotUnseal`."""
        if callback.sealed is None:
            return callback
        contents = _contents_in(callback.sealed, self._sealer.unseal(callback.sealed, _about(key)))
        if isinstance(callback, BusCallback):
            return replace(callback, payload=contents.payload, sealed=None)
        whole = replace(callback, headers=contents.headers, payload=contents.payload, sealed=None)
        if isinstance(whole, HttpCallback) and contents.url is not None:
            return replace(whole, url=contents.url)
        return whole

    def unsealed_claim(self, claim: Claim) -> Claim:
        """Raises `LocalShortage` if this process lacks the key: another one may have it."""
        try:
            callback = self.unsealed(TimerKey(claim.namespace, claim.id), claim.callback)
        except CannotUnseal as error:
            raise LocalShortage(f"encryption key {error.key_id}") from None
        return replace(claim, callback=callback)


def _contents_of(callback: Callback) -> _Contents | None:
    if isinstance(callback, BusCallback):
        return None if callback.payload is UNSET else _Contents(payload=callback.payload)
    url = None
    if isinstance(callback, HttpCallback) and shown_url(callback.url) != callback.url:
        url = callback.url
    if callback.headers is None and callback.payload is UNSET and url is None:
        return None
    return _Contents(headers=callback.headers, payload=callback.payload, url=url)


def _contents_in(sealed: str, text: bytes) -> _Contents:
    try:
        return _decode(text)
    except msgspec.DecodeError:
        key_id = sealed.partition(".")[0]
        raise CannotUnseal(key_id, "its contents are those of a later release") from None


def _about(key: TimerKey) -> bytes:
    # No part of a key has the character NUL.
    return f"{key.namespace}\0{key.id}".encode()
