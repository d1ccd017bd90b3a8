"""Commands that create a timer like this one. No key is in them: the environment has it."""

import shlex
from collections.abc import Iterator

from msgspec import UNSET, Struct, json

from duetime.api.v1.answers import retry_policy_answer
from duetime.domain.callback import BusCallback, CallbackProtocol, HttpCallback, NatsCallback
from duetime.domain.instants import Instant, format_duration, format_instant
from duetime.domain.namespace import DEFAULT_NAMESPACE
from duetime.domain.retry import RetryPolicy
from duetime.domain.security.redaction import REDACTED, has_redacted, shown_callback
from duetime.domain.timer import Timer, TimerStatus

KEY = "DUETIME_API_KEY"
"""Variable that the command line reads as well."""

MAX_CONTENT_BYTES = 8_192
"""Size of the payload and the metadata that are in each recipe. Longer ones are not for the
clipboard, and would make the page three times as long."""

AGAIN = "-again"
"""Ending of the id of a copy: that of the timer is taken."""

LATER = "1m"


class Recipe(Struct, frozen=True):
    title: str
    text: str


class Recipes(Struct, frozen=True):
    """The recipes, or the reason why there are none, and what to know about them."""

    recipes: tuple[Recipe, ...]
    notes: tuple[str, ...]


def recipes_for(timer: Timer, base_url: str, now: Instant) -> Recipes:
    """A pending timer is created once more for its instant, a finished one for a minute from now,
    each under another id."""
    callback = shown_callback(timer.callback)
    if isinstance(callback, BusCallback):
        return Recipes((), ("It came over the bus: send its ScheduleTimer command again.",))
    size = 0 if callback.payload is UNSET else len(callback.payload)
    if size + len(timer.metadata or b"") > MAX_CONTENT_BYTES:
        return Recipes((), tuple(_too_long(timer, base_url)))
    asked = _Asked(timer, callback, now)
    path, body = asked.platform() if isinstance(callback, NatsCallback) else asked.v1()
    url = f"{base_url}{path}"
    text = _in_lines(body)
    recipes = (
        Recipe("curl", _curl(url, text)),
        Recipe("Command line", " \\\n  ".join(asked.command(base_url))),
        Recipe("Python", _python(url, text)),
    )
    return Recipes(recipes, tuple(asked.notes()))


class _Asked:
    """The timer as a client would ask for it."""

    def __init__(self, timer: Timer, callback: HttpCallback | NatsCallback, now: Instant) -> None:
        self._timer = timer
        self._callback = callback
        self._is_ahead = timer.status is TimerStatus.PENDING and timer.execute_at > now
        self._id = timer.key.id[: 255 - len(AGAIN)] + AGAIN

    def v1(self) -> tuple[str, dict[str, object]]:
        """A path and a body of the v1 API. Raw members are written as they are stored."""
        timer, callback = self._timer, self._callback
        assert isinstance(callback, HttpCallback)
        when = "executeAt" if self._is_ahead else "executeIn"
        body: dict[str, object] = {
            "namespace": timer.key.namespace,
            "id": self._id,
            when: self._due_text(),
            "callbackUrl": callback.url,
            "callbackProtocol": callback.protocol.value,
            "callbackHeaders": callback.headers,
            "payload": callback.payload,
            "callbackTimeout": self._timeout(),
            "retryPolicy": _policy_members(timer.retry_policy),
            "metadata": timer.metadata,
        }
        return "/api/v1/timers", _given(body)

    def platform(self) -> tuple[str, dict[str, object]]:
        """A path and a body of the platform API, which takes callbacks over NATS."""
        callback = self._callback
        assert isinstance(callback, NatsCallback)
        target: dict[str, object] = {
            "type": "nats",
            "topic": callback.topic,
            "key": callback.key,
            "ack": callback.ack or None,
            "headers": callback.headers,
            "payload": callback.payload,
        }
        body: dict[str, object] = {
            "execute_at" if self._is_ahead else "execute_in": self._due_text(),
            "callback": _given(target),
            "retry_policy": _platform_policy(self._timer.retry_policy),
            "metadata": self._timer.metadata,
        }
        return "/timers", _given(body)

    def command(self, base_url: str) -> Iterator[str]:
        """The lines of `duetime create`."""
        yield "duetime create"
        yield from map(shlex.quote, self._options())
        yield f"--server={shlex.quote(base_url)}"

    def _options(self) -> Iterator[str]:
        timer, callback = self._timer, self._callback
        if isinstance(callback, NatsCallback):
            yield f"--nats-topic={callback.topic}"
            yield from () if callback.key is None else (f"--nats-key={callback.key}",)
            yield from ("--ack",) if callback.ack else ()
        else:
            if callback.protocol is CallbackProtocol.ANSWER:
                yield f"--id={self._id}"
                if timer.key.namespace != DEFAULT_NAMESPACE:
                    yield f"--namespace={timer.key.namespace}"
                if callback.timeout_ms is not None:
                    yield f"--callback-timeout={format_duration(callback.timeout_ms)}"
            yield f"--url={callback.url}"
        yield f"{'--at' if self._is_ahead else '--in'}={self._due_text()}"
        for name, value in (callback.headers or {}).items():
            yield f"--header={name}={value}"
        if callback.payload is not UNSET:
            yield f"--payload={bytes(callback.payload).decode()}"
        elif self._is_ahead:
            yield "--no-payload"
        if timer.metadata is not None:
            yield f"--metadata={bytes(timer.metadata).decode()}"
        yield from _policy_options(timer.retry_policy)

    def notes(self) -> Iterator[str]:
        yield f"The API key is taken from the environment: {KEY}."
        if not self._is_ahead:
            yield "The instant has passed, so the copy is due a minute after it is created."
        if isinstance(self._callback, HttpCallback):
            yield f"The copy is called {self._id}. Another one needs another id."
        if has_redacted(self._callback):
            yield f"Put the secret in place of {REDACTED}: it is not shown here."
        callback = self._callback
        is_plain = isinstance(callback, HttpCallback) and (
            callback.protocol is CallbackProtocol.STATUS
        )
        if is_plain or isinstance(callback, NatsCallback):
            yield (
                "The command line creates such a callback in the namespace 'default', with an id"
                " of the service's choice."
            )

    def _due_text(self) -> str:
        return format_instant(self._timer.execute_at) if self._is_ahead else LATER

    def _timeout(self) -> str | None:
        timeout_ms = self._callback.timeout_ms
        return None if timeout_ms is None else format_duration(timeout_ms)


