"""Schemas that kubeconform checks objects against, as files that need nothing from elsewhere."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import yaml

from tests.toolchain import definition

# References of kubernetes-validate's files to their common definitions begin like this.
ELSEWHERE, BESIDE = "/api/_definitions.json#", "_definitions.json#"
KINDS = (
    "configmap-v1",
    "deployment-apps-v1",
    "horizontalpodautoscaler-autoscaling-v2",
    "ingress-networking-v1",
    "job-batch-v1",
    "networkpolicy-networking-v1",
    "poddisruptionbudget-policy-v1",
    "service-v1",
    "serviceaccount-v1",
    "statefulset-apps-v1",
)
OPERATOR_KINDS = {
    "servicemonitor-monitoring-v1": "servicemonitors",
    "prometheusrule-monitoring-v1": "prometheusrules",
}
LOCATION = "{{.ResourceKind}}{{.KindSuffix}}.json"


def write_schemas(version: str, directory: Path) -> None:
    """Write strict schemas of that version of Kubernetes, and of the Prometheus operator."""
    package = importlib.util.find_spec("kubernetes_validate")
    assert package is not None
    assert package.origin is not None
    folder = Path(package.origin).parent / "kubernetes-json-schema" / f"v{version}-local-strict"
    for name in (*KINDS, "_definitions"):
        text = (folder / f"{name}.json").read_text(encoding="utf-8")
        schema = json.loads(text.replace(ELSEWHERE, BESIDE))
        # References would be resolved against this address, and fetched from there.
        del schema["$id"]
        (directory / f"{name}.json").write_text(json.dumps(schema), encoding="utf-8")
    for name, plural in OPERATOR_KINDS.items():
        found = yaml.safe_load(definition(plural).read_text(encoding="utf-8"))
        (schema,) = (
            each["schema"]["openAPIV3Schema"]
            for each in found["spec"]["versions"]
            if each["name"] == "v1"
        )
        (directory / f"{name}.json").write_text(json.dumps(_strict(schema)), encoding="utf-8")


def _strict(schema: Any) -> Any:
    """The schema without room for unknown properties."""
    if isinstance(schema, list):
        return [_strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    stricter = {name: _strict(value) for name, value in schema.items()}
    # `metadata` is declared without its properties.
    if isinstance(schema.get("properties"), dict):
        stricter.setdefault("additionalProperties", False)
    return stricter
