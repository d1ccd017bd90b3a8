"""compose.yaml, read by the reference implementation of the Compose specification."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from duetime.settings.definitions import SETTINGS
from duetime.settings.load import load_settings
from duetime.settings.values import NatsSettings, PostgresStoreSettings, SqliteStoreSettings
from tests.deploy.dockerfile import ROOT
from tests.toolchain import tool

COMPOSE = ROOT / "compose.yaml"
CLUSTER = {"node-1", "node-2", "postgres", "nats", "prometheus", "grafana"}
NODES = ("duetime", "node-1", "node-2")

Json = dict[str, Any]


def read(compose: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [tool("compose-spec"), "-format=json", compose],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Json]:
    """The services where .env holds only the key. The program that reads the file takes no
    variables from its environment, so they are put in here."""
    text = COMPOSE.read_text(encoding="utf-8")
    text = re.sub(r"\$\{API_KEY:\?[^}]*\}", "a" * 32, text)
    text = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text)
    given = tmp_path_factory.mktemp("compose") / "compose.yaml"
    given.write_text(text, encoding="utf-8")
    answer = read(given)
    assert answer.returncode == 0, answer.stderr
    found: dict[str, Json] = json.loads(answer.stdout)["services"]
    return found


def test_only_the_key_must_be_given() -> None:
    answer = read(COMPOSE)
    refused = [line for line in answer.stderr.splitlines() if "required variable" in line]
    assert refused
    assert all("required variable API_KEY is missing" in line for line in refused)
    assert "run-in-containers.md" in answer.stderr


def test_one_service_runs_unless_the_cluster_is_asked_for(services: dict[str, Json]) -> None:
    assert {name for name, each in services.items() if "profiles" not in each} == {"duetime"}
    assert {
        name for name, each in services.items() if each.get("profiles") == ["cluster"]
    } == CLUSTER


@pytest.mark.parametrize("name", ["duetime", *sorted(CLUSTER)])
def test_every_service_is_hardened_and_checked(services: dict[str, Json], name: str) -> None:
    service = services[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    if name in NODES:
        # That of the image stays healthy while a database is away.
        assert "healthcheck" not in service
    else:
        assert service["healthcheck"]["test"][0] == "CMD"
    assert all(port["host_ip"] == "127.0.0.1" for port in service.get("ports", ()))
    if "image" in service and name not in NODES:
        assert not service["image"].endswith(":latest")
        assert ":" in service["image"]


@pytest.mark.parametrize("name", NODES)
def test_settings_of_the_nodes_are_accepted(services: dict[str, Json], name: str) -> None:
    variables = {name: str(value) for name, value in services[name]["environment"].items()}
    assert variables.keys() <= SETTINGS.keys()
    settings = load_settings(variables, dotenv_path=None)
    if name == "duetime":
        assert settings.store == SqliteStoreSettings(Path("/data/duetime.db"))
    else:
        assert isinstance(settings.store, PostgresStoreSettings)
        assert isinstance(settings.nats, NatsSettings)
        assert settings.broker is not None
    grace = float(services[name]["stop_grace_period"].rstrip("s"))
    assert grace > settings.drain_seconds + 2 * settings.shutdown_grace_seconds


def test_nodes_wait_for_what_they_need(services: dict[str, Json]) -> None:
    for name in ("node-1", "node-2"):
        needed = services[name]["depends_on"]
        assert needed.keys() == {"postgres", "nats"}
        assert all(each["condition"] == "service_healthy" for each in needed.values())
    password = services["postgres"]["environment"]["POSTGRES_PASSWORD"]
    assert services["node-1"]["environment"]["PG_PASSWORD"] == password


def test_mounted_files_are_there(services: dict[str, Json]) -> None:
    for service in services.values():
        for mount in service.get("volumes", ()):
            if mount["type"] == "bind":
                assert Path(mount["source"]).exists()
                assert mount["read_only"] is True


def test_prometheus_scrapes_the_nodes(services: dict[str, Json]) -> None:
    config = ROOT / "deploy" / "prometheus" / "prometheus.yaml"
    subprocess.run([tool("promtool"), "check", "config", config], check=True)
    (job,) = yaml.safe_load(config.read_text(encoding="utf-8"))["scrape_configs"]
    (targets,) = (each["targets"] for each in job["static_configs"])
    assert targets == [
        f"{name}:{services[name]['environment']['METRICS_PORT']}" for name in ("node-1", "node-2")
    ]


def test_grafana_finds_prometheus_and_the_dashboards(services: dict[str, Json]) -> None:
    provisioning = ROOT / "deploy" / "grafana" / "provisioning"
    (source,) = yaml.safe_load((provisioning / "datasources" / "prometheus.yaml").read_text())[
        "datasources"
    ]
    assert source["url"] == "http://prometheus:9090"
    (provider,) = yaml.safe_load((provisioning / "dashboards" / "duetime.yaml").read_text())[
        "providers"
    ]
    mounts = {each["target"]: each["source"] for each in services["grafana"]["volumes"]}
    assert mounts[provider["options"]["path"]] == str(ROOT / "deploy" / "grafana")