def _too_long(timer: Timer, base_url: str) -> Iterator[str]:
    words = (
        "duetime",
        "get",
        f"--namespace={timer.key.namespace}",
        "--json",
        f"--server={base_url}",
    )
    yield "Its contents are too long for a command. This one prints all of them:"
    yield shlex.join((*words, "--", timer.key.id))


def _given(members: dict[str, object]) -> dict[str, object]:
    return {
        name: value for name, value in members.items() if value is not None and value is not UNSET
    }


def _in_lines(members: dict[str, object]) -> str:
    """An object with a line for each member. A payload stays as it is stored, byte by byte."""
    pairs = (f'  "{name}": {json.encode(value).decode()}' for name, value in members.items())
    return "{\n" + ",\n".join(pairs) + "\n}"


def _policy_members(policy: RetryPolicy | None) -> dict[str, object] | None:
    answer = retry_policy_answer(policy)
    if answer is None:
        return {"maxRetries": 0}
    members: dict[str, object] = json.decode(json.encode(answer))
    # Older spellings of other members.
    return {n: v for n, v in members.items() if n not in ("maxAttempts", "maxAttemptsDuration")}


def _platform_policy(policy: RetryPolicy | None) -> dict[str, object] | None:
    if policy is None:
        return None
    return {
        "max_retries": policy.max_retries,
        "max_retry_attempts_duration": format_duration(policy.max_duration_ms),
        "initial_interval": format_duration(policy.initial_interval_ms),
        "backoff_multiplier": policy.backoff_multiplier,
        "max_interval": format_duration(policy.max_interval_ms),
    }


def _policy_options(policy: RetryPolicy | None) -> Iterator[str]:
    if policy is None or policy.max_retries == 0:
        yield "--max-retries=0"
        return
    yield f"--max-retries={policy.max_retries}"
    yield f"--initial-interval={format_duration(policy.initial_interval_ms)}"
    yield f"--max-interval={format_duration(policy.max_interval_ms)}"
    yield f"--backoff-multiplier={policy.backoff_multiplier:g}"
    yield f"--max-duration={format_duration(policy.max_duration_ms)}"


def _curl(url: str, body: str) -> str:
    # No line of JSON can be the word that ends the body.
    return (
        f"curl --fail-with-body {shlex.quote(url)} \\\n"
        f'  --header "X-API-Key: ${KEY}" \\\n'
        "  --header 'Content-Type: application/json' \\\n"
        f"  --data-binary @- <<'JSON'\n{body}\nJSON"
    )


def _python(url: str, body: str) -> str:
    literal = f"r'''{body}'''" if "'''" not in body else repr(body)
    return (
        "import os\n"
        "import urllib.request\n\n"
        f"body = {literal}\n"
        "request = urllib.request.Request(\n"
        f"    {url!r},\n"
        "    data=body.encode(),\n"
        "    headers={\n"
        '        "Content-Type": "application/json",\n'
        f'        "X-API-Key": os.environ["{KEY}"],\n'
        "    },\n"
        ")\n"
        "with urllib.request.urlopen(request) as answer:\n"
        "    print(answer.read().decode())"
    )
