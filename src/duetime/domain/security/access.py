"""Access: the roles and namespaces of a key."""

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import force_setattr

from duetime.domain.errors import Forbidden, LimitForbidden
from duetime.domain.namespace import DEFAULT_NAMESPACE, LIMITS, Namespace


class Role(StrEnum):
    """The words are stored and shown; they never change meaning."""

    # The hash of an enum is slow, and every request looks its role up.
    __hash__ = str.__hash__

    READ = "read"
    """See timers, namespaces and operations."""

    WRITE = "write"
    """Create and change timers, one or many."""

    ADMIN = "admin"
    """Everything, and also manage namespaces, keys and secrets."""


class Access(Struct, frozen=True, kw_only=True):
    """`name` tells people who it is. `key_id` is that of a kept key; the key of the settings has
    none. Without `namespaces` all are visible; what is not visible does not exist for the caller.

    `home` is the namespace that the platform API acts in: the only one of the key, or the default.
    """

    name: str
    key_id: str | None = None
    roles: frozenset[Role] = frozenset({Role.ADMIN})
    namespaces: frozenset[str] | None = None
    home: str = DEFAULT_NAMESPACE

    def __post_init__(self) -> None:
        if self.namespaces is not None and len(self.namespaces) == 1:
            force_setattr(self, "home", next(iter(self.namespaces)))

    @property
    def is_admin(self) -> bool:
        return Role.ADMIN in self.roles

    def may(self, role: Role) -> bool:
        return role in self.roles or self.is_admin

    def sees(self, namespace: str) -> bool:
        return self.namespaces is None or namespace in self.namespaces

    def check_change(self, existing: Namespace | None, wanted: Namespace) -> None:
        """Raises `Forbidden` if the namespace is new, or if one of its limits changes, unless the
        key is for all namespaces. Otherwise a deletion and a create would lift the limits, too."""
        if self.namespaces is None:
            return
        if existing is None:
            raise Forbidden("only an admin key for all namespaces creates a namespace")
        for field in LIMITS:
            if getattr(wanted.options, field) != getattr(existing.options, field):
                raise LimitForbidden(field)


BUS_NAME = "bus"
"""The name under which commands of the bus act."""

EVERYTHING = Access(name="API_KEY")
"""The access of the key of the settings."""

UNCHECKED = Access(name="anonymous")
"""The access of everybody when no key is asked for: a gateway has checked the request."""

RESERVED_NAMES = (EVERYTHING.name, UNCHECKED.name, BUS_NAME)
"""Names that no other key may have, in any case: the audit log shows them as actors."""
