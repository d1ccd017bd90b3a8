"""One action on all timers that a command selects by filters: count, ask, start, follow."""

from collections import deque

import typer

from duetime.cli.client.answers import MatchedTimers, NamespaceList
from duetime.cli.client.v1 import V1Client
from duetime.cli.commands.timers.followed_operations import (
    START_SECONDS,
    Body,
    FollowedOperations,
    NoRoom,
)
from duetime.cli.output.operation_views import left_running, operation_line
from duetime.cli.output.timer_views import print_json
from duetime.cli.terminal import ExitCode, fail, printable, refuse
from duetime.domain.namespace import DEFAULT_NAMESPACE
from duetime.domain.wording import counted


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
                outcome = " would be {} (dry run)" if dry_run else ": nothing was {}"
                line = timers + outcome.format(self._action.participle)
                self._report_nothing(line, matched, bool(at_least))
                return
            if not yes and not typer.confirm(f"{self._action.imperative} {timers}?"):
                fail(f"nothing was {self._action.participle}", ExitCode.FAILED)
            matching = [
                body
                for body, count in zip(bodies, counts, strict=True)
                if count.matched or count.matched_is_minimum
            ]
            self._carry_out(deque(matching))

    def _report_nothing(self, line: str, matched: int, is_minimum: bool) -> None:
        if self._as_json:
            print_json({"matched": matched, "matchedIsMinimum": is_minimum, "operations": []})
        else:
            print(line)

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
            "POST", "/operations", body=counting, timeout_seconds=START_SECONDS
        )
        return self._client.read_as(MatchedTimers, document)

    def _carry_out(self, bodies: deque[Body]) -> None:
        """Start one operation for each body, follow all of them, and report them whatever happens
        in between."""
        operations = FollowedOperations(self._client, quiet=self._quiet or self._as_json)
        problems: list[str] = []
        cause: int | None = ExitCode.FAILED
        try:
            try:
                self._start_each(bodies, operations, problems)
            except typer.Exit as failure:
                # The reason was printed; the operations that were started are followed still.
                cause = failure.exit_code
            operations.follow()
        except typer.Exit as failure:
            cause = failure.exit_code
        except KeyboardInterrupt:
            cause = None
        self._report(operations)
        problems += (
            operation_line(each) for each in operations.ended if each.status != "completed"
        )
        if bodies:
            left = counted(len(bodies), "namespace")
            problems.append(f"nothing was started for {left}: run the command again")
        if operations.running:
            problems.append(left_running(operations.running, cause=cause))
        if problems:
            fail("\n".join(problems), ExitCode.FAILED if cause is None else cause)

    def _start_each(
        self, bodies: deque[Body], operations: FollowedOperations, problems: list[str]
    ) -> None:
        """Take each body away once it has been answered."""
        while bodies:
            namespace = f"namespace {printable(repr(bodies[0]['namespace']))}"
            try:
                reason = operations.start(bodies[0])
            except NoRoom as full:
                problems.append(f"{namespace}: {full}")
                return
            bodies.popleft()
            if reason is not None:
                problems.append(f"{namespace}: {reason}")

    def _report(self, operations: FollowedOperations) -> None:
        started = [*operations.ended, *operations.running]
        changed = sum(operation.changed for operation in started)
        skipped = sum(operation.skipped for operation in started)
        if self._as_json:
            print_json(
                {
                    "changed": changed,
                    "skipped": skipped,
                    "operations": [operation.id for operation in started],
                }
            )
        else:
            late = f"; skipped, fired or changed before: {skipped:,}" if skipped else ""
            so_far = " so far" if operations.running else ""
            print(f"{self._action.participle}: {counted(changed, 'timer')}{so_far}{late}")
