"""A browser without scripts: pages, their tokens, and forms."""

import re
from collections.abc import Mapping
from html import unescape
from typing import Any

import httpx

_TOKEN = re.compile(r'<meta name="csrf" content="([0-9a-f]+)">')
_TAGS = re.compile(r"<[^>]*>")


class WebClient:
    """Sends forms as a browser does that has loaded the page before. The key goes along."""

    def __init__(self, api: httpx.AsyncClient, key: str | None = None) -> None:
        self._api = api
        self._headers = {} if key is None else {"X-API-Key": key}

    async def get(self, path: str) -> httpx.Response:
        return await self._api.get(path, headers=self._headers)

    async def send(
        self, path: str, fields: Mapping[str, str], *, page: str, json: bool = False
    ) -> httpx.Response:
        found = _TOKEN.search((await self.get(page)).text)
        token = "" if found is None else found[1]
        headers = {**self._headers, "sec-fetch-site": "same-origin"}
        if json:
            headers["accept"] = "application/json"
        return await self._api.post(path, data={"csrf": token, **fields}, headers=headers)

    async def check(self, **fields: str) -> Any:
        """The answer of the check while somebody types."""
        page = "/ui/create"
        answer = await self.send("/ui/create/check", form(**fields), page=page, json=True)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def create(self, **fields: str) -> httpx.Response:
        return await self.send("/ui/create", form(**fields), page="/ui/create")


def form(**fields: str) -> dict[str, str]:
    """The fields of the form for a new timer, as a browser sends them."""
    given = {name.rstrip("_"): value for name, value in fields.items()}
    return {
        "kind": "http",
        "when": "in",
        "in": "1 h",
        "zone": "UTC",
        "protocol": "status",
        "namespace": "default",
        **given,
    }


def words_of(answer: httpx.Response) -> str:
    """The words of a page, as they are read."""
    content = answer.text.partition("<main")[2].partition("</main>")[0]
    return " ".join(unescape(_TAGS.sub(" ", content)).split())
