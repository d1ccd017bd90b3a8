"""The bare limit of delivery: Duetime's HTTP client in a loop against the receiver.

The same loop measures aiohttp and pyreqwest with cookies, redirects and compression turned off.
"""

import asyncio
import gc
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from statistics import median
from typing import Literal, Protocol, get_args

import aiohttp
import msgspec
import uvloop
from pyreqwest.client import ClientBuilder
from pyreqwest.http import Url
from yarl import URL

from bench.harness.child import Child, answer_parent
from bench.harness.create_bodies import PAYLOAD_BYTES
from bench.harness.receiver import Receiver
from bench.scale import Scale
from duetime.delivery.http_client import HttpClient, parse_target

TIMEOUT_SECONDS = 30.0
CONCURRENCIES = (64, 256)
COMPARED_CONCURRENCY = 64

ClientName = Literal["own", "aiohttp", "pyreqwest"]

# The engine sends these headers too.
HEADER_LINES = (
    b"Content-Type: application/json\r\n"
    b"User-Agent: duetime-bench timer-platform/0.1.0\r\n"
    b"webhook-id: 019a0000-0000-7000-8000-000000000000\r\n"
    b"webhook-timestamp: 1790000000\r\n"
    b"Timer-Attempt: 1\r\n"
)
BODY = b'{"n":0,"due_us":0,"padding":"'.ljust(PAYLOAD_BYTES - 2, b"x") + b'"}'


class Posts(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    concurrency: int
    count: int
    client: ClientName = "own"
    timeout_seconds: float = 60.0


class PostFigures(msgspec.Struct, frozen=True, kw_only=True):
    concurrency: int
    count: int
    refused: int
    seconds: float
    per_second: float


class ClientFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Rounds of one client; `ratio` compares its median with that of Duetime's client."""

    client: ClientName
    best_per_second: float
    median_per_second: float
    ratio: float
    rounds: list[PostFigures]

    @property
    def faults(self) -> list[str]:
        refused = sum(each.refused for each in self.rounds)
        return [f"clients: {self.client} had {refused} posts refused"] if refused else []


class Post(Protocol):
    async def __call__(self) -> int:
        """Send the request, read the whole answer, return the status."""


OpenClient = Callable[[str, bytes, bytes], AbstractAsyncContextManager[Post]]
"""Takes URL, header lines and body; yields a function that posts them."""


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
            # `send` returns after reading the whole answer.
            answer = await client.post(target).headers(headers).body_bytes(body).build().send()
            return answer.status

        yield post


@asynccontextmanager
async def open_own(url: str, header_lines: bytes, body: bytes) -> AsyncIterator[Post]:
    client = HttpClient()
    target = parse_target(url)

    async def post() -> int:
        return (await client.post(target, header_lines, body, TIMEOUT_SECONDS)).status

    try:
        yield post
    finally:
        await client.close()


OPENERS: dict[ClientName, OpenClient] = {
    "own": open_own,
    "aiohttp": open_aiohttp,
    "pyreqwest": open_pyreqwest,
}


async def post_all(posts: Posts) -> PostFigures:
    async with OPENERS[posts.client](posts.url, HEADER_LINES, BODY) as post:
        return await run_posters(post, posts)


async def run_posters(post: Post, posts: Posts) -> PostFigures:
    remaining = iter(range(posts.count))
    refused = 0

    async def poster() -> None:
        nonlocal refused
        for _ in remaining:
            refused += await post() != 200

    gc.collect()
    gc.freeze()
    started = time.perf_counter()
    async with asyncio.timeout(posts.timeout_seconds), asyncio.TaskGroup() as posters:
        for _ in range(posts.concurrency):
            posters.create_task(poster())
    seconds = time.perf_counter() - started
    return PostFigures(
        concurrency=posts.concurrency,
        count=posts.count,
        refused=refused,
        seconds=round(seconds, 4),
        per_second=round(posts.count / seconds, 1),
    )


def measure_client(posts: Posts) -> PostFigures:
    """Called in the parent: run the loop in a child process."""
    with Child("bench.limits.http_clients") as child:
        return child.ask(posts, PostFigures, posts.timeout_seconds + 30)


def measure_clients(receiver: Receiver, scale: Scale) -> list[ClientFigures]:
    """Duetime's client first. The clients take turns, so that a slower machine slows them all."""
    names: tuple[ClientName, ...] = get_args(ClientName)
    rounds: dict[ClientName, list[PostFigures]] = {name: [] for name in names}
    for _ in range(scale.client_rounds):
        for name in names:
            posts = Posts(
                url=receiver.url,
                concurrency=COMPARED_CONCURRENCY,
                count=scale.posts,
                client=name,
            )
            rounds[name].append(measure_client(posts))
            receiver.forget()
    medians = {name: median(each.per_second for each in rounds[name]) for name in names}
    return [
        ClientFigures(
            client=name,
            best_per_second=max(each.per_second for each in rounds[name]),
            median_per_second=medians[name],
            ratio=round(medians[name] / medians["own"], 3),
            rounds=rounds[name],
        )
        for name in names
    ]


def main() -> None:
    posts = msgspec.json.decode(sys.stdin.buffer.readline(), type=Posts)
    answer_parent(uvloop.run(post_all(posts)))


if __name__ == "__main__":
    main()
