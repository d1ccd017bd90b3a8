"""Panels about timers: when they fire, and how their attempts end."""

from dashboard import Panel, Query
from expressions import CHOSEN, HERE, RATE, STORE_WIDE, of_store, per_second, quantile

LATENESS = "duetime_lateness_seconds"

OVERVIEW = (
    Panel(
        "On time",
        "Share of attempts of the last five minutes that were sent within 100 ms of their instant.",
        (
            Query(
                f'sum(rate({LATENESS}_bucket{{{CHOSEN},le="0.1"}}[5m])) '
                f"/ sum(rate({LATENESS}_count{{{CHOSEN}}}[5m]))"
            ),
        ),
        kind="stat",
        unit="percentunit",
        width=3,
        height=4,
        steps=((0, "red"), (0.99, "orange"), (0.999, "green")),
        decimals=2,
    ),
    Panel(
        "Lateness, p99",
        "Lateness that 99 of 100 attempts of the last five minutes did not exceed.",
        (Query(quantile(0.99, LATENESS, CHOSEN, window="5m")),),
        kind="stat",
        unit="s",
        width=3,
        height=4,
        steps=((0.1, "orange"), (1, "red")),
    ),
    Panel(
        "Fired",
        "Attempts to deliver, per second.",
        (Query(per_second("duetime_attempts_total", CHOSEN, window="5m")),),
        kind="stat",
        unit="reqps",
        width=3,
        height=4,
    ),
    Panel(
        "Pending",
        "Timers that wait for their instant or for a retry.",
        (Query(of_store("duetime_timers", 'status="pending"', how="sum")),),
        kind="stat",
        width=3,
        height=4,
    ),
    Panel(
        "Overdue",
        "Pending timers whose next attempt should have begun.",
        (Query(of_store("duetime_timers_overdue", how="sum")),),
        kind="stat",
        width=3,
        height=4,
        steps=((1, "orange"), (1000, "red")),
    ),
    Panel(
        "Failed",
        "Timers that failed for good and can be redriven.",
        (Query(of_store("duetime_timers", 'status="failed"', how="sum")),),
        kind="stat",
        width=3,
        height=4,
        steps=((1, "orange"),),
    ),
    Panel(
        "Error budget left",
        "The smallest part of its error budget that a namespace with an objective has left.",
        (Query(of_store("duetime_objective_error_budget_left_ratio", how="min")),),
        kind="stat",
        unit="percentunit",
        width=3,
        height=4,
        steps=((0, "red"), (0.001, "orange"), (0.25, "green")),
    ),
    Panel(
        "Alerts",
        "Alerts of Duetime that fire now.",
        (
            Query(
                'count(ALERTS{alertname=~"Duetime.*",alertstate="firing",job=~"$job|"}) '
                "or vector(0)"
            ),
        ),
        kind="stat",
        width=3,
        height=4,
        steps=((1, "red"),),
    ),
    Panel(
        "Lateness",
        "Time from the instant at which attempts were due to the instant at which they were sent.",
        tuple(
            Query(quantile(share, LATENESS, CHOSEN), legend)
            for share, legend in ((0.5, "p50"), (0.99, "p99"), (0.999, "p99.9"))
        ),
        unit="s",
        width=12,
        height=8,
    ),
    Panel(
        "Distribution of lateness",
        "Attempts by their lateness. A second band far above the first is a part of the timers "
        "that is held up by something.",
        (Query(f"sum by (le) (increase({LATENESS}_bucket{{{CHOSEN}}}[{RATE}]))", "{{le}}"),),
        kind="heatmap",
        width=12,
        height=8,
    ),
    Panel(
        "Attempts by outcome",
        "Attempts per second. Interrupted ones are repeated, failed ones as their policy says.",
        (Query(per_second("duetime_attempts_total", CHOSEN, "outcome"), "{{outcome}}"),),
        unit="reqps",
        stacked=True,
    ),
    Panel(
        "Timers in the store",
        "Pending, executing and failed timers of the chosen namespaces.",
        (
            Query(
                f"sum by (status) (max by (namespace, status) (duetime_timers{{{STORE_WIDE}}}))",
                "{{status}}",
            ),
        ),
    ),
    Panel(
        "Overdue timers",
        "Pending timers whose next attempt should have begun, by namespace.",
        (Query(f"max by (namespace) (duetime_timers_overdue{{{STORE_WIDE}}})", "{{namespace}}"),),
    ),
    Panel(
        "Error budget left by namespace",
        "1 is the whole budget of the objective's window; below 0 the objective is missed.",
        (
            Query(
                f"max by (namespace) (duetime_objective_error_budget_left_ratio{{{STORE_WIDE}}})",
                "{{namespace}}",
            ),
        ),
        unit="percentunit",
        from_zero=False,
        width=12,
    ),
    Panel(
        "Burn rate of the last hour",
        "Speed at which the error budget is spent: at 1 it lasts exactly as long as its window.",
        (
            Query(
                f"job_namespace:duetime_objective_burn:rate1h{{{STORE_WIDE}}}",
                "{{namespace}}",
            ),
        ),
        width=12,
    ),
)

