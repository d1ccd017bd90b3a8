"""What an operator can set: read from the environment, `.env` and a TOML file, all checked."""

from duetime.settings.brokers import load_broker
from duetime.settings.load import load_settings
from duetime.settings.values import (
    BrokerSettings,
    LogFormat,
    LogLevel,
    MemoryBrokerSettings,
    MemoryStoreSettings,
    NatsBrokerSettings,
    NatsSettings,
    PostgresStoreSettings,
    RedisBrokerSettings,
    Settings,
    SqliteStoreSettings,
    StoreSettings,
)

__all__ = [
    "BrokerSettings",
    "LogFormat",
    "LogLevel",
    "MemoryBrokerSettings",
    "MemoryStoreSettings",
    "NatsBrokerSettings",
    "NatsSettings",
    "PostgresStoreSettings",
    "RedisBrokerSettings",
    "Settings",
    "SqliteStoreSettings",
    "StoreSettings",
    "load_broker",
    "load_settings",
]
