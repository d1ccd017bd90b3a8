"""Decides on each new connection whether a callback may go to that address."""

from collections.abc import Sequence
from dataclasses import dataclass

from duetime.delivery.http_client import Address, RefusedAddress, Resolve
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

    def narrowed(self, by: NamedList) -> "CallbackGuard":
        return CallbackGuard([*self._lists, by], self._own)

    def refusal_at_create(self, host: str, port: int) -> str | None:
        """Why no callback to (host, port) can ever be allowed; completes "callback.url". None if it
        can be, or if that depends on what the name resolves to."""
        address = literal_address(host)
        if address is not None:
            return self._refusal(host, port, address)
        for each in self._lists:
            refusal = each.networks.refusal_of_name(host, port)
            if refusal is not None:
                return _text(host, refusal, each)
        return None

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
                raise RefusedAddress(f"refused to call {host}:{port}: it {problem}")
            return allowed

        return resolve_allowed

    def _refusal(self, host: str, port: int, address: IpAddress) -> str | None:
        for each in self._lists:
            refusal = each.networks.refusal(host, port, address)
            if refusal is not None:
                return _text(str(address), refusal, each)
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
