"""Examples of the platform API for the OpenAPI document and the docs page."""

TIMER_ID = "01977f3e-7a10-7cc2-9d53-3f1f4c1f8a55"

SUMMARY = {
    "id": TIMER_ID,
    "created_at": "2029-12-31T10:30:00Z",
    "execute_at": "2030-01-01T12:00:00Z",
    "callback_type": "http",
    "status": "pending",
    "executed_at": None,
}

PAYLOAD = {"event": "timer_triggered", "user_id": "user123"}

CALLBACK = {
    "type": "http",
    "url": "https://api.example.com/webhook",
    "headers": {"Authorization": "Bearer token123"},
    "payload": PAYLOAD,
}

CREATE = {
    "execute_at": "2030-01-01T12:00:00Z",
    "callback": CALLBACK,
    "metadata": {"client_ref": "order-456"},
    "retry_policy": {"max_retries": 5, "initial_interval": "10s"},
    "idempotency_key": "order-456-reminder",
}

CREATE_NATS = {
    "execute_at": "2030-01-01T12:00:00Z",
    "callback": {
        "type": "nats",
        "topic": "events.timer.triggered",
        "key": "user123",
        "headers": {"source": "timers"},
        "payload": PAYLOAD,
        "ack": True,
    },
}

CREATED = {"code": 0, "message": "timer created successfully", "data": SUMMARY}

EXISTING = {"code": 0, "message": "timer already exists", "data": SUMMARY}

UPDATE = {"execute_at": "2030-01-01T16:00:00Z", "metadata": {"updated": True}}

UPDATED = {
    "code": 0,
    "message": "timer updated successfully",
    "data": {
        "id": TIMER_ID,
        "created_at": SUMMARY["created_at"],
        "updated_at": "2029-12-31T11:00:00Z",
        "execute_at": UPDATE["execute_at"],
        "callback_type": "http",
        "status": "pending",
        "executed_at": None,
    },
}

CANCELED = {
    "code": 0,
    "message": "timer canceled successfully",
    "data": {"id": TIMER_ID, "status": "canceled"},
}

LISTED = {
    **SUMMARY,
    "callback_target": CALLBACK["url"],
    "due_at": SUMMARY["execute_at"],
    "last_error": None,
}

LIST = {
    "code": 0,
    "message": "success",
    "data": {"timers": [LISTED], "total": 1, "limit": 50, "offset": 0},
}

DETAIL = {
    "code": 0,
    "message": "success",
    "data": {
        "id": TIMER_ID,
        "created_at": "2029-12-31T10:30:00Z",
        "updated_at": "2030-01-01T12:00:00.131Z",
        "execute_at": "2030-01-01T12:00:00Z",
        "callback_type": "http",
        "callback_config": {**CALLBACK, "headers": {"Authorization": "[redacted]"}},
        "status": "completed",
        "last_error": None,
        "executed_at": "2030-01-01T12:00:00.131Z",
        "metadata": {"client_ref": "order-456"},
        "retry_policy": None,
        "due_at": "2030-01-01T12:00:00Z",
        "attempt": 1,
        "delivery_id": "01977f3e-7a10-7cc3-8a2b-6f0d3b8d9c11",
        "attempts": [
            {
                "number": 1,
                "due_at": "2030-01-01T12:00:00Z",
                "claimed_at": "2030-01-01T11:59:59.981Z",
                "sent_at": "2030-01-01T12:00:00.001Z",
                "answered_at": "2030-01-01T12:00:00.131Z",
                "outcome": "completed",
                "error": None,
                "answer": None,
            }
        ],
    },
}

HEALTHY = {
    "code": 0,
    "message": "healthy",
    "data": {
        "status": "up",
        "database": "connected",
        "timestamp": "2030-01-01T12:00:00Z",
        "engine": {
            "running": True,
            "shards_owned": 16,
            "lateness_ms": 0.8,
            "in_flight": 3,
            "local_shortages": 0,
            "callbacks_refused": 0,
        },
        "cluster": {
            "node": "timers-1:4711:6f0c",
            "members": 3,
            "shards": 48,
            "clock_offset_ms": -0.4,
            "clock_skewed": False,
        },
        "bus": {
            "broker": "nats://bus.example.com:4222",
            "connected": True,
            "consuming": True,
            "commands_received": 1200,
            "commands_rejected": 1,
            "commands_ignored": 2,
            "events_published": 1143,
        },
        "nats": {"server": "nats://nats.example.com:4222", "connected": True},
    },
}

DEGRADED = {
    "code": 1,
    "message": "database connection failed",
    "data": {
        "status": "degraded",
        "database": "disconnected",
        "timestamp": "2030-01-01T12:00:00Z",
        "engine": {
            "running": True,
            "shards_owned": 16,
            "lateness_ms": None,
            "in_flight": 0,
            "local_shortages": 0,
            "callbacks_refused": 0,
        },
    },
}

ALIVE = {"code": 0, "message": "alive", "data": None}
READY = {"code": 0, "message": "ready", "data": None}
NOT_READY = {"code": 1, "message": "the store does not answer", "data": None}
