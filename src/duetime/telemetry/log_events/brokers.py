"""Log events of the bus and of NATS connections."""

from duetime.telemetry.log_events.event import REPORT, Area, LogEvent

BUS = Area(
    "Bus",
    (
        LogEvent("bus.opened", "info", ("broker",), "The broker was reached at the start."),
        LogEvent(
            "bus.unavailable",
            "warning",
            ("broker", "loop", "error"),
            "The broker cannot be used, and is tried again. Commands and events wait. The line "
            "has `broker` at the start and `loop` later. Logged once, then every 30 s.",
            "Look at the broker.",
        ),
        LogEvent(
            "bus.available", "info", ("loop", "away_seconds"), "The broker can be used again."
        ),
        LogEvent(
            "bus.commands_ignored",
            "info",
            ("count", "too_late", "unknown"),
            "`count` commands were acknowledged without effect since the last such line, because "
            "their timers had fired or were canceled, or there was none to cancel. `too_late` and "
            "`unknown` are the sums since the start. Logged at most every 10 s.",
        ),
        LogEvent(
            "bus.commands_rejected",
            "warning",
            ("count", "reason"),
            "`count` commands were rejected; `reason` is that of the last one. Logged at most "
            "every 10 s.",
            "Read them on `timer.commands.rejected`, and correct their sender.",
        ),
        LogEvent(
            "bus.rejections_lost",
            "error",
            ("count", "error", "reason", "command_id", "tenant", "size_bytes"),
            "The broker did not store `count` rejections, because of `error`. `reason`, "
            "`command_id`, `tenant` and `size_bytes` describe the last command.",
            "Look at the broker's limits for `timer.commands.rejected`.",
        ),
        LogEvent(
            "bus.batch_broken",
            "error",
            ("count", "exception"),
            "A fault in Duetime; the commands of the batch are handled one by one.",
            REPORT,
        ),
        LogEvent(
            "bus.not_given_back",
            "debug",
            ("count", "error"),
            "Commands could not be given back to the broker, which hands them over again by "
            "itself after 30 s.",
        ),
    ),
)

NATS = Area(
    "NATS",
    (
        LogEvent("nats.connected", "info", ("server",), "A NATS server was reached."),
        LogEvent(
            "nats.disconnected",
            "warning",
            ("server", "reason"),
            "The connection to a NATS server (for callbacks, or a broker) broke.",
            "Look at the server and the network.",
        ),
        LogEvent(
            "nats.not_connected",
            "warning",
            ("server", "reason"),
            "The connection to a NATS server could not be restored yet, and is tried again.",
            "Look at the server and the network.",
        ),
        LogEvent("nats.reconnected", "info", ("server",), "The connection is restored."),
        LogEvent(
            "nats.refused",
            "warning",
            ("server", "what", "subject"),
            "The NATS server does not let the user publish or listen there.",
            "Give the user that permission at the server.",
        ),
        LogEvent(
            "nats.unavailable",
            "warning",
            ("loop", "error"),
            "A part of the service (`loop`) cannot use the NATS server, and tries again. Logged "
            "once, then every 30 s.",
            "Look at the server and the network.",
        ),
        LogEvent(
            "nats.available",
            "info",
            ("loop", "away_seconds"),
            "The NATS server can be used again.",
        ),
        LogEvent(
            "nats.message_not_handled",
            "error",
            ("server", "error"),
            "A fault in Duetime: a message from a NATS server was not handled.",
            REPORT,
        ),
        LogEvent(
            "nats.not_unsubscribed",
            "debug",
            ("server", "error"),
            "A subscription could not be ended at the server; it ends with the connection.",
        ),
        LogEvent(
            "nats.not_flushed",
            "debug",
            ("server", "error"),
            "The last messages of a connection were perhaps not sent; their attempts failed.",
        ),
        LogEvent(
            "nats.not_closed",
            "debug",
            ("server", "error"),
            "A connection could not be closed in an orderly way.",
        ),
    ),
)
