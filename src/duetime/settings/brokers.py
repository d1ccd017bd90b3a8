"""The NATS server of callbacks, and the broker of commands and events."""

from dataclasses import replace

from duetime.settings.broker_address import host_in_url
from duetime.settings.connection_definitions import BrokerParts
from duetime.settings.given_values import GivenValues
from duetime.settings.values import BrokerSettings, NatsBrokerSettings, NatsSettings


class NatsAccess:
    """The servers, each with the credentials that NATS_USER and the settings after it give."""

    def __init__(self, parts: BrokerParts, given: GivenValues) -> None:
        self._parts = parts
        pair = ("NATS_TLS_CERT_FILE", "NATS_TLS_KEY_FILE")
        for name, other in (pair, pair[::-1]):
            if given.has(name) and not given.has(other):
                given.problem(name, f"is set without {other}; set both, or none of them")

    def server(self) -> NatsSettings | None:
        """The server of callbacks: NATS_URL, else NATS_HOST, else None."""
        parts = self._parts
        if parts.nats_url is not None:
            return self._completed(parts.nats_url)
        if parts.nats_host is None:
            return None
        url = f"nats://{host_in_url(parts.nats_host)}:{parts.nats_port}"
        return self._completed(NatsSettings(url=url))

    def broker(self) -> BrokerSettings | None:
        broker = self._parts.timer_broker_url
        if isinstance(broker, NatsBrokerSettings):
            return NatsBrokerSettings(nats=self._completed(broker.nats))
        return broker

    def _completed(self, server: NatsSettings) -> NatsSettings:
        """A user in the URL takes precedence over NATS_USER; NATS_PASSWORD may be its password."""
        parts = self._parts
        user, password = server.user, server.password
        if user is None:
            user, password = parts.nats_user, parts.nats_password
        elif password is None and parts.nats_user in (None, user):
            password = parts.nats_password
        return replace(
            server,
            user=user,
            password=password,
            credentials_file=parts.nats_credentials_file,
            tls_ca_file=parts.nats_tls_ca_file,
            tls_cert_file=parts.nats_tls_cert_file,
            tls_key_file=parts.nats_tls_key_file,
        )
