"""Panels about the cluster, the bus, the API and the process."""

from dashboard import Panel, Query
from expressions import HERE, per_second, quantile

PROCESS_NAME = "{{instance}} {{worker}}"

CLUSTER = (
    Panel(
        "Members",
        "Nodes that share the store, as each process sees it. A node that differs is cut off.",
        (Query(f"duetime_cluster_members{{{HERE}}}", PROCESS_NAME),),
    ),
    Panel(
        "Shards by owner",
        "Shards that each process owns. The sum is constant unless a shard has no owner.",
        (Query(f"duetime_shards_owned{{{HERE}}}", PROCESS_NAME),),
        stacked=True,
    ),
    Panel(
        "Changes of owner",
        "Shards per second that were taken, released or lost.",
        (Query(per_second("duetime_shard_handovers_total", HERE, "kind"), "{{kind}}"),),
        unit="ops",
    ),
    Panel(
        "Recovered timers",
        "Timers per second that were executing when their owner was lost: their attempts are "
        "repeated.",
        (Query(per_second("duetime_timers_recovered_total", HERE), "recovered"),),
        unit="ops",
    ),
    Panel(
        "Highest epoch",
        "It grows by one with every change of owner, and must never fall.",
        (Query(f"duetime_shard_epoch_max{{{HERE}}}", PROCESS_NAME),),
        from_zero=False,
    ),
    Panel(
        "Clock offset",
        "Difference of the clocks of nodes. Timers fire by the clock of the node that owns them.",
        (Query(f"duetime_clock_offset_seconds{{{HERE}}}", PROCESS_NAME),),
        unit="s",
        from_zero=False,
    ),
)

BUS = (
    Panel(
        "Commands received",
        "Commands per second that came over the bus, by what became of them.",
        (Query(per_second("duetime_bus_received_total", HERE, "result"), "{{result}}"),),
        unit="ops",
        stacked=True,
    ),
    Panel(
        "Events published",
        "Events per second that the broker stored, and those that it did not take.",
        (
            Query(per_second("duetime_bus_published_total", HERE), "stored"),
            Query(per_second("duetime_bus_publish_failures_total", HERE), "not taken"),
        ),
        unit="ops",
    ),
    Panel(
        "Commands rejected",
        "Commands per second that were rejected. `duetime bus tail --channel rejected` shows them.",
        (Query(per_second("duetime_bus_rejected_total", HERE), "rejected"),),
        unit="ops",
    ),
    Panel(
        "Lag",
        "Commands that wait at the broker, received ones that are not acknowledged yet included.",
        (Query(f"max(duetime_bus_lag{{{HERE}}})", "waiting"),),
        steps=((1_000, "red"),),
        width=12,
    ),
    Panel(
        "Connections to brokers",
        "1 while the connection works.",
        (
            Query(
                f"min by (broker, instance) (duetime_broker_connected{{{HERE}}})",
                "{{broker}} of {{instance}}",
            ),
        ),
        width=12,
    ),
)

API = (
    Panel(
        "Requests by operation",
        "Requests per second that were answered.",
        (Query(per_second("duetime_http_requests_total", HERE, "operation"), "{{operation}}"),),
        unit="reqps",
        stacked=True,
    ),
    Panel(
        "Requests by status",
        "Requests per second by the status of their answer.",
        (Query(per_second("duetime_http_requests_total", HERE, "status"), "{{status}}"),),
        unit="reqps",
    ),
    Panel(
        "Duration of requests, p99",
        "Time from the head of a request to its answer, by operation.",
        (
            Query(
                quantile(0.99, "duetime_http_request_duration_seconds", HERE, "operation"),
                "{{operation}}",
            ),
        ),
        unit="s",
    ),
    Panel(
        "Connections",
        "Open connections to the API.",
        (Query(f"duetime_http_connections{{{HERE}}}", PROCESS_NAME),),
    ),
    Panel(
        "Connections without a place",
        "Connections per second that were turned away, or closed in favour of others.",
        (
            Query(per_second("duetime_http_connections_turned_away_total", HERE), "turned away"),
            Query(per_second("duetime_http_connections_closed_total", HERE), "closed"),
        ),
        unit="ops",
    ),
    Panel(
        "Refused requests",
        "Requests per second that were refused for their key, or its limits.",
        (
            Query(
                per_second("duetime_requests_refused_total", HERE, "reason"),
                "{{reason}}",
            ),
        ),
        unit="reqps",
    ),
    Panel(
        "Audit log",
        "Entries that are not written yet, and entries that were lost.",
        (
            Query(f"sum(duetime_audit_entries_waiting{{{HERE}}})", "waiting"),
            Query(f"sum(duetime_audit_entries_dropped_total{{{HERE}}})", "lost"),
        ),
        width=24,
        height=5,
    ),
)

PROCESS = (
    Panel(
        "CPU",
        "Processors in use. One process cannot use much more than one.",
        (Query(f"rate(process_cpu_seconds_total{{{HERE}}}[$__rate_interval])", PROCESS_NAME),),
    ),
    Panel(
        "Memory",
        "Resident memory.",
        (Query(f"process_resident_memory_bytes{{{HERE}}}", PROCESS_NAME),),
        unit="bytes",
    ),
    Panel(
        "Event loop lag, p99",
        "Delay of tasks that should run at once. Timers of the process are late by that.",
        (
            Query(
                quantile(0.99, "duetime_event_loop_lag_seconds", HERE, "instance", "worker"),
                PROCESS_NAME,
            ),
        ),
        unit="s",
        steps=((0.1, "red"),),
    ),
    Panel(
        "File descriptors",
        "Share of the descriptors that may be open.",
        (Query(f"process_open_fds{{{HERE}}} / process_max_fds{{{HERE}}}", PROCESS_NAME),),
        unit="percentunit",
        steps=((0.8, "red"),),
    ),
    Panel(
        "Age of processes",
        "Time since each process started. A saw-tooth is a process that keeps restarting.",
        (Query(f"time() - process_start_time_seconds{{{HERE}}}", PROCESS_NAME),),
        unit="s",
    ),
    Panel(
        "Releases",
        "Releases of Duetime and Python, and the kind of store.",
        (
            Query(
                f"count by (version, python, store) (duetime_build_info{{{HERE}}})",
                "{{version}} on Python {{python}}, {{store}}",
            ),
        ),
        stacked=True,
    ),
)
