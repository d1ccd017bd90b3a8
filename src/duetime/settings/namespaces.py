"""Which namespaces are to exist, from the list and the tables together."""

from msgspec.structs import replace

from duetime.domain.namespace import DEFAULT_NAMESPACE, ConfiguredNamespace
from duetime.settings.definitions import NAMESPACES
from duetime.settings.given_values import Texts
from duetime.settings.namespace_list import shortened
from duetime.settings.namespace_tables import NamespaceTables, read_namespace_tables


def read_namespaces(
    texts: Texts, tables: NamespaceTables, problems: list[str]
) -> tuple[ConfiguredNamespace, ...]:
    """Those of the list in its order, then those that only have a table. `default` is always
    among them: the platform API needs it."""
    namespaces = {each.name: each for each in texts.optional(NAMESPACES) or ()}
    for table in read_namespace_tables(tables, problems):
        listed = namespaces.get(table.name, table)
        shards = table.num_shards if listed.num_shards is None else listed.num_shards
        if table.num_shards not in (None, shards):
            problems.append(
                f"{tables.source}: namespace {shortened(table.name)!r}: has {table.num_shards} "
                f"shards here and {shards} in NAMESPACES; remove one of them"
            )
        namespaces[table.name] = replace(table, num_shards=shards)
    if DEFAULT_NAMESPACE not in namespaces:
        namespaces = {DEFAULT_NAMESPACE: ConfiguredNamespace(DEFAULT_NAMESPACE), **namespaces}
    return tuple(namespaces.values())
