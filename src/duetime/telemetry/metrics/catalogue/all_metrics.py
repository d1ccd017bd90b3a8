"""All metrics, in the order of the reference page."""

from duetime.telemetry.metrics.catalogue.bus import BUS_METRICS
from duetime.telemetry.metrics.catalogue.cluster import CLUSTER_METRICS
from duetime.telemetry.metrics.catalogue.engine import ENGINE_METRICS
from duetime.telemetry.metrics.catalogue.objective import OBJECTIVE_METRICS
from duetime.telemetry.metrics.catalogue.process import PROCESS_METRICS
from duetime.telemetry.metrics.catalogue.store import STORE_METRICS
from duetime.telemetry.metrics.catalogue.timers import TIMERS_METRICS
from duetime.telemetry.metrics.metric import Metric

GROUPS: dict[str, tuple[Metric, ...]] = {
    "Timers": TIMERS_METRICS,
    "Lateness objectives": OBJECTIVE_METRICS,
    "Engine": ENGINE_METRICS,
    "Store": STORE_METRICS,
    "Cluster": CLUSTER_METRICS,
    "Bus": BUS_METRICS,
    "API and process": PROCESS_METRICS,
}

ALL_METRICS = tuple(metric for group in GROUPS.values() for metric in group)
