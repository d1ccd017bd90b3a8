"""Metrics of the lateness objectives of namespaces."""

from duetime.telemetry.metrics.metric import counter, gauge

OBJECTIVE = gauge(
    "duetime_objective_ratio",
    "Share of attempts that should be in time, of namespaces with an objective, such as 0.999.",
    "namespace",
)
THRESHOLD = gauge(
    "duetime_objective_lateness_seconds", "Lateness up to which an attempt is in time.", "namespace"
)
WINDOW = gauge(
    "duetime_objective_window_seconds", "Time over which the objective should hold.", "namespace"
)
COUNTED = counter(
    "duetime_objective_attempts_total",
    "Attempts of namespaces with an objective, by whether they were in time: yes or no.",
    "namespace", "in_time",
)  # fmt: skip
BUDGET_LEFT = gauge(
    "duetime_objective_error_budget_left_ratio",
    "Share of the error budget that is left in the window: 1 is all, below 0 the objective is "
    "missed. In a cluster every node reports the budget of all nodes. Namespaces beyond "
    "METRICS_NAMESPACES are left out.",
    "namespace",
)

OBJECTIVE_METRICS = (OBJECTIVE, THRESHOLD, WINDOW, COUNTED, BUDGET_LEFT)
