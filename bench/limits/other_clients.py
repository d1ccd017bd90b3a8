"""aiohttp and pyreqwest, each as its users would set it up for callbacks.

What callbacks do not need and the client lets go of is off: cookies, redirects, compression.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from typing import Protocol

import aiohttp
from pyreqwest.client import ClientBuilder
from pyreqwest.http import Url
from yarl import URL

TIMEOUT_SECONDS = 30.0


class Post(Protocol):
    async def __call__(self) -> int:
        """Send the request, read the answer to its end, return the status."""


OpenClient = Callable[[str, bytes, bytes], AbstractAsyncContextManager[Post]]
"""From URL, header lines and body: a client, as a function that posts these each time."""


def headers_of(header_lines: bytes) -> dict[str, str]:
    lines = header_lines.decode().splitlines()
    return {name: value for name, _, value in (line.partition(": ") for line in lines)}


@asynccontextmanager
async def open_aiohttp(url: str, header_lines: bytes, body: bytes) -> AsyncIterator[Post]:
    headers = headers_of(header_lines)
    target = URL(url)
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        cookie_jar=aiohttp.DummyCookieJar(),
        skip_auto_headers=("Accept", "Accept-Encoding"),
        timeout=aiohttp.ClientTimeout(total=TIMEOUT_SECONDS),
    ) as session:

        async def post() -> int:
            async with session.post(
                target, headers=headers, data=body, allow_redirects=False
            ) as answer:
                await answer.read()
                return answer.status

        yield post


@asynccontextmanager
async def open_pyreqwest(url: str, header_lines: bytes, body: bytes) -> AsyncIterator[Post]:
    headers = headers_of(header_lines)
    target = Url(url)
    builder = ClientBuilder().follow_redirects(False).no_proxy()
    builder = builder.gzip(False).brotli(False).zstd(False).deflate(False)
    async with builder.timeout(timedelta(seconds=TIMEOUT_SECONDS)).build() as client:

        async def post() -> int:
            # The answer has been read to its end when `send` returns.
            answer = await client.post(target).headers(headers).body_bytes(body).build().send()
            return answer.status

        yield post
