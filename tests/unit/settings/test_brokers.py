"""Settings of NATS and of the broker: the URL, and the settings that complete it."""

from dataclasses import replace
from pathlib import Path

import pytest

from duetime.domain.errors import SettingsError
from duetime.settings import (
    BrokerSettings,
    MemoryBrokerSettings,
    NatsBrokerSettings,
    NatsSettings,
    RedisBrokerSettings,
    Settings,
    load_broker,
    load_settings,
)

FILE_SETTINGS = {
    "NATS_CREDENTIALS_FILE": "credentials_file",
    "NATS_TLS_CA_FILE": "tls_ca_file",
    "NATS_TLS_CERT_FILE": "tls_cert_file",
    "NATS_TLS_KEY_FILE": "tls_key_file",
}


def load(**env: str) -> Settings:
    return load_settings({"AUTH": "none", **env}, dotenv_path=None)


def problems(**env: str) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load(**env)
    return caught.value.message.splitlines()


def nats(url: str, user: str | None = None, password: str | None = None) -> NatsSettings:
    return NatsSettings(url=url, user=user, password=password)


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"NATS_HOST": "broker"}, nats("nats://broker:4222")),
        ({"NATS_PORT": "4222", "NATS_USER": "u"}, None),
        (
            {"NATS_HOST": "::1", "NATS_PORT": "1", "NATS_USER": "u", "NATS_PASSWORD": "p"},
            nats("nats://[::1]:1", "u", "p"),
        ),
        (
            {"NATS_URL": "tls://u:p%40@broker:1", "NATS_HOST": "other"},
            nats("tls://broker:1", "u", "p@"),
        ),
        (
            {"NATS_URL": "nats://broker", "NATS_USER": "u", "NATS_PASSWORD": "p"},
            nats("nats://broker:4222", "u", "p"),
        ),
        (
            {"NATS_URL": "nats://u@broker", "NATS_PASSWORD": "p"},
            nats("nats://broker:4222", "u", "p"),
        ),
        (
            {"NATS_URL": "nats://u@broker", "NATS_USER": "other", "NATS_PASSWORD": "theirs"},
            nats("nats://broker:4222", "u"),
        ),
    ],
)
def test_nats_is_named_by_url_or_parts(env: dict[str, str], expected: NatsSettings | None) -> None:
    assert load(**env).nats == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("nats://broker", NatsBrokerSettings(nats=nats("nats://broker:4222"))),
        ("tls://u:p@broker:1", NatsBrokerSettings(nats=nats("tls://broker:1", "u", "p"))),
        (
            "redis://broker",
            RedisBrokerSettings(url="redis://broker:6379", name="redis://broker:6379"),
        ),
        (
            "rediss://u:p%40x@broker:1/7",
            RedisBrokerSettings(url="rediss://u:p%40x@broker:1/7", name="rediss://broker:1/7"),
        ),
        (
            "redis://:secret@[::1]/0",
            RedisBrokerSettings(url="redis://:secret@[::1]:6379/0", name="redis://[::1]:6379/0"),
        ),
        (
            "valkey://:p@broker/1",
            RedisBrokerSettings(url="valkey://:p@broker:6379/1", name="valkey://broker:6379/1"),
        ),
        (
            "valkeys://broker",
            RedisBrokerSettings(url="valkeys://broker:6379", name="valkeys://broker:6379"),
        ),
        ("memory:", MemoryBrokerSettings()),
        ("memory://", MemoryBrokerSettings()),
    ],
)
def test_the_scheme_names_the_broker(url: str, expected: BrokerSettings) -> None:
    assert load(TIMER_BROKER_URL=url).broker == expected


