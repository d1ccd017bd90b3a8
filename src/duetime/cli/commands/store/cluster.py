"""`duetime cluster`: the members of the cluster, and the shards they own."""

from functools import partial
from typing import Annotated

import typer
from rich.text import Text

from duetime.cli.commands.options import ConfigOption
from duetime.cli.commands.store.access import (
    inspector_of,
    opened,
    run_on_store,
    store_settings,
)
from duetime.cli.commands.store.liveness import can_tell, look_twice
from duetime.cli.output.cluster_views import (
    beat_count,
    cluster_document,
    cluster_tables,
    print_cluster,
)
from duetime.cli.output.timer_views import print_json
from duetime.cli.terminal import ExitCode, fail, refuse
from duetime.clock import SystemClock
from duetime.ports.inspection import ClusterFacts, StoreInspector
from duetime.ports.membership import Member
from duetime.settings import PostgresStoreSettings


def cluster(
    watch: Annotated[bool, typer.Option("--watch", help="Refresh every second.")] = False,
    config: ConfigOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Show the members of the cluster and the shards they own.

    Reads the store that `serve` would use; no server is needed. The lag of a shard is the time by
    which its first pending timer is overdue. The command reads heartbeats twice, a second or two
    apart, to tell which members are alive.

    Examples:

    * `duetime cluster`
    * `duetime cluster --watch`
    """
    if watch and as_json:
        refuse("--watch / --json", "give one of them, not both")
    settings = store_settings(config)
    if not isinstance(settings.store, PostgresStoreSettings):
        fail(
            "this store serves a single process, so there is no cluster: see `duetime health`",
            ExitCode.USAGE,
        )
    inspector = inspector_of(settings.store, settings)
    if watch:
        from duetime.cli.commands.store.cluster_watch import watch_cluster

        run_on_store(watch_cluster(settings, inspector))
        return
    facts, silent = run_on_store(_look(inspector, settings.lease_seconds))
    now = facts.view.store_now or SystemClock().now()
    limit_ms = settings.clock_skew_limit_ms
    if as_json:
        print_json(cluster_document(facts, now, skew_limit_ms=limit_ms, silent=silent))
    else:
        print_cluster(
            cluster_tables(
                facts, now, skew_limit_ms=limit_ms, beat_text=partial(_beat_text, silent=silent)
            )
        )


async def _look(
    inspector: StoreInspector, lease_seconds: float
) -> tuple[ClusterFacts, set[str] | None]:
    """The cluster and its silent members; None instead of these if telling would take too long."""
    async with opened(inspector):
        if can_tell(lease_seconds):
            return await look_twice(inspector, lease_seconds)
        return await inspector.cluster(), None


def _beat_text(member: Member, silent: set[str] | None) -> Text:
    if silent is None:
        return beat_count(member)
    if member.node in silent:
        return Text(f"{member.beat} silent", style="red")
    return Text(f"{member.beat} alive", style="green")
