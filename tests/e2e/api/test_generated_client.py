"""A client that a standard generator makes from the OpenAPI document, against a real server."""

import importlib
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from duetime.api.openapi.document import openapi_json
from tests.real_server.server_process import API_KEY, ServerProcess

pytestmark = pytest.mark.e2e

GENERATOR = str(Path(sys.executable).with_name("openapi-python-client"))
PACKAGE = "generated_duetime_client"
URL = "https://app.example.com/hook"
LATER = datetime(2100, 1, 1, tzinfo=UTC)


@pytest.fixture
def server(shared_server: ServerProcess) -> ServerProcess:
    return shared_server


class GeneratedClient:
    """The generated package, and a client of it with the right key."""

    def __init__(self, url: str) -> None:
        self.models = importlib.import_module(f"{PACKAGE}.models")
        self.client = importlib.import_module(PACKAGE).AuthenticatedClient(
            base_url=url,
            token=API_KEY,
            prefix="",
            auth_header_name="X-API-Key",
            raise_on_unexpected_status=True,
        )

    async def call(self, operation: str, *path: str, **given: Any) -> Any:
        """The status of the answer and its parsed body."""
        module = importlib.import_module(f"{PACKAGE}.api.{operation}")
        answer = await module.asyncio_detailed(*path, client=self.client, **given)
        return answer.status_code, answer.parsed


@pytest.fixture(scope="module")
def package_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory with the generated package."""
    directory = tmp_path_factory.mktemp("generated")
    (directory / "openapi.json").write_bytes(openapi_json())
    (directory / "generator.json").write_text('{"post_hooks": []}')
    arguments = ("--path", "openapi.json", "--config", "generator.json", "--meta", "none")
    generator = subprocess.run(
        [GENERATOR, "generate", *arguments, "--output-path", PACKAGE],
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    said = generator.stdout
    assert generator.returncode == 0, said
    # The generator ignores NDJSON, the content type of the import, which can be sent as bytes.
    assert said.count("WARNING") == said.count("Unsupported content type application/x-ndjson"), (
        said
    )
    return directory


@pytest.fixture
async def generated(
    server: ServerProcess, package_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[GeneratedClient]:
    async with server.client() as api:
        assert (await api.get("/openapi.json")).content == openapi_json()
    monkeypatch.syspath_prepend(package_directory)
    client = GeneratedClient(server.url)
    async with client.client:
        yield client
    for name in [name for name in sys.modules if name.split(".")[0] == PACKAGE]:
        del sys.modules[name]


async def test_a_timer_of_the_v1_api_is_created_read_changed_listed_and_deleted(
    generated: GeneratedClient,
) -> None:
    models = generated.models
    body = models.V1CreateBody(
        id="a/b c?d",
        execute_at=LATER,
        callback_url=URL,
        payload={"n": [1, None, "ü"]},
        retry_policy=models.V1RetryPolicyBody(max_attempts=3, initial_interval="10s"),
        callback_timeout_seconds=2.5,
    )
    status, created = await generated.call("timers_v_1.create_timer_v1", body=body)
    assert status == 200
    assert created.execute_at == LATER
    assert created.retry_policy.max_retries == 2
    assert created.callback_timeout == "2s500ms"

    body.payload = 1
    status, refused = await generated.call("timers_v_1.create_timer_v1", body=body)
    assert (status, refused.details["fields"]) == (409, ["payload"])

    key = ("default", "a/b c?d")
    assert await generated.call("timers_v_1.get_timer_v1", *key) == (200, created)

    later = LATER + timedelta(hours=1)
    change = models.V1UpdateBody(execute_at=later)
    status, changed = await generated.call("timers_v_1.update_timer_v1", *key, body=change)
    assert status == 200
    assert changed.execute_at == later
    assert changed.callback_timeout == created.callback_timeout
    assert changed.payload == {"n": [1, None, "ü"]}

    status, page = await generated.call("timers_v_1.list_timers_v1", due_after=later, limit=1)
    assert (status, page.timers, page.next_cursor) == (200, [changed], None)

    assert await generated.call("timers_v_1.delete_timer_v1", *key) == (204, None)
    status, refused = await generated.call("timers_v_1.get_timer_v1", *key)
    assert (status, refused.error) == (404, "TIMER_NOT_FOUND")


async def test_a_batch_an_import_and_a_redrive_are_answered(generated: GeneratedClient) -> None:
    models = generated.models
    batch = models.V1BatchBody(
        timers=[
            models.V1CreateBody(id="generated 1", execute_at=LATER, callback_url=URL),
            models.V1CreateBody(id="generated 2", execute_at=LATER, callback_url="ftp://x/"),
        ]
    )
    status, answer = await generated.call("timers_v_1.create_timers_v1", body=batch)
    assert (status, [result.status for result in answer.results]) == (200, ["created", "invalid"])
    assert answer.results[1].error.details["field"] == "callbackUrl"

    line = httpx.Request("POST", URL, json=batch.timers[0].to_dict()).content + b"\n"
    types = importlib.import_module(f"{PACKAGE}.types")
    status, imported = await generated.call(
        "timers_v_1.import_timers_v1", body=types.File(payload=line * 2)
    )
    assert (status, imported.lines, imported.existing) == (200, 2, 2)
    status, imported = await generated.call(
        "timers_v_1.import_timers_v1", body=types.File(payload=b"{}")
    )
    assert (status, imported.errors[0].details["field"]) == (200, "id")

    body = models.V1RedriveBody(error_contains="no such error", dry_run=True)
    status, counted = await generated.call("timers_v_1.redrive_timers_v1", body=body)
    assert (status, counted.matched) == (200, 0)


async def test_a_namespace_is_created_and_read(generated: GeneratedClient) -> None:
    body = generated.models.V1NamespaceBody(num_shards=2, retention="7d")
    status, created = await generated.call("namespaces_v_1.put_namespace_v1", "mail", body=body)
    assert (status, created.num_shards, created.retention) == (200, 2, "7d")
    assert await generated.call("namespaces_v_1.get_namespace_v1", "mail") == (200, created)
    status, listed = await generated.call("namespaces_v_1.list_namespaces_v1")
    assert status == 200
    assert {"default", "mail"} <= {each.name for each in listed.namespaces}


async def test_a_platform_timer_is_created_and_read(generated: GeneratedClient) -> None:
    models = generated.models
    callback = models.HttpCallbackBody(
        type_=models.HttpCallbackBodyType.HTTP, url=URL, payload="bare"
    )
    body = models.CreateTimerBody(execute_at=LATER, callback=callback, metadata={"n": 1})
    status, created = await generated.call("platform_timers.create_timer", body=body)
    assert (status, created.code, created.data.status) == (201, 0, "pending")
    status, found = await generated.call("platform_timers.get_timer", created.data.id)
    assert (status, found.data.execute_at, found.data.metadata) == (200, LATER, {"n": 1})
    assert found.data.callback_config.payload == "bare"
