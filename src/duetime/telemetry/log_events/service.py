"""Log events of the service process, its supervisor and its settings."""

from duetime.telemetry.log_events.event import REPORT, Area, LogEvent

SERVICE = Area(
    "Start and stop",
    (
        LogEvent(
            "service.waiting",
            "info",
            ("url",),
            "The start takes longer than a second. Until its end, connections are accepted at "
            "`url`: `/livez` answers 200, `/readyz` 503, `/healthz` 500, and operations that need "
            "a key 503, or 401 without it. Documents can be read. A worker beside others accepts "
            "no connection until it has started.",
            "If it lasts, look for `store.waiting`.",
        ),
        LogEvent(
            "service.started",
            "info",
            ("url", "version", "workers"),
            "The service is ready. With several workers the supervisor logs this line, with their "
            "number.",
        ),
        LogEvent(
            "metrics.served",
            "info",
            ("url",),
            "The metrics are at `url`, since `METRICS_PORT` gives them a port of their own.",
        ),
        LogEvent(
            "service.draining",
            "info",
            ("seconds",),
            "The service was told to stop, and serves on for `DRAIN_SECONDS` while `/readyz` "
            "answers 503.",
        ),
        LogEvent(
            "service.stopping",
            "info",
            (),
            "The service stops. Each worker logs its own stop; the supervisor's lines have no "
            "`worker`.",
        ),
        LogEvent("service.stopped", "info", (), "The process ends."),
        LogEvent(
            "service.rolling",
            "info",
            ("workers",),
            "After SIGHUP the supervisor replaces its workers, one after the other.",
        ),
        LogEvent("service.rolled", "info", ("workers",), "All workers have been replaced."),
        LogEvent(
            "service.roll_abandoned",
            "error",
            ("advice",),
            "A new worker could not start, so the workers that are not replaced yet stay.",
            "Correct the problem that `worker.not_replaced` names, then send SIGHUP again.",
        ),
        LogEvent(
            "service.descriptors_limited",
            "warning",
            ("setting", "configured", "used", "open_files", "advice"),
            "The limit of open files (`open_files`) is too low for a `setting`; `used` applies "
            "instead of `configured`.",
            "Raise the limit (`LimitNOFILE` of systemd, `ulimit -Hn`), or lower the setting.",
        ),
        LogEvent(
            "settings.misspelt",
            "warning",
            ("advice",),
            "A variable of the environment has a name close to a setting that is not given.",
            "Correct the name.",
        ),
        LogEvent(
            "auth.open",
            "warning",
            ("advice",),
            "`AUTH=none`: everyone who can reach the API can use it.",
            "Set `API_KEY`, unless a gateway checks every request.",
        ),
        LogEvent(
            "callbacks.allowed",
            "info",
            ("networks", "proxy"),
            "The networks where callbacks may go (`CALLBACK_NETWORKS`; null if the proxy alone "
            "decides), and the proxy.",
        ),
        LogEvent(
            "callbacks.unguarded",
            "warning",
            ("networks_ignored", "advice"),
            "`CALLBACK_PROXY` is set without `CALLBACK_PROXY_GUARD=on`: the proxy alone decides "
            "where callbacks go, and neither `CALLBACK_NETWORKS` nor the lists of namespaces "
            "apply. Logged at the start.",
            "Make sure that the proxy refuses internal addresses, or set the guard.",
        ),
        LogEvent(
            "trace.broken",
            "error",
            ("namespace", "id", "exception"),
            "A fault in Duetime: the span of an attempt could not be made or ended. The attempt is "
            "not affected.",
            "Report this, with the traceback.",
        ),
        LogEvent(
            "trace.request_broken",
            "error",
            ("exception",),
            "A fault in Duetime: the span of a request could not be made or ended. Requests are "
            "not affected. Logged for the first such fault only.",
            "Report this, with the traceback.",
        ),
        LogEvent(
            "traces.setting_ignored",
            "warning",
            ("problem",),
            "OpenTelemetry does not use a variable as it is; `problem` has its words, without "
            "secrets. Logged at the start.",
            "Correct the variable.",
        ),
        LogEvent(
            "traces.export_troubled",
            "warning",
            ("problem", "count"),
            "Spans could not be exported, or were dropped because the queue is full; `problem` has "
            "the words of OpenTelemetry, without secrets. Timers are not affected. Logged at most "
            "once a minute; `count` problems since the last line.",
            "Look at the collector, or sample less.",
        ),
        LogEvent(
            "loop.step_failed",
            "error",
            ("loop", "exception"),
            "A fault in Duetime: a step of a background `loop` failed. The loop goes on.",
            REPORT,
        ),
    ),
)

WORKERS = Area(
    "Workers",
    (
        LogEvent(
            "worker.started",
            "info",
            ("worker", "pid", "replaces"),
            "A worker serves; `replaces` is the process that it replaced.",
        ),
        LogEvent(
            "metrics.unreadable",
            "error",
            ("metric", "exception"),
            "A metric could not be read, so scrapes leave it out. Logged once for each metric.",
            "Report this, with the traceback: it is a defect of Duetime.",
        ),
        LogEvent(
            "metrics.workers_apart",
            "warning",
            ("reason", "advice"),
            "The workers cannot ask each other for their metrics, so a scrape shows some of them "
            "only.",
            "Make the directory for temporary files (`TMPDIR`) writable, or shorten its name.",
        ),
        LogEvent(
            "worker.died",
            "error",
            (
                "worker",
                "pid",
                "status",
                "signal",
                "error",
                "ran_seconds",
                "restart_in_seconds",
            ),
            "A worker ended unasked, with `status` or by `signal`; `error` if it gave a reason. "
            "The supervisor starts another one.",
            "Look at the worker's last lines. SIGKILL often means that memory ran out.",
        ),
        LogEvent(
            "worker.not_replaced",
            "error",
            ("worker", "pid", "status", "signal", "error"),
            "A new worker could not start, so the old one stays.",
            "Correct what `error` says.",
        ),
        LogEvent(
            "worker.killed",
            "error",
            ("worker", "pid", "reason"),
            "A replaced worker did not stop in time.",
            "If it happens again, report it.",
        ),
        LogEvent(
            "supervisor.lost",
            "warning",
            (),
            "The supervisor of this worker is gone, so the worker stops.",
            "Find out what ended the supervisor, and start the service again.",
        ),
    ),
)
