"""Writes the Grafana dashboard: `python deploy/grafana/source` renews duetime.json."""

import json
from pathlib import Path

from dashboard import dashboard
from service_panels import API, BUS, CLUSTER, PROCESS
from store_panels import STORE
from timer_panels import ATTEMPTS, OVERVIEW

ROWS = {
    "Overview": OVERVIEW,
    "Attempts and endpoints": ATTEMPTS,
    "Store": STORE,
    "Cluster": CLUSTER,
    "Bus": BUS,
    "API": API,
    "Process": PROCESS,
}

RENDERED = json.dumps(dashboard(ROWS), indent=1) + "\n"

if __name__ == "__main__":
    Path(__file__).parents[1].joinpath("duetime.json").write_text(RENDERED, encoding="utf-8")
