"""`duetime cluster`: who is there, and who owns what."""

from typing import Annotated

import typer

from duetime.cli.cluster_document import cluster_document
from duetime.cli.cluster_tables import cluster_tables, print_cluster
from duetime.cli.options import ConfigOption
from duetime.cli.store_access import (
    inspector_of,
    opened,
    run_on_store,
    store_settings,
)
from duetime.cli.terminal import ExitCode, fail, refuse
from duetime.cli.views import print_json
from duetime.clock import SystemClock
from duetime.ports.inspection import ClusterFacts, StoreInspector
from duetime.settings import PostgresStoreSettings


def cluster(
    watch: Annotated[bool, typer.Option("--watch", help="Look again every second.")] = False,
    config: ConfigOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Show the members of the cluster and the shards they own.

    Reads the store that `serve` would use; no server is needed. The lag of a shard is how long
    its first pending timer is overdue.

    Examples:

    * `duetime cluster`
    * `duetime cluster --watch` also tells whose heartbeat stands still
    """
    if watch and as_json:
        refuse("--watch / --json", "give one of them, not both")
    settings = store_settings(config)
    if not isinstance(settings.store, PostgresStoreSettings):
        fail(
            "this store serves one process, so there is no cluster: see `duetime health`",
            ExitCode.USAGE,
        )
    inspector = inspector_of(settings.store, settings)
    if watch:
        from duetime.cli.cluster_watch import watch_cluster

        run_on_store(watch_cluster(settings, inspector))
        return
    facts = run_on_store(_look(inspector))
    now = facts.view.store_now or SystemClock().now()
    limit_ms = settings.clock_skew_limit_ms
    if as_json:
        print_json(cluster_document(facts, now, skew_limit_ms=limit_ms))
    else:
        print_cluster(cluster_tables(facts, now, skew_limit_ms=limit_ms))


async def _look(inspector: StoreInspector) -> ClusterFacts:
    async with opened(inspector):
        return await inspector.cluster()
