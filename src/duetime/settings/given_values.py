"""The texts that settings were given as, and what is wrong with them."""

from typing import TypeVar

from duetime.settings.definitions import Setting
from duetime.settings.parsers import without_secrets
from duetime.settings.sources import ENVIRONMENT, Given

ValueT = TypeVar("ValueT")


class Texts:
    """The given texts, read on demand; one that cannot be read becomes a problem."""

    def __init__(self, given: dict[str, Given], problems: list[str]) -> None:
        self._given = {name: value for name, value in given.items() if value.text}
        self._problems = problems

    def has(self, setting: Setting[object]) -> bool:
        return setting.name in self._given

    def value(self, setting: Setting[ValueT]) -> ValueT:
        assert setting.default is not None
        value = self.optional(setting)
        return setting.read(setting.default) if value is None else value

    def optional(self, setting: Setting[ValueT]) -> ValueT | None:
        if not self.has(setting):
            return None
        try:
            return setting.read(self._given[setting.name].text)
        except ValueError as error:
            self.problem(setting, f"must be {error}")
        return None

    def problem(self, setting: Setting[object], text: str) -> None:
        """Record a problem with a setting that was given, in one line."""
        given = self._given[setting.name]
        shown = "" if setting.secret else f"={_shortened(given.text, setting.url)!r}"
        source = "" if given.source == ENVIRONMENT else f" (from {given.source})"
        self._problems.append(f"{setting.name}{shown}{source}: {text}")

    def missing(self, setting: Setting[object], text: str) -> None:
        self._problems.append(f"{setting.name} is missing: {text}")


def _shortened(text: str, is_url: bool) -> str:
    shown = without_secrets(text) if is_url else text
    return shown if len(shown) <= 60 else shown[:57] + "..."
