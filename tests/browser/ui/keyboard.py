"""A person without a mouse."""

import pytest
from playwright.async_api import Locator, Page, expect

MAX_TABS = 250
"""Tabs pressed in search of something before it counts as out of reach."""

_IS_FOCUSED = "element => element === document.activeElement"


class Keyboard:
    """Uses a page by keys alone. Locators only name what is to be reached."""

    def __init__(self, page: Page) -> None:
        self._page = page

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self._page.keyboard.press(key)

    async def type(self, text: str) -> None:
        await self._page.keyboard.type(text)

    async def reach(self, locator: Locator, key: str = "Tab") -> None:
        """Press the key until the element has the focus."""
        await expect(locator).to_be_visible()
        for _ in range(MAX_TABS):
            if await locator.evaluate(_IS_FOCUSED):
                return
            await self.press(key)
        pytest.fail(f"{key} never leads to {locator}")

    async def activate(self, locator: Locator) -> None:
        await self.reach(locator)
        await self.press("Enter")

    async def fill(self, locator: Locator, text: str) -> None:
        await self.reach(locator)
        await self.press("ControlOrMeta+A")
        await self.type(text)
