"""The bare limit of delivery: a loop of the product's own HTTP client against the receiver.

No store, no engine: what remains is what one POST costs. It runs in its own process.
"""

import asyncio
import gc
import sys
import time

import msgspec
import uvloop

from bench.child import Child, answer_parent
from bench.load import PAYLOAD_BYTES
from duetime.delivery.http_client import HttpClient, parse_target

CONCURRENCIES = (64, 256)


class Posts(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    concurrency: int
    count: int
    timeout_seconds: float = 60.0


class PostFigures(msgspec.Struct, frozen=True, kw_only=True):
    concurrency: int
    count: int
    refused: int
    seconds: float
    per_second: float


async def post_all(posts: Posts) -> PostFigures:
    client = HttpClient()
    target = parse_target(posts.url)
    # What the engine sends has these headers too; without them the limit would flatter itself.
    header_lines = (
        b"Content-Type: application/json\r\n"
        b"User-Agent: duetime-bench timer-platform/0.1.0\r\n"
        b"webhook-id: 019a0000-0000-7000-8000-000000000000\r\n"
        b"webhook-timestamp: 1790000000\r\n"
        b"Timer-Attempt: 1\r\n"
    )
    body = b'{"n":0,"due_us":0,"padding":"'.ljust(PAYLOAD_BYTES - 2, b"x") + b'"}'
    remaining = iter(range(posts.count))
    refused = 0

    async def poster() -> None:
        nonlocal refused
        for _ in remaining:
            answer = await client.post(target, header_lines, body, 30.0)
            refused += answer.status != 200

    gc.collect()
    gc.freeze()
    started = time.perf_counter()
    async with asyncio.timeout(posts.timeout_seconds), asyncio.TaskGroup() as posters:
        for _ in range(posts.concurrency):
            posters.create_task(poster())
    seconds = time.perf_counter() - started
    await client.close()
    return PostFigures(
        concurrency=posts.concurrency,
        count=posts.count,
        refused=refused,
        seconds=round(seconds, 4),
        per_second=round(posts.count / seconds, 1),
    )


def measure_client(posts: Posts) -> PostFigures:
    """Called in the parent: run the loop in a process of its own."""
    with Child("bench.client_limit") as child:
        return child.ask(posts, PostFigures, posts.timeout_seconds + 30)


def main() -> None:
    posts = msgspec.json.decode(sys.stdin.buffer.readline(), type=Posts)
    answer_parent(uvloop.run(post_all(posts)))


if __name__ == "__main__":
    main()
