"""One action on all timers that a command selects by filters: count, ask, start, follow."""

import asyncio

import typer

from duetime.cli.client.answers import MatchedTimers, NamespaceList, Operation
from duetime.cli.client.v1 import V1Client
from duetime.cli.output.operation_views import operation_line, operation_progress
from duetime.cli.output.timer_views import print_json
from duetime.cli.output.wording import counted
from duetime.cli.terminal import ExitCode, fail, printable, refuse
from duetime.clock import SystemClock
from duetime.domain.namespace import DEFAULT_NAMESPACE

COUNTING_SECONDS = 60.0
"""Timeout of the request that counts timers; the server takes up to a few seconds for it."""

POLL_SECONDS = 0.2

Body = dict[str, object]


class Action:
    """An action with its words: the imperative, the participle, and the timers it is for."""

    def __init__(self, name: str, imperative: str, participle: str, noun: str) -> None:
        self.name = name
        self.imperative = imperative
        self.participle = participle
        self.noun = noun


class Selection:
    def __init__(
        self, matching: Body, every: bool, namespace: str | None, all_namespaces: bool
    ) -> None:
        if all_namespaces and namespace is not None:
            refuse("--namespace / --all-namespaces", "give one of them, not both")
        self.matching = matching
        self.every = every
        self.namespace = namespace or DEFAULT_NAMESPACE
        self.all_namespaces = all_namespaces


class BulkAction:
    """One bulk operation for each namespace, after one question for all of them."""

    def __init__(self, client: V1Client, action: Action, *, quiet: bool, as_json: bool) -> None:
        self._client = client
        self._action = action
        self._quiet = quiet
        self._as_json = as_json

    def run(self, selection: Selection, extra: Body, *, yes: bool, dry_run: bool) -> None:
        with self._client.kept_open():
            bodies = [
                self._body(selection, extra, namespace) for namespace in self._namespaces(selection)
            ]
            counts = [self._count(body) for body in bodies]
            matched = sum(count.matched for count in counts)
            at_least = "at least " if any(count.matched_is_minimum for count in counts) else ""
            covered = (
                f"all {counted(len(bodies), 'namespace')}"
                if selection.all_namespaces
                else f"namespace {printable(repr(selection.namespace))}"
            )
            timers = f"{at_least}{counted(matched, self._action.noun)} of {covered}"
            if dry_run or not (matched or at_least):
                self._report_nothing(timers, matched, bool(at_least))
                return
            if not yes and not typer.confirm(f"{self._action.imperative} {timers}?"):
                fail(f"nothing was {self._action.participle}", ExitCode.FAILED)
            started = [
                self._start(body)
                for body, count in zip(bodies, counts, strict=True)
                if count.matched or count.matched_is_minimum
            ]
            self._follow(started)

    def _report_nothing(self, timers: str, matched: int, is_minimum: bool) -> None:
        if self._as_json:
            print_json({"matched": matched, "matchedIsMinimum": is_minimum, "operations": []})
        else:
            print(f"{timers}: nothing was {self._action.participle}")

    def _namespaces(self, selection: Selection) -> list[str]:
        if not selection.all_namespaces:
            return [selection.namespace]
        document = self._client.request("GET", "/namespaces")
        return [each.name for each in self._client.read_as(NamespaceList, document).namespaces]

    def _body(self, selection: Selection, extra: Body, namespace: str) -> Body:
        body: Body = {"action": self._action.name, "namespace": namespace, **extra}
        return body | ({"filter": selection.matching} if selection.matching else {"all": True})

    def _count(self, body: Body) -> MatchedTimers:
        counting = body | {"dryRun": True}
        document = self._client.request(
            "POST", "/operations", body=counting, timeout_seconds=COUNTING_SECONDS
        )
        return self._client.read_as(MatchedTimers, document)

    def _start(self, body: Body) -> Operation:
        document = self._client.request(
            "POST", "/operations", body=body, timeout_seconds=COUNTING_SECONDS
        )
        return self._client.read_as(Operation, document)

    def _follow(self, started: list[Operation]) -> None:
        try:
            ended = [self._wait_for(operation) for operation in started]
        except KeyboardInterrupt:
            ids = " ".join(operation.id for operation in started)
            fail(f"the server goes on; to stop it: duetime operations abort {ids}", ExitCode.FAILED)
        changed = sum(operation.changed for operation in ended)
        skipped = sum(operation.skipped for operation in ended)
        if self._as_json:
            print_json(
                {
                    "changed": changed,
                    "skipped": skipped,
                    "operations": [operation.id for operation in ended],
                }
            )
        else:
            late = f", {counted(skipped, 'timer')} fired or changed before" if skipped else ""
            print(f"{self._action.participle}: {counted(changed, 'timer')}{late}")
        for operation in ended:
            if operation.status != "completed":
                fail(operation_line(operation), ExitCode.FAILED)

    def _wait_for(self, operation: Operation) -> Operation:
        with operation_progress(operation, quiet=self._quiet or self._as_json) as show:
            while operation.status == "running":
                asyncio.run(SystemClock().sleep(POLL_SECONDS))
                document = self._client.request("GET", f"/operations/{operation.id}")
                operation = self._client.read_as(Operation, document)
                show(operation)
        return operation
