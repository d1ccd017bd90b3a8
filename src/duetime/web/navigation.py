"""The menu."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from duetime.domain.security.access import Access, Role


class MenuEntry(Struct, frozen=True):
    """A page in the menu. Some are for admins, or for keys that see all namespaces, only."""

    title: str
    path: str
    icon: str
    for_admins: bool = False
    for_all_namespaces: bool = False

    def is_for(self, access: Access) -> bool:
        if self.for_admins and not access.is_admin:
            return False
        return access.namespaces is None or not self.for_all_namespaces


class MenuGroup(Struct, frozen=True):
    title: str
    entries: Sequence[MenuEntry]


_CREATE = MenuEntry("New timer", "/ui/create", "plus")
"""For those who may do nothing else. For others it is a button above every page."""

_MENU = (
    MenuGroup(
        "Work",
        (
            MenuEntry("Overview", "/ui", "overview"),
            MenuEntry("Timers", "/ui/timers", "timers"),
            MenuEntry("Operations", "/ui/operations", "operations"),
            MenuEntry("Receiver", "/ui/receiver", "receiver"),
        ),
    ),
    MenuGroup(
        "Service",
        (
            MenuEntry("Endpoints", "/ui/endpoints", "endpoints", for_all_namespaces=True),
            MenuEntry("Namespaces", "/ui/namespaces", "namespaces"),
            MenuEntry("Cluster", "/ui/cluster", "cluster", for_all_namespaces=True),
            MenuEntry("Bus", "/ui/bus", "bus", for_all_namespaces=True),
        ),
    ),
    MenuGroup(
        "Access",
        (
            MenuEntry("Keys", "/ui/keys", "keys", for_admins=True, for_all_namespaces=True),
            MenuEntry("Secrets", "/ui/secrets", "secrets", for_admins=True),
            MenuEntry("Audit log", "/ui/audit", "audit", for_admins=True),
        ),
    ),
)


def menu_for(access: Access) -> Iterator[MenuGroup]:
    """The groups with the entries that the caller may open."""
    if not access.may(Role.READ):
        yield MenuGroup("Work", (_CREATE,))
        return
    for group in _MENU:
        entries = [entry for entry in group.entries if entry.is_for(access)]
        if entries:
            yield MenuGroup(group.title, entries)
