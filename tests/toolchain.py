"""Programs that tests start but Python does not bring: actionlint, helm, kubeconform, compose-spec,
promtool, prometheus and tsc. `make tools` installs them into .tools."""

from pathlib import Path

from tests.brokers.broker_process import find_program, skip_without

TOOLS = Path(__file__).resolve().parents[1] / ".tools"


def tool(name: str) -> Path:
    """The program of that name, on the PATH or in .tools. Without it the test is skipped; where
    the variable CI is set, it fails.

    >>> subprocess.run([tool("promtool"), "check", "rules", rules], check=True)
    """
    found = find_program(name, TOOLS / "bin")
    return skip_without(found, f"{name} is missing: make tools installs it")


def definition(kind: str) -> Path:
    """The file that defines a kind of the Prometheus operator, e.g. `servicemonitors`."""
    path = TOOLS / "crds" / f"{kind}.yaml"
    return skip_without(path if path.exists() else None, f"{path.name} is missing: make tools")
