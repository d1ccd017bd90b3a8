"""`duetime backup` beside a server that creates timers, then `duetime restore` and an audit."""

import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import msgspec

from bench.harness.load_generator import Load, LoadFigures, RandomInstants, generate
from bench.harness.server import COMMAND, Server, ServerFailed, environment_of
from bench.measurements.creates import DAY_US, HOUR_US
from bench.measurements.store_audit import StoreAudit
from bench.stores.store_under_test import StoreUnderTest

PATIENCE_SECONDS = 900.0
CREATES_PER_ROUND = 1_000


class Copied(msgspec.Struct, frozen=True):
    """The fields of the commands' JSON that are checked."""

    bytes: int
    rows: dict[str, int]


class BackupFigures(msgspec.Struct, frozen=True, kw_only=True):
    """`creates` are the rounds of creates that ran beside the backup. Seconds are of whole
    commands, from their start to their end."""

    megabytes: float
    timers: int
    backup_seconds: float
    restore_seconds: float
    creates: list[LoadFigures]
    faults: list[str]


def measure_backup(store: StoreUnderTest) -> BackupFigures:
    """The store is filled, and no server runs."""
    with Server(store) as server:
        before = server.tally()
        done = Event()
        with ThreadPoolExecutor(1) as pool:
            creating = pool.submit(create_until, done, server)
            try:
                saved, backup_seconds = copy(store, "backup")
            finally:
                done.set()
            creates = creating.result()
        stored = before.pending()
    restored, restore_seconds = copy(store, "restore")
    audit = msgspec.json.decode(run(store, "audit"), type=StoreAudit)
    accepted = sum(each.accepted for each in creates)
    faults = list(audit.faults)
    if stored != accepted:
        faults.append(f"backup: {accepted} creates accepted but {stored} stored")
    if restored.rows != saved.rows:
        faults.append(f"backup: {saved.rows} saved but {restored.rows} restored")
    return BackupFigures(
        megabytes=round(saved.bytes / 1e6, 1),
        timers=saved.rows["timers"],
        backup_seconds=round(backup_seconds, 2),
        restore_seconds=round(restore_seconds, 2),
        creates=creates,
        faults=faults,
    )


def create_until(done: Event, server: Server) -> list[LoadFigures]:
    """Rounds of creates over one connection, one request at a time."""
    earliest_us = time.time_ns() // 1_000 + HOUR_US
    instants = RandomInstants(earliest_us=earliest_us, latest_exclusive_us=earliest_us + DAY_US)
    load = Load(
        port=server.port,
        api_key=server.api_key,
        callback_url="http://127.0.0.1:9/",
        count=CREATES_PER_ROUND,
        instants=instants,
        connections=1,
    )
    rounds = []
    while not done.is_set():
        rounds.append(generate(load))
    return rounds


def copy(store: StoreUnderTest, command: str) -> tuple[Copied, float]:
    started = time.perf_counter()
    output = run(store, command, "backup.db", "--force", "--quiet")
    return msgspec.json.decode(output, type=Copied), time.perf_counter() - started


def run(store: StoreUnderTest, *arguments: str) -> bytes:
    done = subprocess.run(
        [COMMAND, *arguments, "--json"],
        cwd=store.directory,
        env=environment_of(store),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    if not done.stdout:
        raise ServerFailed(f"duetime {arguments[0]} ended with {done.returncode}: {done.stderr!r}")
    return done.stdout
