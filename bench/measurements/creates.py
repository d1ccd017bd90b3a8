"""Creates over HTTP: 64 keep-alive connections, each request answered after its commit."""

import time

import msgspec

from bench.harness.load_generator import Load, LoadFigures, RandomInstants, generate
from bench.harness.receiver import Receiver
from bench.harness.server import Server
from bench.limits.echo import Echo
from bench.scale import Scale

HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US


class CreatesFigures(msgspec.Struct, frozen=True, kw_only=True):
    """`echo` is the limit measured right before; `ratio` is the share of it that is reached."""

    creates: LoadFigures
    echo: LoadFigures
    ratio: float
    stored: int
    faults: list[str]


def measure_creates(
    server: Server, receiver: Receiver, scale: Scale, *, within_us: int = DAY_US
) -> CreatesFigures:
    """Timers that are due within the stretch of time, from an hour from now on."""
    earliest_us = time.time_ns() // 1_000 + HOUR_US
    instants = RandomInstants(earliest_us=earliest_us, latest_exclusive_us=earliest_us + within_us)

    def load(port: int, count: int) -> Load:
        return Load(
            port=port,
            api_key=server.api_key,
            callback_url=receiver.url,
            count=count,
            instants=instants,
        )

    with Echo() as echo:
        generate(load(echo.port, scale.warm_up))
        limit = generate(load(echo.port, scale.creates))
    generate(load(server.port, scale.warm_up))
    tally = server.tally()
    creates = generate(load(server.port, scale.creates))
    stored = tally.pending()
    return CreatesFigures(
        creates=creates,
        echo=limit,
        ratio=round(creates.per_second / limit.per_second, 3) if limit.per_second else 0.0,
        stored=stored,
        faults=faults_of("creates", creates, scale.creates, stored),
    )


def faults_of(what: str, creates: LoadFigures, count: int, stored: int) -> list[str]:
    faults = []
    if creates.accepted != count:
        faults.append(
            f"{what}: {count - creates.accepted} of {count} not accepted"
            f" ({creates.refusal or 'no answer'})"
        )
    if stored != creates.accepted:
        faults.append(f"{what}: {creates.accepted} accepted but {stored} stored")
    return faults
