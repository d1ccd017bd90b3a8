"""A PostgreSQL server that a test can start, stop, crash and restart."""

import secrets
import shutil
import socket
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import psutil

from tests.postgres.binaries import copied_if_out_of_reach, find_binaries, hand_over, run_as

StopMode = Literal["smart", "fast", "immediate"]

PATIENCE_SECONDS = 60
PORT_CHOICES = 5
USER = "duetime"
DATABASE = "postgres"

_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "300",
    # Dropping a schema locks every table and partition in it at once.
    "max_locks_per_transaction": "256",
    "shared_buffers": "64MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] %a ",
}
# Commits under these settings are lost when the machine crashes. They survive the end of every
# PostgreSQL process, because what was written stays in the operating system's cache.
_FORGETFUL_SETTINGS = {"fsync": "off", "full_page_writes": "off"}
# The primary keeps the rows that sessions of the standby still see.
_STANDBY_SETTINGS = {"hot_standby_feedback": "on", "wal_receiver_status_interval": "1s"}


class PostgresServer:
    """Keeps its data and its port over restarts. `directory` must exist; leave it to this server.

    `durable` keeps fsync and full page writes on, as in production. A standby follows the server
    `primary`, which must be running, by a replication slot if that has a name.
    """

    def __init__(
        self,
        directory: Path,
        *,
        durable: bool = False,
        primary: "PostgresServer | None" = None,
        slot: str | None = None,
    ) -> None:
        binaries = find_binaries()
        assert binaries is not None, "PostgreSQL is missing"
        self._binaries = copied_if_out_of_reach(binaries, directory)
        self.socket_directory = self._directory = directory
        self._data = directory / "data"
        self._durable = durable
        self._primary = primary
        self._slot = slot
        self._password: str = secrets.token_hex(8) if primary is None else primary._password
        self.port = 0

    @property
    def url(self) -> str:
        return f"postgresql://{USER}:{self._password}@127.0.0.1:{self.port}/{DATABASE}"

    @property
    def pid(self) -> int:
        """The id of the server's parent process."""
        return int((self._data / "postmaster.pid").read_text().split("\n", 1)[0])

    @property
    def is_running(self) -> bool:
        try:
            return psutil.Process(self.pid).status() != psutil.STATUS_ZOMBIE
        except (FileNotFoundError, psutil.NoSuchProcess):
            return False

    @property
    def log(self) -> str:
        return (self._directory / "log").read_text(errors="replace")

    def start(self) -> None:
        """Return once the server answers."""
        if self.port:
            self._pg_ctl("start")
            return
        self._create()
        for left in reversed(range(PORT_CHOICES)):
            self._choose_port()
            try:
                self._pg_ctl("start")
                return
            except subprocess.CalledProcessError:
                # Another program may have taken the port meanwhile.
                if left == 0 or "could not bind" not in self.log:
                    raise

    def stop(self, mode: StopMode = "fast") -> None:
        """`immediate` is a crash: the next start recovers from the write-ahead log."""
        self._pg_ctl("stop", "--mode", mode)

    def restart(self, mode: StopMode = "fast") -> None:
        self.stop(mode)
        self.start()

    def _create(self) -> None:
        hand_over(self._directory)
        if self._primary is not None:
            slot = [] if self._slot is None else ["--create-slot", f"--slot={self._slot}"]
            self._run(
                "pg_basebackup",
                f"--pgdata={self._data}",
                f"--dbname={self._primary.url}",
                "--write-recovery-conf",
                "--checkpoint=fast",
                *slot,
            )
            return
        password_file = self._directory / "password"
        password_file.write_text(self._password)
        hand_over(password_file)
        # Plain passwords: hashing would cost every connection milliseconds.
        arguments = ["--auth=password", "--username", USER, "--pwfile", str(password_file)]
        arguments += ["--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"]
        # A collation that is not byte order shows queries that rely on byte order by accident.
        natural = ["--locale-provider=icu", "--icu-locale=en-US"]
        try:
            self._run("initdb", *arguments, *natural)
        except subprocess.CalledProcessError as error:
            if "ICU is not supported" not in str(error.stderr):
                raise
            self._run("initdb", *arguments)
        password_file.unlink()

    def _choose_port(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        settings = _SETTINGS | ({} if self._durable else _FORGETFUL_SETTINGS)
        settings |= {"port": str(self.port), "unix_socket_directories": str(self._directory)}
        settings |= {} if self._primary is None else _STANDBY_SETTINGS
        # Later lines count. The copy of a primary has the address of that before them.
        with (self._data / "postgresql.auto.conf").open("a") as written:
            written.writelines(f"{name} = '{value}'\n" for name, value in settings.items())

    def _pg_ctl(self, command: str, *arguments: str) -> None:
        options = ["--wait", "--timeout", str(PATIENCE_SECONDS), *arguments]
        if command == "start":
            options += ["--log", str(self._directory / "log")]
        self._run("pg_ctl", command, *options)

    def _run(self, program: str, *arguments: str) -> None:
        try:
            subprocess.run(
                [self._binaries / program, *arguments],
                # The server would keep a pipe open for as long as it lives.
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE if program == "initdb" else subprocess.DEVNULL,
                stdin=subprocess.DEVNULL,
                env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "PGDATA": str(self._data)},
                cwd=self._directory,
                check=True,
                text=True,
                **run_as(),
            )
        except subprocess.CalledProcessError as error:
            error.add_note(str(error.stderr if program == "initdb" else self._log_or_nothing()))
            raise

    def _log_or_nothing(self) -> str:
        return self.log if (self._directory / "log").exists() else ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.is_running:
            self.stop("immediate")
        shutil.rmtree(self._directory)
