"""A real Prometheus that scrapes servers under test and watches them by the shortened rules."""

import json
import shutil
from collections.abc import Collection
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from tests.brokers.broker_process import HOST, BrokerProcess, free_port
from tests.monitoring.rules import RULES, shortened
from tests.polling import PATIENCE_SECONDS, poll
from tests.real_server.server_process import API_KEY, ServerProcess
from tests.toolchain import tool

JOB = "duetime"
SCRAPE_MS = 500

Json = dict[str, Any]


class Prometheus:
    """Scrapes the servers that `watch` names. `directory` must exist.

    `fires` is how tests say which alert they cause; test_rules.py reads these calls.
    """

    def __init__(self, directory: Path, scrape_ms: int = SCRAPE_MS) -> None:
        self._directory = directory
        self._scrape_ms = scrape_ms
        port = free_port()
        (directory / "duetime.rules.yaml").write_text(shortened(RULES.read_text()))
        self._targets = directory / "targets.json"
        self._targets.write_text("[]")
        configuration = directory / "prometheus.json"
        configuration.write_text(json.dumps(self._configuration()))
        self._process = BrokerProcess(
            [
                tool("prometheus"),
                f"--config.file={configuration}",
                f"--storage.tsdb.path={directory / 'data'}",
                f"--web.listen-address={HOST}:{port}",
                "--log.level=warn",
            ],
            port,
            directory / "log",
        )
        self._client = httpx.AsyncClient(
            base_url=f"http://{HOST}:{port}/api/v1", trust_env=False, timeout=PATIENCE_SECONDS
        )

    def _configuration(self) -> Json:
        every = f"{self._scrape_ms}ms"
        return {
            "global": {
                "scrape_interval": every,
                "scrape_timeout": every,
                "evaluation_interval": f"{SCRAPE_MS}ms",
            },
            "rule_files": ["duetime.rules.yaml"],
            "scrape_configs": [
                {
                    "job_name": JOB,
                    "authorization": {"credentials": API_KEY},
                    "file_sd_configs": [{"files": [str(self._targets)], "refresh_interval": "1s"}],
                }
            ],
        }

    @property
    def pid(self) -> int:
        return self._process.pid

    async def watch(self, *servers: ServerProcess) -> None:
        """Scrape these servers, and return once each was scraped."""
        addresses = [httpx.URL(server.url).netloc.decode() for server in servers]
        # Prometheus must never see half of the list.
        written = self._targets.with_suffix(".new")
        written.write_text(json.dumps([{"targets": addresses}]))
        written.rename(self._targets)

        async def scraped() -> set[str]:
            found = await self.query("up == 1")
            return {each["metric"]["instance"] for each in found}

        await poll(scraped, lambda scraped: scraped >= set(addresses))

    async def query(self, expression: str) -> list[Json]:
        """The samples of the expression now."""
        answer = await self._client.post("/query", data={"query": expression})
        assert answer.status_code == 200, f"{expression}: {answer.text}"
        data: Json = answer.json()["data"]
        if data["resultType"] == "scalar":
            return [{"metric": {}, "value": data["result"]}]
        samples: list[Json] = data["result"]
        return samples

    async def label_values(self, label: str, *selectors: str) -> list[str]:
        answer = await self._client.get(f"/label/{label}/values", params={"match[]": selectors})
        assert answer.status_code == 200, answer.text
        values: list[str] = answer.json()["data"]
        return values

    async def firing(self) -> dict[str, Json]:
        """The alerts that fire now, by name; of several with one name, any."""
        answer = await self._client.get("/alerts")
        return {
            alert["labels"]["alertname"]: alert
            for alert in answer.json()["data"]["alerts"]
            if alert["state"] == "firing"
        }

    async def fires(self, *names: str) -> None:
        """Wait until each of the alerts has fired; they need not do so at the same time."""
        seen: dict[str, Json] = {}

        async def look() -> Collection[str]:
            seen.update(await self.firing())
            return seen

        try:
            await poll(look, lambda seen: set(names) <= set(seen))
        except TimeoutError:
            missing, fired = sorted(set(names) - set(seen)), sorted(seen)
            raise AssertionError(f"{missing} did not fire; these did: {fired}") from None
        for name in names:
            self._check_texts(seen[name]["annotations"])

    async def next_scrape(self) -> None:
        """Wait until a server was scraped once more."""

        async def scraped_at() -> list[str]:
            return [each["value"][1] for each in await self.query("timestamp(up)")]

        before = await scraped_at()
        await poll(scraped_at, lambda now: now != before)

    async def fell_silent(self, *names: str) -> None:
        """Wait until none of the alerts fires."""
        await poll(self.firing, lambda firing: not set(names) & firing.keys())

    async def _is_ready(self) -> bool:
        return (await self._client.get("/alerts")).status_code == 200

    @staticmethod
    def _check_texts(annotations: dict[str, str]) -> None:
        for text in annotations.values():
            assert "<" not in text, f"a template did not work: {text}"

    async def __aenter__(self) -> Self:
        self._process.start()
        await poll(self._is_ready, bool)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._client.aclose()
        self._process.kill()
        shutil.rmtree(self._directory, ignore_errors=True)
