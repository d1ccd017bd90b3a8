"""Values that the Helm chart accepts, and how it refuses the others."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from duetime.settings.definitions import SETTINGS
from tests.deploy.chart import (
    CHART,
    helm,
    plain_environment,
    secret_environment,
    server,
    template,
)

# Settings that the chart sets from values of its own, or that have no use in a pod.
OWN = {
    *("HOST", "PORT", "WORKERS", "TIMER_DB_PATH"),
    *("METRICS_HOST", "METRICS_PORT", "METRICS_PUBLIC"),
    *("DRAIN_SECONDS", "SHUTDOWN_GRACE_SECONDS", "AUTH", "DUETIME_CONFIG", "RUST_LOG"),
}
OTEL_SECRETS = {"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"}

SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))


def test_every_setting_can_be_given() -> None:
    settings = SCHEMA["properties"]["settings"]["properties"]
    expected = {name for name, each in SETTINGS.items() if not each.secret and name not in OWN}
    assert settings.keys() == expected, "settings of values.schema.json must be those of the code"
    assert {name for name, each in settings.items() if each["$ref"].endswith("/url")} == {
        name for name, each in SETTINGS.items() if each.url
    }
    # The chart sends true as on, since YAML reads both alike.
    assert not [name for name in settings if SETTINGS[name].unit == "true, false"]
    secrets = SCHEMA["properties"]["secretSettings"]["properties"]
    assert secrets.keys() - OTEL_SECRETS == {
        name for name, each in SETTINGS.items() if each.secret or each.url
    }


def objects_of(schema: Any, path: str = "") -> dict[str, dict[str, Any]]:
    """Every schema of an object with known properties, by its path."""
    if not isinstance(schema, dict):
        return {}
    found = {path: schema} if schema.get("type") == "object" and "properties" in schema else {}
    for name, value in schema.items():
        found |= objects_of(value, f"{path}/{name}")
    return found


def test_unknown_values_are_refused_everywhere() -> None:
    open_objects = [
        path
        for path, each in objects_of(SCHEMA).items()
        if each["additionalProperties"] is not False
    ]
    assert not open_objects


def test_every_value_has_a_default_and_an_entry_in_the_table() -> None:
    defaults = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    assert defaults.keys() == SCHEMA["properties"].keys() - {"global"}
    table = re.findall(
        r"^\| `(\w+)", (CHART / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert set(table) == defaults.keys()


POSTGRESQL = {"store": {"kind": "postgresql"}, "secretSettings": {"DATABASE_URL": {}}}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"replicaCount": 2}, "'/replicaCount': maximum: got 2, want 1"),
    ({"workers": 2}, "'/workers': maximum: got 2, want 1"),
    ({"autoscaling": {"enabled": True}}, "'/autoscaling/enabled': value must be false"),
    ({"replicas": 2}, "additional properties 'replicas' not allowed"),
    ({"store": {"kind": "mysql"}}, "'/store/kind': value must be one of 'sqlite', 'postgresql'"),
    ({"settings": {"RETENTION_DAY": 7}}, "additional properties 'RETENTION_DAY' not allowed"),
    ({"settings": {"API_KEY": "k"}}, "'/settings': additional properties 'API_KEY' not allowed"),
    ({"settings": {"PORT": 80}}, "'/settings': additional properties 'PORT' not allowed"),
    ({"settings": {"NATS_URL": "nats://user:password@nats"}}, "'/settings/NATS_URL'"),
    ({"settings": {"NAMESPACES": ["a"]}}, "'/settings/NAMESPACES': got array, want"),
    ({"otel": {"PATH": "/"}}, "'/otel': additional properties 'PATH' not allowed"),
    ({"otel": {"OTEL_EXPORTER_OTLP_HEADERS": "key=secret"}}, "move it into a Secret"),
    ({"otel": {"OTEL_TRACES_SAMPLER_ARG": 0.01}}, "needs otel.OTEL_TRACES_SAMPLER"),
    ({"secretSettings": {"API_KEY": "in plain sight"}}, "'/secretSettings/API_KEY': got string"),
    ({"secretSettings": {"API_KEY": None}}, "missing property 'API_KEY'"),
    ({"image": {"repository": ""}}, "image.repository is missing: --set image.repository="),
    ({"image": {"digest": "sha256:12"}}, "'/image/digest'"),
    ({"drainSeconds": -1}, "'/drainSeconds': minimum: got -1, want 0"),
    ({"existingSecret": ""}, "existingSecret is missing: name a Secret that has the key API_KEY"),
    ({"store": {"kind": "postgresql"}}, "needs secretSettings.DATABASE_URL, or settings.PG_HOST"),
    ({"secretSettings": {"DATABASE_URL": {}}}, "leave DATABASE_URL and PG_HOST out"),
    (
        {**POSTGRESQL, "settings": {"DATABASE_URL": "postgresql://db/duetime"}},
        "DATABASE_URL is in settings and in secretSettings",
    ),
    (
        {**POSTGRESQL, "autoscaling": {"enabled": True, "minReplicas": 9}},
        "autoscaling.minReplicas is more than autoscaling.maxReplicas",
    ),
    ({"metrics": {"serviceMonitor": {"enabled": True}}}, "metrics.serviceMonitor needs a key"),
    ({"metrics": {"prometheusRule": {"runbookBase": "docs"}}}, "/prometheusRule/runbookBase'"),
    ({"metrics": {"port": 8080}}, "metrics.port must not be 8080"),
    ({"ingress": {"enabled": True}}, "ingress.enabled needs ingress.hosts"),
]


@pytest.mark.parametrize(("values", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_wrong_values_are_refused(values: dict[str, Any], message: str, tmp_path: Path) -> None:
    given = tmp_path / "values.yaml"
    usual = {"existingSecret": "duetime", "image": {"repository": "duetime"}}
    given.write_text(yaml.safe_dump(usual | values), encoding="utf-8")
    answer = template("--values", given)
    assert answer.returncode != 0
    assert message in answer.stderr


def test_settings_arrive_as_they_were_written(tmp_path: Path) -> None:
    given = tmp_path / "values.yaml"
    given.write_text(
        "existingSecret: duetime\n"
        "image: {repository: duetime}\n"
        "secretSettings: {ENCRYPTION_KEYS: {secret: sealing, key: keys}}\n"
        "settings:\n"
        "  DISK_RESERVE_BYTES: 1073741824\n"
        "  MIN_DELAY_SECONDS: 0.5\n"
        "  CALLBACK_PROXY_GUARD: on\n"
        "  AUDIT_CREATES: off\n"
        '  NAMESPACES: "default,a:64"\n'
        "otel:\n"
        "  OTEL_SDK_DISABLED: true\n"
        "  OTEL_TRACES_SAMPLER: parentbased_traceidratio\n"
        "  OTEL_TRACES_SAMPLER_ARG: 0.01\n"
        "  OTEL_BSP_MAX_QUEUE_SIZE: 4194304\n",
        encoding="utf-8",
    )
    container = server(list(filter(None, yaml.safe_load_all(template("--values", given).stdout))))
    settings = plain_environment(container)
    assert (
        settings.items()
        >= {
            "DISK_RESERVE_BYTES": "1073741824",
            "MIN_DELAY_SECONDS": "0.5",
            "CALLBACK_PROXY_GUARD": "on",
            "AUDIT_CREATES": "off",
            "NAMESPACES": "default,a:64",
            # OpenTelemetry knows no other words.
            "OTEL_SDK_DISABLED": "true",
            "OTEL_TRACES_SAMPLER_ARG": "0.01",
            "OTEL_BSP_MAX_QUEUE_SIZE": "4194304",
        }.items()
    )
    assert secret_environment(container) == {
        "API_KEY": ("duetime", "API_KEY"),
        "ENCRYPTION_KEYS": ("sealing", "keys"),
    }


@pytest.mark.parametrize("name", ["sqlite", "monitored"])
def test_the_notes_tell_what_to_do_next(name: str, tmp_path: Path) -> None:
    # Helm shows notes only to those who have a cluster, so they become an object of a copy.
    copy = Path(shutil.copytree(CHART, tmp_path / "duetime"))
    (copy / "templates" / "NOTES.txt").rename(copy / "NOTES.txt")
    (copy / "templates" / "notes.yaml").write_text(
        'kind: Notes\ntext: |\n  {{- tpl (.Files.Get "NOTES.txt") . | nindent 2 }}\n'
    )
    values = CHART / "ci" / f"{name}-values.yaml"
    answer = helm(
        "template", "timers", copy, "--values", values, "--show-only=templates/notes.yaml"
    )
    assert answer.returncode == 0, answer.stderr
    notes = yaml.safe_load(answer.stdout)["text"]
    assert "port-forward service/timers-duetime 8080:80\n" in notes
    assert "duetime health --server http://127.0.0.1:8080\n" in notes
    assert ("claim data-timers-duetime-0" in notes) == (name == "sqlite")
    assert ("networkPolicy.egress must open" in notes) == (name == "monitored")
