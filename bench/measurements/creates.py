"""Creates over HTTP: 64 keep-alive connections, one timer per request."""

import time

import msgspec

from bench.harness.load_generator import Load, LoadFigures, RandomInstants, generate
from bench.harness.receiver import Receiver
from bench.harness.server import Server, ServerCpu
from bench.limits.echo import Echo
from bench.scale import Scale

HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US


class CreatesFigures(msgspec.Struct, frozen=True, kw_only=True):
    """`echo` is the bare limit, measured just before; `ratio` is the rate divided by it."""

    creates: LoadFigures
    echo: LoadFigures
    ratio: float
    cpu_us_per_timer: float
    stored: int
    faults: list[str]


def measure_creates(
    server: Server, receiver: Receiver, scale: Scale, *, within_us: int = DAY_US
) -> CreatesFigures:
    """Create timers that are due at random within `within_us`, an hour from now."""
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
    cpu = ServerCpu(server)
    creates = generate(load(server.port, scale.creates))
    cpu_us_per_timer = cpu.us_per_timer(scale.creates)
    stored = tally.pending()
    return CreatesFigures(
        creates=creates,
        echo=limit,
        ratio=round(creates.per_second / limit.per_second, 3) if limit.per_second else 0.0,
        cpu_us_per_timer=cpu_us_per_timer,
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
