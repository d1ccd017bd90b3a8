"""The settings of an operator, read from the environment, `.env` and a TOML file, and checked."""

from duetime.settings.definitions import Settings
from duetime.settings.load import load_broker, load_settings, load_settings_for_store
from duetime.settings.values import (
    BrokerSettings,
    ClientCertificate,
    LogFormat,
    LogLevel,
    MemoryBrokerSettings,
    MemoryStoreSettings,
    NatsBrokerSettings,
    NatsSettings,
    PostgresStoreSettings,
    ProxySettings,
    RedisBrokerSettings,
    SqliteStoreSettings,
    StoreSettings,
    Switch,
)

__all__ = [
    "BrokerSettings",
    "ClientCertificate",
    "LogFormat",
    "LogLevel",
    "MemoryBrokerSettings",
    "MemoryStoreSettings",
    "NatsBrokerSettings",
    "NatsSettings",
    "PostgresStoreSettings",
    "ProxySettings",
    "RedisBrokerSettings",
    "Settings",
    "SqliteStoreSettings",
    "StoreSettings",
    "Switch",
    "load_broker",
    "load_settings",
    "load_settings_for_store",
]
