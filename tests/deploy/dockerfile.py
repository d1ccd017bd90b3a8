"""The Dockerfile as instructions."""

import json
import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "Dockerfile"


class Instruction(NamedTuple):
    name: str
    arguments: str


def stages() -> list[list[Instruction]]:
    """The instructions of each stage; the first list holds those before any stage."""
    text = re.sub(r"^\s*#.*\n", "", DOCKERFILE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", " ", text).split("\n")
    found: list[list[Instruction]] = [[]]
    for name, _, arguments in (line.partition(" ") for line in lines if line.strip()):
        if name == "FROM":
            found.append([])
        found[-1].append(Instruction(name, arguments.strip()))
    return found


def arguments_of(name: str, stage: list[Instruction]) -> list[str]:
    return [each.arguments for each in stage if each.name == name]


def environment(stage: list[Instruction]) -> dict[str, str]:
    words = " ".join(arguments_of("ENV", stage)).split()
    return dict(word.split("=", 1) for word in words)


def health_command(stage: list[Instruction]) -> list[str]:
    (healthcheck,) = arguments_of("HEALTHCHECK", stage)
    command: list[str] = json.loads(healthcheck.partition("CMD ")[2])
    return command