ATTEMPTS = (
    Panel(
        "Attempts by type",
        "Attempts per second by the type of callback.",
        (Query(per_second("duetime_attempts_total", CHOSEN, "type"), "{{type}}"),),
        unit="reqps",
        stacked=True,
    ),
    Panel(
        "Duration of attempts",
        "Time from sending an attempt to its answer or failure.",
        tuple(
            Query(quantile(share, "duetime_attempt_duration_seconds", CHOSEN), legend)
            for share, legend in ((0.5, "p50"), (0.99, "p99"))
        ),
        unit="s",
    ),
    Panel(
        "Finished timers",
        "Timers per second whose last attempt was recorded.",
        (Query(per_second("duetime_timers_finished_total", CHOSEN, "status"), "{{status}}"),),
        unit="reqps",
        stacked=True,
    ),
    Panel(
        "Creates, changes and cancels",
        "Timers per second that clients created, replaced, changed, canceled and redrove.",
        tuple(
            Query(
                per_second(f"duetime_timers_{what}_total", CHOSEN),
                what,
            )
            for what in ("created", "replaced", "changed", "canceled", "redriven")
        ),
        unit="reqps",
    ),
    Panel(
        "Slots",
        "Attempts under way, and how many may be (DELIVERY_CONCURRENCY).",
        (
            Query(f"sum(duetime_slots_in_use{{{HERE}}})", "in use"),
            Query(f"sum(duetime_slots{{{HERE}}})", "all"),
        ),
    ),
    Panel(
        "Claims",
        "Claims that wait for a slot or an endpoint, and those handed back per second.",
        (
            Query(f"sum(duetime_claims_waiting{{{HERE}}})", "waiting"),
            Query(
                per_second("duetime_claims_handed_back_total", HERE, "cause"),
                "handed back/s: {{cause}}",
            ),
        ),
    ),
    Panel(
        "Lanes",
        "Endpoints that have claims, by state.",
        (Query(f"sum by (state) (duetime_lanes{{{HERE}}})", "{{state}}"),),
        stacked=True,
    ),
    Panel(
        "Breakers",
        "Endpoints that keep failing or hanging have an open breaker: few attempts go there.",
        (Query(f'sum by (state) (duetime_breakers{{{HERE},state!="closed"}})', "{{state}}"),),
        stacked=True,
    ),
    Panel(
        "Attempts that were not made",
        "Attempts per second that were refused by CALLBACK_NETWORKS, or postponed because this "
        "machine lacked descriptors, ports or memory.",
        (
            Query(per_second("duetime_callbacks_refused_total", HERE), "refused"),
            Query(per_second("duetime_local_shortages_total", HERE), "postponed"),
        ),
        unit="reqps",
    ),
    Panel(
        "Failing endpoints",
        "Endpoints with the most failed attempts per second; only with METRICS_ENDPOINTS.",
        (
            Query(
                "topk(10, sum by (endpoint) (rate(duetime_endpoint_attempts_total"
                f'{{{HERE},outcome="failed"}}[{RATE}])))',
                "{{endpoint}}",
            ),
        ),
        unit="reqps",
        width=12,
    ),
    Panel(
        "Open breakers by endpoint",
        "1 while the breaker of the endpoint is open; only with METRICS_ENDPOINTS.",
        (
            Query(
                f"max by (endpoint) (duetime_endpoint_breaker_open{{{HERE}}}) > 0",
                "{{endpoint}}",
            ),
        ),
        width=12,
    ),
)
