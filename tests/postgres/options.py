"""Options of a PostgreSQL store, as the service has them without settings of its own."""

from dataclasses import replace

from duetime.settings import PostgresStoreSettings, load_settings
from duetime.store_adapters import postgres_options
from duetime.stores.postgres import PostgresOptions


def store_options(url: str, schema: str | None = None) -> PostgresOptions:
    settings = load_settings(
        {"DATABASE_URL": "postgresql://localhost/timers", "AUTH": "none"}, dotenv_path=None
    )
    assert isinstance(settings.store, PostgresStoreSettings)
    options = postgres_options(settings.store, settings.retention_days)
    return replace(options, url=url, schema=schema or options.schema)
