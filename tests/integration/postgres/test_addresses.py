"""The driver and the settings understand addresses in the same way."""

import asyncpg
import pytest

from duetime.settings import PostgresStoreSettings, load_settings
from tests.postgres.fixtures import MakePostgres
from tests.postgres.server import DATABASE

pytestmark = pytest.mark.e2e

USER = "o'user@ex.ample"
PASSWORD = "p@ss:w/o?r#d %41&=+\\\"'ü€"


async def test_special_characters_reach_the_server(make_postgres: MakePostgres) -> None:
    with make_postgres() as server:
        owner = await asyncpg.connect(server.url)
        create = "SELECT format('CREATE ROLE %I LOGIN PASSWORD %L', $1::text, $2::text)"
        await owner.execute(await owner.fetchval(create, USER, PASSWORD))
        await owner.close()
        parts = {
            "PG_PORT": str(server.port),
            "PG_USER": USER,
            "PG_PASSWORD": PASSWORD,
            "PG_DB_NAME": DATABASE,
        }
        by_network = _url(PG_HOST="127.0.0.1", **parts)
        by_socket = _url(PG_HOST=str(server.socket_directory), **parts)
        for url in (by_network, by_socket, _url(DATABASE_URL=by_network + "?sslmode=disable")):
            connection = await asyncpg.connect(url)
            assert await connection.fetchval("SELECT current_user") == USER
            await connection.close()


def _url(**env: str) -> str:
    store = load_settings({"AUTH": "none", **env}, dotenv_path=None).store
    assert isinstance(store, PostgresStoreSettings)
    return store.url
