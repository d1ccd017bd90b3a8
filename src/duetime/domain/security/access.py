"""Access: the roles and namespaces of a key."""

from enum import StrEnum

from msgspec import Struct

from duetime.domain.namespace import DEFAULT_NAMESPACE


class Role(StrEnum):
    """The words are stored and shown; they never change meaning."""

    READ = "read"
    """See timers, namespaces and operations."""

    WRITE = "write"
    """Create and change timers, one or many."""

    ADMIN = "admin"
    """Everything, and also manage namespaces, keys and secrets."""


class Access(Struct, frozen=True, kw_only=True):
    """`name` tells people who it is. `key_id` is that of a kept key; the key of the settings has
    none. Without `namespaces` all are visible; what is not visible does not exist for the caller.
    """

    name: str
    key_id: str | None = None
    roles: frozenset[Role] = frozenset({Role.ADMIN})
    namespaces: frozenset[str] | None = None

    @property
    def is_admin(self) -> bool:
        return Role.ADMIN in self.roles

    def may(self, role: Role) -> bool:
        return role in self.roles or self.is_admin

    def sees(self, namespace: str) -> bool:
        return self.namespaces is None or namespace in self.namespaces

    @property
    def home(self) -> str:
        """The namespace that the platform API acts in: the only one of the key, or the default."""
        if self.namespaces is not None and len(self.namespaces) == 1:
            return next(iter(self.namespaces))
        return DEFAULT_NAMESPACE


EVERYTHING = Access(name="API_KEY")
"""The access of the key of the settings."""

UNCHECKED = Access(name="anonymous")
"""The access of everybody when no key is asked for: a gateway has checked the request."""
