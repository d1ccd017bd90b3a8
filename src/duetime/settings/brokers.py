"""Which NATS server callbacks are published at, and which broker carries commands and events."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from duetime.domain.errors import SettingsError
from duetime.settings import definitions as table
from duetime.settings.broker_address import host_in_url
from duetime.settings.given_values import Texts
from duetime.settings.sources import gather
from duetime.settings.values import BrokerSettings, NatsBrokerSettings, NatsSettings


def load_broker(
    environ: Mapping[str, str],
    dotenv_path: Path | None = Path(".env"),
    toml_path: Path | None = None,
) -> BrokerSettings | None:
    """The broker alone, for those who talk to it without running the service. Sources are those of
    `load_settings`, which says more. Raises `SettingsError`."""
    problems: list[str] = []
    given, _ = gather(environ, dotenv_path, toml_path, problems)
    broker = NatsAccess(Texts(given, problems)).broker()
    if problems:
        raise SettingsError("\n".join(problems))
    return broker


class NatsAccess:
    """How a NATS server is told who asks. It holds for that of callbacks and for the broker."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._user = texts.optional(table.NATS_USER)
        self._password = texts.optional(table.NATS_PASSWORD)
        self._credentials_file = texts.optional(table.NATS_CREDENTIALS_FILE)
        self._ca_file = texts.optional(table.NATS_TLS_CA_FILE)
        self._cert_file = texts.optional(table.NATS_TLS_CERT_FILE)
        self._key_file = texts.optional(table.NATS_TLS_KEY_FILE)
        pair = (table.NATS_TLS_CERT_FILE, table.NATS_TLS_KEY_FILE)
        for setting, other in (pair, pair[::-1]):
            if texts.has(setting) and not texts.has(other):
                texts.problem(setting, f"is set without {other.name}; set both, or none of them")

    def server(self) -> NatsSettings | None:
        """That of callbacks. NATS_URL goes before NATS_HOST; None without them."""
        by_url = self._texts.optional(table.NATS_URL)
        host = self._texts.optional(table.NATS_HOST)
        port = self._texts.value(table.NATS_PORT)
        if by_url is not None:
            return self._completed(by_url)
        if host is None:
            return None
        return self._completed(NatsSettings(url=f"nats://{host_in_url(host)}:{port}"))

    def broker(self) -> BrokerSettings | None:
        broker = self._texts.optional(table.TIMER_BROKER_URL)
        if isinstance(broker, NatsBrokerSettings):
            return NatsBrokerSettings(nats=self._completed(broker.nats))
        return broker

    def _completed(self, server: NatsSettings) -> NatsSettings:
        """A user in the URL goes before NATS_USER; its password may be NATS_PASSWORD."""
        user, password = server.user, server.password
        if user is None:
            user, password = self._user, self._password
        elif password is None and self._user in (None, user):
            password = self._password
        return replace(
            server,
            user=user,
            password=password,
            credentials_file=self._credentials_file,
            tls_ca_file=self._ca_file,
            tls_cert_file=self._cert_file,
            tls_key_file=self._key_file,
        )
