"""Metrics of the cluster and of clocks."""

from duetime.telemetry.metrics.metric import counter, gauge

MEMBERS = gauge("duetime_cluster_members", "Nodes that share the store, as this node sees it.")
SHARDS = gauge("duetime_shards", "Shards in the store.")
SHARDS_OWNED = gauge("duetime_shards_owned", "Shards that this process owns.")
HIGHEST_EPOCH = gauge(
    "duetime_shard_epoch_max",
    "Highest epoch of the shards that this process owns. It grows with every change of owner.",
)
HANDOVERS = counter(
    "duetime_shard_handovers_total",
    "Changes of owner that this process took part in, by kind: taken, released or lost.",
    "kind",
)
RECOVERED = counter(
    "duetime_timers_recovered_total",
    "Timers of other owners that were executing when this process took their shards.",
)
CLOCK_OFFSET = gauge(
    "duetime_clock_offset_seconds", "Difference of this node's clock from the others' clocks."
)
CLOCK_SKEWED = gauge(
    "duetime_clock_skewed", "1 while this node's clock differs more than CLOCK_SKEW_LIMIT_MS."
)

CLUSTER_METRICS = (
    MEMBERS, SHARDS, SHARDS_OWNED, HIGHEST_EPOCH, HANDOVERS, RECOVERED, CLOCK_OFFSET, CLOCK_SKEWED,
)  # fmt: skip
