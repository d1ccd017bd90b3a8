"""What an operator can set: read from the environment, `.env` and a TOML file, all checked."""

from duetime.settings.load import load_settings
from duetime.settings.values import (
    LogFormat,
    LogLevel,
    MemoryStoreSettings,
    NatsSettings,
    PostgresStoreSettings,
    Settings,
    SqliteStoreSettings,
    StoreSettings,
)

__all__ = [
    "LogFormat",
    "LogLevel",
    "MemoryStoreSettings",
    "NatsSettings",
    "PostgresStoreSettings",
    "Settings",
    "SqliteStoreSettings",
    "StoreSettings",
    "load_settings",
]
