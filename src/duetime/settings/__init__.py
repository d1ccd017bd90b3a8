"""The settings of an operator, read from the environment, `.env` and a TOML file, and checked."""

from duetime.settings.definitions import Settings
from duetime.settings.load import load_broker, load_settings
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
