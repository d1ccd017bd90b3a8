"""Decides on each new connection whether a callback may go to that address."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from duetime.delivery.http_client import Address, RefusedAddress, Resolve, authority_of
from duetime.domain.security.address_kinds import Address as IpAddress
from duetime.domain.security.address_kinds import address_of, forms_of
from duetime.domain.security.callback_networks import (
    CallbackNetworks,
    Refusal,
    exact_entry,
    literal_address,
)
from duetime.listener import OwnAddresses

MAX_ADDRESSES_JUDGED = 64
"""Addresses of a name that are looked at; no more than a few of them are connected to."""

_HOSTS_REMEMBERED = 4_096


@dataclass(frozen=True, slots=True)
class NamedList:
    """A list of networks, and the name by which its owner knows it."""

    name: str
    networks: CallbackNetworks


class CallbackGuard:
    """Allows an address that every list allows and that is not our own.

    The own address is allowed if the first list names it with its port, as in
    `127.0.0.1/32:8080`.
    """

    def __init__(self, lists: Sequence[NamedList], own: OwnAddresses) -> None:
        self._lists = lists
        self._own = own
        # The lists never change, and creates of one host are many.
        self._listed_refusal = lru_cache(_HOSTS_REMEMBERED)(self._refusal_of_host)

    def narrowed(self, by: NamedList) -> "CallbackGuard":
        return CallbackGuard([*self._lists, by], self._own)

    def refusal_at_create(self, host: str, port: int) -> str | None:
        """Why no callback to (host, port) can ever be allowed; completes "callback.url". None if it
        can be, or if that depends on what the name resolves to."""
        refusal = self._listed_refusal(host, port)
        if refusal is None and self._own.use_port(port):
            address = literal_address(host)
            try:
                return None if address is None else self._refusal_of_own(port, address)
            except OSError:
                # There is no descriptor to tell. The connection is judged again.
                return None
        return refusal

    def guarded(self, resolve: Resolve) -> Resolve:
        """Resolves like `resolve`, and returns allowed addresses only. Raises RefusedAddress if
        there are addresses, but none is allowed."""

        async def resolve_allowed(host: str, port: int, deadline: float) -> Sequence[Address]:
            addresses = await resolve(host, port, deadline)
            allowed, problem = [], None
            for each in addresses[:MAX_ADDRESSES_JUDGED]:
                refused = self._refusal(host, port, address_of(each[1]))
                if refused is None:
                    allowed.append(each)
                else:
                    problem = problem or refused
            if problem is not None and not allowed:
                raise RefusedAddress(f"refused to call {authority_of(host, port)}: it {problem}")
            return allowed

        return resolve_allowed

    def _refusal_of_host(self, host: str, port: int) -> str | None:
        address = literal_address(host)
        if address is not None:
            return self._refusal_of_address(host, port, address)
        for each in self._lists:
            refusal = each.networks.refusal_of_name(host, port)
            if refusal is not None:
                return _text(host, refusal, each)
        return None

    def _refusal(self, host: str, port: int, address: IpAddress) -> str | None:
        refusal = self._refusal_of_address(host, port, address)
        return refusal or self._refusal_of_own(port, address)

    def _refusal_of_address(self, host: str, port: int, address: IpAddress) -> str | None:
        for each in self._lists:
            refusal = each.networks.refusal(host, port, address)
            if refusal is not None:
                return _text(str(address), refusal, each)
        return None

    def _refusal_of_own(self, port: int, address: IpAddress) -> str | None:
        if not self._own.use_port(port):
            return None
        first = self._lists[0]
        for form in forms_of(address):
            if self._own.include(form, port) and not first.networks.lists_exactly(form, port):
                refusal = Refusal("the address of this service itself", exact_entry(form, port))
                return _text(str(address), refusal, first)
        return None


def _text(place: str, refusal: Refusal, refused_by: NamedList) -> str:
    return (
        f"leads to {place}, {refusal.what}, which is allowed only if {refused_by.name} includes "
        f"{refusal.remedy}"
    )
