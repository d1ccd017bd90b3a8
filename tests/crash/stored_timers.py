"""The timers in a database after the servers that used it are gone."""

from duetime.domain.callback import HttpCallback
from duetime.domain.namespace import DEFAULT_NAMESPACE
from duetime.domain.timer import Timer
from duetime.ports.store import PageQuery
from tests.real_server.databases import Database


async def stored_timers(database: Database) -> dict[str, Timer]:
    """Every timer in the store by the target of its callback. No target occurs twice."""
    store = database.store()
    await store.open()
    total = sum((await store.counts()).values())
    page = await store.page(PageQuery(namespace=DEFAULT_NAMESPACE, limit=total + 1))
    await store.close()
    assert len(page.timers) == page.total == total
    timers = {_target(timer): timer for timer in page.timers}
    assert len(timers) == total
    return timers


def _target(timer: Timer) -> str:
    assert isinstance(timer.callback, HttpCallback)
    return "/" + timer.callback.url.split("/", 3)[3]
