"""Objects that the Helm chart makes: valid for Kubernetes, and right for Duetime."""

import json
import re
import subprocess
import tarfile
import tomllib
from pathlib import Path

import pytest
import yaml

import duetime
from duetime.settings.definitions import SETTINGS
from duetime.settings.load import load_settings
from duetime.settings.values import PostgresStoreSettings, SqliteStoreSettings
from duetime.telemetry.metrics.catalogue.all_metrics import ALL_METRICS
from tests.deploy.chart import (
    CHART,
    OLDEST_KUBERNETES,
    VALUE_SETS,
    Object,
    helm,
    objects,
    of_kind,
    plain_environment,
    pods,
    secret_environment,
    server,
    template,
)
from tests.deploy.dockerfile import ROOT, arguments_of, stages
from tests.deploy.kubernetes_schemas import LOCATION, write_schemas
from tests.toolchain import tool

NEWEST_KUBERNETES = "1.37.0"
LABELS_OF_TARGETS = {"job", "instance", "namespace", "service", "pod", "container", "endpoint"}
"""Labels that the Prometheus operator gives to every target of a ServiceMonitor."""


@pytest.fixture(params=VALUE_SETS, ids=lambda path: path.name.removesuffix("-values.yaml"))
def values(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


@pytest.fixture
def rendered(values: Path) -> list[Object]:
    return objects(values)


def test_there_are_at_least_six_sets_of_values() -> None:
    assert len(VALUE_SETS) >= 6


def test_helm_lint_finds_nothing(values: Path) -> None:
    answer = helm("lint", "--strict", CHART, "--values", values)
    assert answer.returncode == 0, answer.stdout


@pytest.mark.parametrize("version", [OLDEST_KUBERNETES, NEWEST_KUBERNETES])
def test_kubeconform_accepts_all_objects(version: str, tmp_path: Path) -> None:
    schemas, made = tmp_path / "schemas", tmp_path / "made"
    schemas.mkdir()
    made.mkdir()
    write_schemas(version, schemas)
    count = 0
    for values in VALUE_SETS:
        answer = template("--values", values)
        (made / values.name).write_text(answer.stdout, encoding="utf-8")
        count += len(re.findall("^kind:", answer.stdout, re.MULTILINE))
    checked = subprocess.run(
        [
            *(tool("kubeconform"), "-strict", "-output=json", "-summary"),
            *("-kubernetes-version", version, "-schema-location", f"{schemas}/{LOCATION}", made),
        ],
        capture_output=True,
        text=True,
    )
    report = json.loads(checked.stdout)
    assert not report["resources"]
    assert report["summary"] == {"valid": count, "invalid": 0, "errors": 0, "skipped": 0}


def test_one_kind_of_server_for_each_store(values: Path, rendered: list[Object]) -> None:
    store = (yaml.safe_load(values.read_text()).get("store") or {}).get("kind", "sqlite")
    kinds = sorted({each["kind"] for each in rendered} & {"StatefulSet", "Deployment"})
    settings = plain_environment(server(rendered))
    if store == "sqlite":
        assert kinds == ["StatefulSet"]
        (stateful,) = of_kind("StatefulSet", rendered)
        assert stateful["spec"]["replicas"] == 1
        mounts = {each["name"]: each["mountPath"] for each in server(rendered)["volumeMounts"]}
        (claim,) = stateful["spec"]["volumeClaimTemplates"]
        assert Path(settings["TIMER_DB_PATH"]).parent == Path(mounts[claim["metadata"]["name"]])
        assert not of_kind("Job", rendered), "a running pod holds the file"
    else:
        assert kinds == ["Deployment"]
        assert "TIMER_DB_PATH" not in settings


def test_duetime_accepts_its_settings(values: Path, rendered: list[Object]) -> None:
    given = plain_environment(server(rendered))
    secret = secret_environment(server(rendered))
    own = {name for name in given.keys() | secret.keys() if not name.startswith("OTEL_")}
    assert own <= SETTINGS.keys()
    assert not any(SETTINGS[name].secret for name in own & given.keys()), "a secret in plain sight"
    examples = {
        "API_KEY": "a" * 32,
        "DATABASE_URL": "postgresql://duetime:secret@db/duetime",
        "ENCRYPTION_KEYS": "k1:" + "A" * 43 + "=",
        "WEBHOOK_SECRETS": "whsec_" + "A" * 32,
    }
    known = {name: examples.get(name, "a-password") for name in secret}
    paths = {name for name in given if SETTINGS.get(name) and SETTINGS[name].unit == "path"}
    settings = load_settings(
        {
            name: value
            for name, value in (given | known).items()
            if name not in paths - {"TIMER_DB_PATH"}
        },
        dotenv_path=None,
    )
    kind = (yaml.safe_load(values.read_text()).get("store") or {}).get("kind", "sqlite")
    expected = SqliteStoreSettings if kind == "sqlite" else PostgresStoreSettings
    assert isinstance(settings.store, expected)
    assert not settings.warnings


def test_a_pod_has_time_to_drain_and_to_finish(rendered: list[Object]) -> None:
    given = plain_environment(server(rendered))
    drain, grace = float(given["DRAIN_SECONDS"]), float(given["SHUTDOWN_GRACE_SECONDS"])
    assert pods(rendered)[0]["terminationGracePeriodSeconds"] > drain + 2 * grace


def test_probes_ask_the_right_questions(rendered: list[Object]) -> None:
    container = server(rendered)
    asked = {
        name: (container[name]["httpGet"]["path"], container[name]["httpGet"]["port"])
        for name in ("startupProbe", "livenessProbe", "readinessProbe")
    }
    # A database that is away, or a drain, must not restart a pod.
    assert asked == {
        "startupProbe": ("/livez", "http"),
        "livenessProbe": ("/livez", "http"),
        "readinessProbe": ("/readyz", "http"),
    }
    ports = {each["name"]: str(each["containerPort"]) for each in container["ports"]}
    given = plain_environment(container)
    assert ports == {"http": given["PORT"], "metrics": given["METRICS_PORT"]}


def test_a_draining_pod_is_noticed_before_it_stops() -> None:
    container = server(objects(CHART / "ci" / "postgresql-values.yaml"))
    probe = container["readinessProbe"]
    noticed = probe["periodSeconds"] * probe["failureThreshold"] + probe["timeoutSeconds"]
    assert float(plain_environment(container)["DRAIN_SECONDS"]) >= noticed


def test_every_pod_is_confined(rendered: list[Object]) -> None:
    user = int(arguments_of("USER", stages()[-1])[0].partition(":")[0])
    for pod in pods(rendered):
        assert pod["automountServiceAccountToken"] is False
        # A Service named nats would set NATS_PORT to a URL.
        assert pod["enableServiceLinks"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] == user
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        (container,) = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["requests"]


def test_selectors_find_the_servers_and_not_the_migration(rendered: list[Object]) -> None:
    (running,) = of_kind("StatefulSet", rendered) + of_kind("Deployment", rendered)
    labels = running["spec"]["template"]["metadata"]["labels"].items()
    selectors = [
        running["spec"]["selector"]["matchLabels"],
        *(each["spec"]["selector"] for each in of_kind("Service", rendered)),
        *(
            each["spec"]["selector"]["matchLabels"]
            for each in of_kind("PodDisruptionBudget", rendered)
        ),
    ]
    for selector in selectors:
        assert selector.items() <= labels
        for job in of_kind("Job", rendered):
            assert not selector.items() <= job["spec"]["template"]["metadata"]["labels"].items()


def test_the_schema_is_migrated_before_pods_are_replaced() -> None:
    made = objects(CHART / "ci" / "postgresql-values.yaml")
    (job,) = of_kind("Job", made)
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["migrate"]
    assert secret_environment(container) == secret_environment(server(made))
    # Nothing that the release itself creates exists when the hook of the first installation runs.
    account = job["spec"]["template"]["spec"]["serviceAccountName"]
    assert account not in {each["metadata"]["name"] for each in of_kind("ServiceAccount", made)}
    (deployment,) = of_kind("Deployment", made)
    assert deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0


def test_only_the_autoscaler_decides_the_number_of_pods() -> None:
    made = objects(CHART / "ci" / "autoscaled-values.yaml")
    (scaler,) = of_kind("HorizontalPodAutoscaler", made)
    (deployment,) = of_kind("Deployment", made)
    assert scaler["spec"]["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
    assert "replicas" not in deployment["spec"]


def test_prometheus_finds_the_metrics_and_the_rules() -> None:
    made = objects(CHART / "ci" / "monitored-values.yaml")
    (monitor,) = of_kind("ServiceMonitor", made)
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    (found,) = (
        each for each in of_kind("Service", made) if wanted <= each["metadata"]["labels"].items()
    )
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["port"] in {each["name"] for each in found["spec"]["ports"]}
    *_, dropped, job = endpoint["relabelings"]
    ours = {label for metric in ALL_METRICS for label in metric.labels}
    assert dropped["action"] == "labeldrop"
    assert set(dropped["regex"].split("|")) == ours & LABELS_OF_TARGETS, "Duetime's are renamed"
    assert job["targetLabel"] == "job"
    assert job["replacement"] == f"duetime/default/{monitor['metadata']['name']}"
    assert endpoint["authorization"]["credentials"] == {"name": "duetime-read-key", "key": "key"}
    (rule,) = of_kind("PrometheusRule", made)
    rules = (ROOT / "deploy" / "prometheus" / "duetime.rules.yaml").read_text(encoding="utf-8")
    assert rule["spec"] == yaml.safe_load(rules)
    (public,) = of_kind("ServiceMonitor", objects(CHART / "ci" / "public-metrics-values.yaml"))
    assert "authorization" not in public["spec"]["endpoints"][0]


def test_alerts_lead_to_their_pages_wherever_these_are() -> None:
    values = CHART / "ci" / "monitored-values.yaml"
    base = "https://git.example.com/timers/blob/main/docs/runbooks/alerts"
    answer = template("--values", values, "--set", f"metrics.prometheusRule.runbookBase={base}/")
    assert answer.returncode == 0, answer.stderr
    made = [each for each in yaml.safe_load_all(answer.stdout) if each]
    given, plain = (
        [
            rule["annotations"]["runbook_url"]
            for group in of_kind("PrometheusRule", each)[0]["spec"]["groups"]
            for rule in group["rules"]
            if "alert" in rule
        ]
        for each in (made, objects(values))
    )
    assert given == [f"{base}/{Path(url).name}" for url in plain]


def test_grafana_finds_the_dashboard() -> None:
    (dashboard,) = of_kind("ConfigMap", objects(CHART / "ci" / "monitored-values.yaml"))
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
    source = ROOT / "deploy" / "grafana" / "duetime.json"
    assert json.loads(dashboard["data"]["duetime.json"]) == json.loads(source.read_bytes())


def test_the_network_policy_closes_private_ranges() -> None:
    made = objects(CHART / "ci" / "monitored-values.yaml")
    (policy,) = of_kind("NetworkPolicy", made)
    blocks = [
        peer["ipBlock"]
        for rule in policy["spec"]["egress"]
        for peer in rule.get("to", ())
        if "ipBlock" in peer
    ]
    assert {"10.0.0.0/8", "169.254.0.0/16", "192.168.0.0/16"} <= set(blocks[0]["except"])
    (closed,) = of_kind("NetworkPolicy", objects(CHART / "ci" / "public-metrics-values.yaml"))
    assert [each["ports"][0]["port"] for each in closed["spec"]["egress"]] == [53]


def test_the_version_is_that_of_the_service() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert chart["version"] == chart["appVersion"] == duetime.__version__
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert chart["annotations"]["artifacthub.io/license"] == project["license"]


@pytest.mark.parametrize("source", ["prometheus/duetime.rules.yaml", "grafana/duetime.json"])
def test_a_packaged_chart_holds_what_it_links_to(source: str, tmp_path: Path) -> None:
    answer = helm("package", CHART, "--destination", tmp_path)
    assert answer.returncode == 0, answer.stderr
    with tarfile.open(tmp_path / f"duetime-{duetime.__version__}.tgz") as package:
        packed = package.extractfile(f"duetime/files/{Path(source).name}")
        assert packed is not None
        assert packed.read() == (ROOT / "deploy" / source).read_bytes()
