"""The private parts of uvicorn that Duetime overrides or reads, which a release may rename."""

import inspect
import re

import pytest
import uvicorn
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from duetime.api.http.caller import Caller
from duetime.domain.security.access import UNCHECKED
from duetime.server.fast_create import FastCreateCycle

METHODS = {
    uvicorn.Server: {
        "capture_signals": ["self"],
        "shutdown": ["self", "sockets"],
        "startup": ["self", "sockets"],
    },
    HttpToolsProtocol: {
        "_start_asgi_task": ["self", "cycle", "app"],
        "connection_lost": ["self", "exc"],
        "connection_made": ["self", "transport"],
        "data_received": ["self", "data"],
        "eof_received": ["self"],
        "on_body": ["self", "body"],
        "on_headers_complete": ["self"],
        "on_message_begin": ["self"],
        "on_message_complete": ["self"],
        "on_response_complete": ["self"],
        "shutdown": ["self"],
    },
    FlowControl: {"__init__": ["self", "transport"], "resume_reading": ["self"]},
}
PROTOCOL_ATTRIBUTES = {
    *("app", "cycle", "expect_100_continue", "flow", "headers", "loop", "parser", "pipeline"),
    *("server_state", "transport"),
}
HINT = "adapt src/duetime/server to this release of uvicorn, then its bounds in pyproject.toml"


@pytest.mark.parametrize(
    ("owner", "name"),
    [(owner, name) for owner, methods in METHODS.items() for name in methods],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_an_overridden_method_exists_with_the_same_parameters(owner: type, name: str) -> None:
    method = getattr(owner, name, None)
    assert method is not None, f"{owner.__name__}.{name} is gone: {HINT}"
    assert list(inspect.signature(method).parameters) == METHODS[owner][name], HINT


async def test_the_protocol_has_the_attributes_that_are_read() -> None:
    async def app(scope: object, receive: object, send: object) -> None:
        raise AssertionError("never called")

    config = uvicorn.Config(app, lifespan="off", ws="none", log_config=None)
    protocol = HttpToolsProtocol(config, ServerState(), {})
    assert vars(protocol).keys() >= PROTOCOL_ATTRIBUTES, HINT
    assert protocol.app is config.loaded_app, HINT
    protocol.parser.set_dangerous_leniencies(lenient_data_after_close=True)


def test_requests_use_their_transport_as_expected() -> None:
    used = set(re.findall(r"self\.transport\.(\w+)", inspect.getsource(RequestResponseCycle)))
    assert used == {"close", "is_closing", "write"}, HINT


def test_a_request_on_the_fast_path_has_the_attributes_that_uvicorn_reads() -> None:
    read = set(re.findall(r"self\.cycle\.(\w+)", inspect.getsource(HttpToolsProtocol)))
    assert read >= {"body", "disconnected", "keep_alive", "message_event", "response_complete"}, (
        HINT
    )
    cycle = FastCreateCycle(Caller(UNCHECKED), keep_alive=True, began=0.0)
    assert [name for name in sorted(read) if not hasattr(cycle, name)] == [], HINT
