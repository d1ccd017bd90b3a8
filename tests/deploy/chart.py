"""The Helm chart, rendered with values."""

import functools
import subprocess
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.dockerfile import ROOT
from tests.toolchain import tool

CHART = ROOT / "deploy" / "helm" / "duetime"
VALUE_SETS = sorted((CHART / "ci").glob("*-values.yaml"))
OLDEST_KUBERNETES = "1.27.0"

Object = dict[str, Any]


def helm(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([tool("helm"), *arguments], capture_output=True, text=True)


def template(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    return helm("template", "duetime", CHART, "--kube-version", OLDEST_KUBERNETES, *arguments)


@functools.cache
def objects(values: Path) -> list[Object]:
    """The objects that the values give. Tests share them, and change none."""
    answer = template("--values", values)
    assert answer.returncode == 0, answer.stderr
    return [each for each in yaml.safe_load_all(answer.stdout) if each]


def of_kind(kind: str, rendered: list[Object]) -> list[Object]:
    return [each for each in rendered if each["kind"] == kind]


def pods(rendered: list[Object]) -> list[Object]:
    """The specification of every pod, of the server's first."""
    return [
        each["spec"]["template"]["spec"]
        for kind in ("StatefulSet", "Deployment", "Job")
        for each in of_kind(kind, rendered)
    ]


def server(rendered: list[Object]) -> Object:
    container: Object = pods(rendered)[0]["containers"][0]
    return container


def plain_environment(container: Object) -> dict[str, str]:
    return {each["name"]: each["value"] for each in container["env"] if "value" in each}


def secret_environment(container: Object) -> dict[str, tuple[str, str]]:
    """The Secret and the key that each variable comes from."""
    references = {
        each["name"]: each["valueFrom"]["secretKeyRef"]
        for each in container["env"]
        if "valueFrom" in each
    }
    return {name: (each["name"], each["key"]) for name, each in references.items()}
