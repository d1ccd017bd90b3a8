"""A long stream of timers into the import, and the server's memory meanwhile.

A child process writes the lines into a file first, then sends it as fast as the server reads.
"""

import http.client
import os
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from bench.harness.child import Child, answer_parent
from bench.harness.create_bodies import V1Form, v1_body
from bench.harness.load_generator import RandomInstants, generate
from bench.harness.percentiles import Percentiles
from bench.harness.server import Server, ServerCpu
from bench.limits.inserts import CALLBACK_URL, InsertLimit, measure_inserts
from bench.measurements.v1.batches import BATCH, batch_load, random_instants
from bench.measurements.v1.listing import time_first_page
from bench.scale import V1Scale
from bench.stores.store_under_test import StoreUnderTest
from duetime.stores.sqlite.writer import ENOUGH_TIMERS_FOR_COMMIT

CHUNK_BYTES = 256 * 1024
PROGRESS_REPORTS = 20
SAMPLED_PERCENTS = (10, 50, 100)
TIMEOUT_SECONDS = 300.0


class Stream(msgspec.Struct, frozen=True, kw_only=True):
    port: int
    api_key: str
    file: str
    count: int
    instants: RandomInstants


class ImportCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The server's answer at the end of the stream."""

    lines: int
    created: int
    existing: int
    conflicts: int
    invalid: int
    errors: list[dict[str, int | str]]


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of the sender, from 0 percent to the server's answer or refusal."""

    percent: float
    seconds: float = 0.0
    answer: ImportCounts | None = None
    refusal: str | None = None


class MemorySample(msgspec.Struct, frozen=True, kw_only=True):
    percent: float
    memory_mb: float


class ImportFigures(msgspec.Struct, frozen=True, kw_only=True):
    """`memory` is the server's, from before the first line until after the answer."""

    count: int
    stream_mb: float
    seconds: float
    per_second: float
    limit: InsertLimit
    ratio: float
    answer: ImportCounts | None
    cpu_us_per_timer: float
    memory: list[MemorySample]
    first_page: Percentiles
    faults: list[str]

    def memory_at(self, percent: int) -> float:
        return next(each.memory_mb for each in self.memory if each.percent >= percent)

    @property
    def peak_mb(self) -> float:
        return max(each.memory_mb for each in self.memory)


def measure_import(store: StoreUnderTest, scale: V1Scale) -> ImportFigures:
    instants, count = random_instants(), scale.import_timers
    limit = measure_inserts(
        store,
        instants,
        warm_up=scale.batch_warm_up,
        count=count,
        batch=BATCH,
        sqlite_batch=ENOUGH_TIMERS_FOR_COMMIT,
    )
    file = store.directory / "import.ndjson"
    with Server(store) as server, Child("bench.measurements.v1.imports") as child:
        generate(batch_load(server, CALLBACK_URL, scale.batch_warm_up, instants))
        tally = server.tally()
        cpu = ServerCpu(server)
        child.tell(
            Stream(
                port=server.port,
                api_key=server.api_key,
                file=str(file),
                count=count,
                instants=instants,
            )
        )
        memory = []
        while True:
            sent = child.read(Sent, TIMEOUT_SECONDS)
            memory.append(
                MemorySample(percent=sent.percent, memory_mb=round(server.memory_mb(), 1))
            )
            if sent.answer is not None or sent.refusal is not None:
                break
        cpu_us_per_timer = cpu.us_per_timer(count)
        first_page = time_first_page(server)
        stored = tally.pending()
    per_second = round(count / sent.seconds, 1)
    return ImportFigures(
        count=count,
        stream_mb=round(file.stat().st_size / 1e6, 1),
        seconds=round(sent.seconds, 3),
        per_second=per_second,
        limit=limit,
        ratio=round(per_second / limit.per_second, 3),
        answer=sent.answer,
        cpu_us_per_timer=cpu_us_per_timer,
        memory=memory,
        first_page=first_page,
        faults=faults_of(sent, count, stored),
    )


def faults_of(sent: Sent, count: int, stored: int) -> list[str]:
    answer = sent.answer
    if answer is None:
        return [f"import: {sent.refusal}"]
    faults = []
    if not answer.lines == answer.created == count or answer.errors:
        faults.append(
            f"import: {count} lines sent, answered {msgspec.json.encode(answer).decode()}"
        )
    if stored != count:
        faults.append(f"import: {count} lines sent but {stored} stored")
    return faults


def write_lines(stream: Stream, file: Path) -> None:
    form = V1Form()
    with file.open("wb") as lines:
        for number in range(stream.count):
            due_us = stream.instants.due_us(number)
            lines.write(v1_body(form, number, due_us, CALLBACK_URL) + b"\n")
        # Otherwise the disk would write this file during the server's commits.
        lines.flush()
        os.fsync(lines.fileno())


def send_file(stream: Stream, file: Path, tell: Callable[[float], None]) -> tuple[int, bytes]:
    """Status and body of the answer. `tell` gets the share sent so far, twenty times."""
    size, sent, told = file.stat().st_size, 0, 0
    with socket.create_connection(("127.0.0.1", stream.port), TIMEOUT_SECONDS) as connection:
        connection.sendall(
            (
                f"POST /api/v1/timers/import HTTP/1.1\r\nHost: 127.0.0.1:{stream.port}\r\n"
                f"X-API-Key: {stream.api_key}\r\nContent-Type: application/x-ndjson\r\n"
                "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
            ).encode()
        )
        with file.open("rb") as lines:
            while chunk := lines.read(CHUNK_BYTES):
                connection.sendall(b"%x\r\n%b\r\n" % (len(chunk), chunk))
                sent += len(chunk)
                if sent * PROGRESS_REPORTS >= (told + 1) * size:
                    told = sent * PROGRESS_REPORTS // size
                    tell(sent / size)
        connection.sendall(b"0\r\n\r\n")
        answer = http.client.HTTPResponse(connection, method="POST")
        answer.begin()
        return answer.status, answer.read()


def send(stream: Stream) -> Sent:
    file = Path(stream.file)
    write_lines(stream, file)
    answer_parent(Sent(percent=0.0))
    started = time.perf_counter()
    status, body = send_file(
        stream, file, lambda share: answer_parent(Sent(percent=round(100 * share, 1)))
    )
    seconds = time.perf_counter() - started
    if status != 200:
        refusal = f"HTTP {status}: {body[:300]!r}"
        return Sent(percent=100.0, seconds=seconds, refusal=refusal)
    counts = msgspec.json.decode(body, type=ImportCounts)
    return Sent(percent=100.0, seconds=seconds, answer=counts)


def main() -> None:
    stream = msgspec.json.decode(sys.stdin.buffer.readline(), type=Stream)
    answer_parent(send(stream))


if __name__ == "__main__":
    main()
