"""Panels as Grafana wants them. Only plain kinds are used, which every Grafana from 10 on draws."""

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

COLUMNS = 24
ROW_HEIGHT = 1
SOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True, slots=True)
class Query:
    """An expression, and the legend of its series."""

    expression: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """`steps` are the colours from given values on. `stacked` is for parts of a whole."""

    title: str
    description: str
    queries: tuple[Query, ...]
    kind: str = "timeseries"
    unit: str = "short"
    width: int = 8
    height: int = 7
    steps: tuple[tuple[float, str], ...] = ()
    from_zero: bool = True
    stacked: bool = False
    decimals: int | None = None

    def as_json(self, id: int, x: int, y: int) -> Json:
        return {
            "id": id,
            "type": self.kind,
            "title": self.title,
            "description": self.description,
            "datasource": SOURCE,
            "gridPos": {"x": x, "y": y, "w": self.width, "h": self.height},
            "targets": [self._target(number, query) for number, query in enumerate(self.queries)],
            "fieldConfig": {"defaults": self._defaults(), "overrides": []},
            "options": _OPTIONS[self.kind],
        }

    def _target(self, number: int, query: Query) -> Json:
        now_only = self.kind in ("stat", "table")
        return {
            "refId": chr(ord("A") + number),
            "datasource": SOURCE,
            "editorMode": "code",
            "expr": query.expression,
            "legendFormat": query.legend or "__auto",
            "instant": now_only,
            "range": not now_only,
            "format": self.kind if self.kind in ("heatmap", "table") else "time_series",
        }

    def _defaults(self) -> Json:
        steps = [{"color": colour, "value": value} for value, colour in self.steps]
        first = {"color": "green", "value": None}
        if steps and self.steps[0][0] == 0:
            first = {**steps.pop(0), "value": None}
        defaults: Json = {
            "unit": self.unit,
            "color": {"mode": "thresholds" if self.kind == "stat" else "palette-classic"},
            "thresholds": {"mode": "absolute", "steps": [first, *steps]},
        }
        if self.decimals is not None:
            defaults["decimals"] = self.decimals
        if self.from_zero and self.kind == "timeseries":
            defaults["min"] = 0
        if self.kind == "stat":
            defaults["noValue"] = "none"
        if self.kind == "timeseries":
            defaults["custom"] = {
                "drawStyle": "line",
                "lineWidth": 1,
                "fillOpacity": 30 if self.stacked else 8,
                "showPoints": "never",
                "spanNulls": False,
                "stacking": {"group": "A", "mode": "normal" if self.stacked else "none"},
                "thresholdsStyle": {"mode": "line" if self.steps else "off"},
            }
        return defaults


_OPTIONS: dict[str, Json] = {
    "timeseries": {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
    "stat": {
        "colorMode": "value",
        "graphMode": "none",
        "justifyMode": "auto",
        "orientation": "auto",
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "textMode": "value",
    },
    "heatmap": {
        "calculate": False,
        "cellGap": 1,
        "color": {"mode": "scheme", "scheme": "Oranges", "scale": "exponential", "exponent": 0.5},
        "filterValues": {"le": 1e-9},
        "legend": {"show": True},
        "rowsFrame": {"layout": "auto"},
        "tooltip": {"mode": "single", "yHistogram": False},
        "yAxis": {"axisPlacement": "left", "unit": "s"},
    },
    "table": {"showHeader": True, "cellHeight": "sm"},
}


def laid_out(rows: dict[str, tuple[Panel, ...]]) -> list[Json]:
    """The panels below the titles of their rows, from left to right."""
    placed: list[Json] = []
    y = 0
    for title, panels in rows.items():
        place = {"x": 0, "y": y, "w": COLUMNS, "h": ROW_HEIGHT}
        row: Json = {"type": "row", "title": title, "collapsed": False, "gridPos": place}
        placed.append({"id": len(placed) + 1, **row, "panels": []})
        y += ROW_HEIGHT
        x = height = 0
        for panel in panels:
            if x + panel.width > COLUMNS:
                x, y, height = 0, y + height, 0
            placed.append(panel.as_json(len(placed) + 1, x, y))
            x, height = x + panel.width, max(height, panel.height)
        y += height
    return placed


def choice(name: str, label: str, query: str, *, several: bool) -> Json:
    """A variable whose values Prometheus knows."""
    everything: Json = {"text": ["All"], "value": ["$__all"]} if several else {}
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": SOURCE,
        "definition": query,
        "query": {"query": query, "refId": "Variable"},
        "refresh": 2,
        "sort": 1,
        "multi": several,
        "includeAll": several,
        "allValue": ".*" if several else None,
        "current": everything,
        "hide": 0,
        "options": [],
    }


def dashboard(rows: dict[str, tuple[Panel, ...]]) -> Json:
    source = {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "current": {},
        "hide": 0,
        "options": [],
        "refresh": 1,
        "multi": False,
        "includeAll": False,
    }
    return {
        "id": None,
        "uid": "duetime",
        "title": "Duetime",
        "description": "Timers, their lateness, and everything that may make them late.",
        "tags": ["duetime"],
        "editable": True,
        "graphTooltip": 1,
        "schemaVersion": 39,
        "version": 1,
        "timezone": "browser",
        "time": {"from": "now-1h", "to": "now"},
        "refresh": "30s",
        "annotations": {"list": []},
        "links": [],
        "templating": {
            "list": [
                source,
                choice("job", "Job", "label_values(duetime_build_info, job)", several=False),
                choice(
                    "instance",
                    "Instance",
                    'label_values(duetime_build_info{job="$job"}, instance)',
                    several=True,
                ),
                choice(
                    "namespace",
                    "Namespace",
                    'label_values(duetime_timers{job="$job"}, namespace)',
                    several=True,
                ),
            ]
        },
        "panels": laid_out(rows),
    }
