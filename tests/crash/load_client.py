"""A client that keeps creating, changing and cancelling timers until the server is gone."""

import random

from duetime.domain.instants import format_instant
from tests.crash.promises import Promise, Reply, Version
from tests.real_server.api_connection import ApiAnswer, ApiConnection, ConnectionEnded
from tests.real_server.timer_requests import Json, in_ms, now

LONGEST_DELAY_MS = 2_000
CREATES_PER_RUN = 250


class LoadClient:
    """Remembers every promise over all the lives of the server.

    If the store `may_fail`, the outcome of a request with the answer 500 is unknown. Timers are
    due within `longest_delay_ms`, which may be changed at any time.
    """

    def __init__(
        self,
        name: str,
        receiver_url: str,
        chance: random.Random,
        *,
        longest_delay_ms: float = LONGEST_DELAY_MS,
        may_fail: bool = False,
    ) -> None:
        self.promises: list[Promise] = []
        self._name = name
        self._receiver_url = receiver_url
        self._chance = chance
        self.longest_delay_ms = longest_delay_ms
        self._may_fail = may_fail
        self._has_failed = False

    async def run(self, url: str, creates: int = CREATES_PER_RUN) -> None:
        """Returns when the server dies or fails, or after that many creates."""
        self._has_failed = False
        try:
            async with ApiConnection(url) as connection:
                for _ in range(creates):
                    await self._create(connection)
                    if self._chance.random() < 0.3:
                        await self._change(connection, self._chance.choice(self.promises))
                    if self._chance.random() < 0.2:
                        await self._cancel(connection, self._chance.choice(self.promises))
                    if self._has_failed:
                        return
        except (ConnectionEnded, ConnectionError):
            return

    async def _create(self, connection: ApiConnection) -> None:
        promise = Promise(f"/{self._name}/{len(self.promises)}")
        self.promises.append(promise)
        body = self._next_version(promise)
        answer = await connection.request("POST", "/timers", body)
        version = promise.versions[0]
        version.reply = self._reply(answer, 201)
        if version.reply is Reply.ACCEPTED:
            promise.id = answer.body["data"]["id"]

    async def _change(self, connection: ApiConnection, promise: Promise) -> None:
        if not promise.is_certain:
            return
        body = self._next_version(promise)
        answer = await connection.request("PUT", f"/timers/{promise.id}", body)
        *former, version = promise.versions
        version.reply = self._reply(answer, 200)
        if version.reply is Reply.ACCEPTED:
            for old in former:
                old.replaced_at = old.replaced_at or now()

    async def _cancel(self, connection: ApiConnection, promise: Promise) -> None:
        if not promise.is_certain:
            return
        promise.cancel = Reply.UNKNOWN
        answer = await connection.request("DELETE", f"/timers/{promise.id}")
        promise.cancel = self._reply(answer, 200)
        if promise.cancel is Reply.ACCEPTED:
            promise.canceled_at = now()

    def _next_version(self, promise: Promise) -> Json:
        """The body of the request. The outcome is unknown until there is an answer."""
        execute_at = in_ms(self._chance.uniform(0, self.longest_delay_ms))
        number = len(promise.versions)
        promise.versions.append(Version(execute_at))
        return {
            "execute_at": format_instant(execute_at),
            "callback": {
                "type": "http",
                "url": self._receiver_url + promise.target,
                "payload": {"version": number},
            },
        }

    def _reply(self, answer: ApiAnswer, accepted_status: int) -> Reply:
        if answer.status == accepted_status:
            return Reply.ACCEPTED
        if self._may_fail and answer.status == 503:
            assert answer.body["code"] == 1, answer
            self._has_failed = True
            return Reply.UNKNOWN
        assert answer.status == 400, answer
        assert answer.body["code"] == 2, answer
        return Reply.REFUSED