@pytest.mark.parametrize(
    "url",
    [
        "broker:4222",
        "amqp://broker",
        "kafka://broker:9092",
        "nats://",
        "nats://broker/path",
        "nats://one:4222,nats://two:4222",
        "nats://one,two",
        "nats://broker?tls=1",
        "nats://broker:0",
        "redis://broker/name",
        "redis://broker/00",
        "redis://broker?db=1",
        "redis:///0",
        "redis://bro ker",
        "memory:x",
    ],
)
def test_an_invalid_broker_url_is_answered_with_the_accepted_ones(url: str) -> None:
    (line,) = problems(TIMER_BROKER_URL=url)
    for scheme in ("nats://", "tls://", "redis://", "rediss://", "valkey://", "memory:"):
        assert scheme in line.partition("must be")[2]


def test_a_nats_broker_without_a_user_takes_that_of_nats() -> None:
    user = {"NATS_USER": "u", "NATS_PASSWORD": "p"}
    assert load(TIMER_BROKER_URL="nats://bus", **user).broker == NatsBrokerSettings(
        nats=nats("nats://bus:4222", "u", "p")
    )
    assert load(TIMER_BROKER_URL="nats://v:q@bus", **user).broker == NatsBrokerSettings(
        nats=nats("nats://bus:4222", "v", "q")
    )


def test_files_hold_for_callbacks_and_for_the_broker(tmp_path: Path) -> None:
    env = {}
    for setting, member in FILE_SETTINGS.items():
        (tmp_path / member).write_text("content")
        env[setting] = str(tmp_path / member)
    settings = load(NATS_HOST="callbacks", TIMER_BROKER_URL="tls://bus", **env)
    assert settings.nats == NatsSettings(
        url="nats://callbacks:4222",
        credentials_file=tmp_path / "credentials_file",
        tls_ca_file=tmp_path / "tls_ca_file",
        tls_cert_file=tmp_path / "tls_cert_file",
        tls_key_file=tmp_path / "tls_key_file",
    )
    assert settings.broker == NatsBrokerSettings(nats=replace(settings.nats, url="tls://bus:4222"))


@pytest.mark.parametrize("name", ["NATS_CREDENTIALS_FILE", "NATS_TLS_CA_FILE"])
def test_a_file_must_be_there_and_readable(name: str, tmp_path: Path) -> None:
    (line,) = problems(**{name: "missing.pem"})
    assert line == (
        f"{name}='missing.pem': must be the path of a file that can be read: "
        "No such file or directory"
    )
    (line,) = problems(**{name: str(tmp_path)})
    assert line.endswith("Is a directory")


def test_a_certificate_needs_its_key_and_a_key_its_certificate(tmp_path: Path) -> None:
    path = tmp_path / "one.pem"
    path.write_text("content")
    for name, other in (
        ("NATS_TLS_CERT_FILE", "NATS_TLS_KEY_FILE"),
        ("NATS_TLS_KEY_FILE", "NATS_TLS_CERT_FILE"),
    ):
        (line,) = problems(**{name: str(path)})
        assert line.startswith(f"{name}=")
        assert line.endswith(f"is set without {other}; set both, or none of them")


def test_passwords_of_a_broker_are_never_shown() -> None:
    for url in ("nats://user:pa55@host", "redis://user:pa55@host", "rediss://:pa55@host/1"):
        assert "pa55" not in repr(load(TIMER_BROKER_URL=url))
        (line,) = problems(TIMER_BROKER_URL=f"{url}/no/such/path")
        assert "pa55" not in line


def test_the_broker_can_be_read_alone(tmp_path: Path) -> None:
    dotenv = tmp_path / ".env"
    dotenv.write_text("TIMER_BROKER_URL=nats://from-dotenv\nNATS_USER=u\nPORT=nonsense\n")
    assert load_broker({}, dotenv_path=dotenv) == NatsBrokerSettings(
        nats=nats("nats://from-dotenv:4222", "u")
    )
    assert load_broker({"TIMER_BROKER_URL": "memory:"}, dotenv) == MemoryBrokerSettings()
    assert load_broker({}, dotenv_path=None) is None
    with pytest.raises(SettingsError, match="TIMER_BROKER_URL='ftp://host': must be"):
        load_broker({"TIMER_BROKER_URL": "ftp://host"}, dotenv_path=None)
