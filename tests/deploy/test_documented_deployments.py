"""Commands and values of the pages about containers and Kubernetes."""

import re
import shlex
from pathlib import Path

import pytest

from tests.deploy.chart import helm
from tests.deploy.dockerfile import ROOT, arguments_of, stages

KUBERNETES = (ROOT / "docs" / "how-to" / "run-on-kubernetes.md").read_text(encoding="utf-8")
CONTAINERS = (ROOT / "docs" / "how-to" / "run-in-containers.md").read_text(encoding="utf-8")
CHART_README = (ROOT / "deploy" / "helm" / "duetime" / "README.md").read_text(encoding="utf-8")

VALUES = re.findall(r"^```yaml\n(.*?)^```", KUBERNETES, re.MULTILINE | re.DOTALL)
HELM = re.compile(r"^helm (?:upgrade --install|install) ((?:\\\n|.)*)", re.MULTILINE)


def commands(name: str, page: str) -> list[list[str]]:
    lines = re.findall(rf"^{name} (?:\\\n|.)*", page, re.MULTILINE)
    return [shlex.split(line.replace("\\\n", " "), comments=True) for line in lines]


@pytest.mark.parametrize("values", VALUES, ids=range(len(VALUES)))
def test_documented_values_are_accepted(
    values: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    (tmp_path / "values.yaml").write_text(values, encoding="utf-8")
    answer = helm("template", "./deploy/helm/duetime", "--values", tmp_path / "values.yaml")
    assert answer.returncode == 0, answer.stderr


def test_documented_installations_can_be_rendered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "values.yaml").write_text(VALUES[0], encoding="utf-8")
    (tmp_path / "deploy").symlink_to(ROOT / "deploy")
    monkeypatch.chdir(tmp_path)
    found = HELM.findall(KUBERNETES + CHART_README)
    assert len(found) == 3
    for arguments in found:
        answer = helm("template", *shlex.split(arguments.replace("\\\n", " ")))
        assert answer.returncode == 0, answer.stderr
        assert "name: timers-duetime" in answer.stdout, "the page names objects of that release"


def test_the_documented_container_is_confined() -> None:
    (run,) = (each for each in commands("docker", CONTAINERS) if each[1] == "run")
    given = " ".join(run)
    for option in ("--read-only", "--tmpfs /tmp", "--cap-drop ALL", "--volume timers:/data"):
        assert option in given
    (build,) = (each for each in commands("docker", CONTAINERS) if "--build-arg" in each)
    argument = build[build.index("--build-arg") + 1].partition("=")[0]
    assert f"{argument}=" in arguments_of("ARG", stages()[0])
