"""Examples of the v1 API for the OpenAPI document and the docs page."""

from msgspec import json

NAMESPACE = "default"
OTHER_NAMESPACE = "notifications"
TIMER_ID = "order-1042-expiry"
EXECUTE_AT = "2030-01-01T12:00:00Z"
NEXT_EXECUTE_AT = "2030-01-01T16:00:00Z"
URL = "https://app.example.com/webhooks/timer"
PAYLOAD = {"orderId": 1042, "action": "expire"}
CURSOR = "Dqe9ewcRAAa6IKMy0ACCbXGYmQxueK57_5vV7KW1"

RETRY_POLICY = {
    "maxRetries": 5,
    "maxAttempts": 6,
    "maxRetryAttemptsDuration": "24h",
    "maxAttemptsDuration": "24h",
    "initialInterval": "10s",
    "backoffMultiplier": 2.0,
    "maxInterval": "10m",
}

CREATE = {
    "namespace": NAMESPACE,
    "id": TIMER_ID,
    "executeAt": EXECUTE_AT,
    "callbackUrl": URL,
    "payload": PAYLOAD,
    "retryPolicy": {"maxRetries": 5, "initialInterval": "10s"},
    "callbackTimeout": "30s",
}
CREATE_SHORT = {"id": TIMER_ID, "executeIn": "30m", "callbackUrl": URL, "payload": PAYLOAD}

TIMER = {
    "id": TIMER_ID,
    "namespace": NAMESPACE,
    "executeAt": EXECUTE_AT,
    "callbackUrl": URL,
    "callbackProtocol": "answer",
    "payload": PAYLOAD,
    "retryPolicy": RETRY_POLICY,
    "callbackTimeout": "30s",
    "callbackTimeoutSeconds": 30.0,
    "createdAt": "2029-12-31T10:30:00Z",
    "updatedAt": "2029-12-31T10:30:00Z",
    "executedAt": None,
    "status": "pending",
    "attempts": [],
    "lastError": None,
    "nextAttemptAt": EXECUTE_AT,
    "deliveryId": "01977f3e-7a10-7cc3-8a2b-6f0d3b8d9c11",
}

FAILED_TIMER = {
    **TIMER,
    "updatedAt": "2030-01-01T12:00:00.131Z",
    "executedAt": "2030-01-01T12:00:00.131Z",
    "status": "failed",
    "attempts": [
        {
            "number": 1,
            "dueAt": EXECUTE_AT,
            "claimedAt": "2030-01-01T11:59:59.950Z",
            "sentAt": "2030-01-01T12:00:00.001Z",
            "answeredAt": "2030-01-01T12:00:00.131Z",
            "outcome": "failed",
            "error": "HTTP 503: upstream is down",
            "answer": "upstream is down\n",
        }
    ],
    "lastError": "HTTP 503",
    "nextAttemptAt": None,
}

CANCELED_TIMER = {
    **TIMER,
    "updatedAt": "2029-12-31T11:00:00Z",
    "status": "canceled",
    "nextAttemptAt": None,
}

SELECTION = {"namespace": NAMESPACE, "timerId": TIMER_ID}

UPDATE = {"executeAt": NEXT_EXECUTE_AT, "payload": {"orderId": 1042, "action": "remind"}}
UPDATED = {
    **TIMER,
    "executeAt": NEXT_EXECUTE_AT,
    "payload": UPDATE["payload"],
    "updatedAt": "2029-12-31T11:00:00Z",
    "nextAttemptAt": NEXT_EXECUTE_AT,
}

BATCH = {
    "timers": [
        {"id": "order-1043-expiry", "executeIn": "30m", "callbackUrl": URL},
        {"id": "order-1044-expiry", "executeIn": "30m", "callbackUrl": "https:///webhooks/timer"},
    ]
}
BATCH_RESULTS = {
    "results": [
        {"status": "created", "namespace": NAMESPACE, "id": "order-1043-expiry"},
        {
            "status": "invalid",
            "namespace": "default",
            "id": "order-1044-expiry",
            "error": {
                "error": "INVALID_INPUT",
                "message": "callbackUrl has no host",
                "details": {"field": "callbackUrl"},
            },
        },
    ]
}

IMPORT = (
    '{"id": "order-1043-expiry", "executeAt": "2030-01-01T12:00:00Z", '
    f'"callbackUrl": "{URL}"}}\n'
    '{"id": "order-1044-expiry", "executeAt": "2030-01-01T12:00:00", '
    f'"callbackUrl": "{URL}"}}\n'
)
IMPORTED = {
    "lines": 2,
    "created": 1,
    "existing": 0,
    "conflicts": 0,
    "invalid": 1,
    "errors": [
        {
            "line": 2,
            "namespace": NAMESPACE,
            "id": "order-1044-expiry",
            "error": "INVALID_INPUT",
            "message": "executeAt must have a UTC offset, such as 2026-01-01T12:00:00Z",
            "details": {"field": "executeAt"},
        }
    ],
}

FULL_TIMER = {
    "namespace": NAMESPACE,
    "id": TIMER_ID,
    "status": "failed",
    "executeAt": EXECUTE_AT,
    "dueAt": EXECUTE_AT,
    "createdAt": "2029-12-31T08:00:00.125Z",
    "updatedAt": "2030-01-01T12:00:00.204Z",
    "executedAt": "2030-01-01T12:00:00.204Z",
    "deliveryId": "01977f3e-7a10-7cc3-8a2b-6f0d3b8d9c12",
    "callback": {"type": "http", "url": URL, "payload": PAYLOAD, "protocol": "answer"},
    "attempt": 1,
    "failures": 1,
    "claimNumber": 1,
    "attempts": [
        {
            "number": 1,
            "dueAt": EXECUTE_AT,
            "claimedAt": "2030-01-01T11:59:59.950Z",
            "sentAt": "2030-01-01T12:00:00.001Z",
            "answeredAt": "2030-01-01T12:00:00.204Z",
            "outcome": "failed",
            "error": "HTTP 503",
        }
    ],
    "lastError": "HTTP 503",
}
FULL_PAGE = {"timers": [FULL_TIMER], "nextCursor": None}
FULL_IMPORT = (
    f'{{"full": 1, "namespace": {{"name": "{NAMESPACE}", "numShards": 16}}}}\n'
    f'{{"full": 1, "timer": {json.encode(FULL_TIMER).decode()}}}\n'
)
RESTORED = {
    "lines": 2,
    "created": 1,
    "existing": 0,
    "conflicts": 0,
    "invalid": 0,
    "errors": [],
    "restored": {
        "namespaces": 1,
        "existingNamespaces": 0,
        "timers": {"pending": 0, "executing": 0, "completed": 0, "failed": 1, "canceled": 0},
    },
}

PAGE = {"timers": [TIMER], "nextCursor": CURSOR}
LAST_PAGE = {"timers": [FAILED_TIMER], "nextCursor": None}

REDRIVE_ONE = {"namespace": NAMESPACE, "timerId": TIMER_ID}
REDRIVE_COUNT = {
    "namespace": NAMESPACE,
    "dueAfter": "2030-01-01T00:00:00Z",
    "dueBefore": "2030-01-02T00:00:00Z",
    "errorContains": "HTTP 503",
    "dryRun": True,
}
REDRIVE_ALL = {"namespace": NAMESPACE, "all": True}

NAMESPACE_BODY = {
    "numShards": 32,
    "retryPolicy": {"maxRetries": 5, "initialInterval": "10s"},
    "retention": "7d",
    "concurrency": 100,
    "maxPayloadBytes": 65536,
    "maxPending": 1000000,
    "callbackNetworks": "*.example.com:443",
    "slo": "99.9 % within 100ms over 30d",
}
NAMESPACE_IN_LIST = {
    "name": OTHER_NAMESPACE,
    **NAMESPACE_BODY,
    "retryPolicy": RETRY_POLICY,
    "sloStatus": {"attempts": 88012, "late": 11, "errorBudgetLeft": 0.875017},
    "deleting": False,
}
COUNTS = {"pending": 1200, "executing": 3, "completed": 88000, "failed": 12, "canceled": 40}
NAMESPACE_ANSWER = {**NAMESPACE_IN_LIST, "counts": COUNTS}

ENDPOINTS = {
    "node": "timers-1:4711:6f0c",
    "endpoints": [
        {
            "endpoint": "https://app.example.com:443",
            "state": "open",
            "inFlight": 0,
            "waiting": 0,
            "consecutiveFailures": 24,
            "lastError": "connection refused",
            "openedAt": "2030-01-01T12:00:03.200Z",
            "paused": None,
            "last15Minutes": {"attempts": 310, "failures": 24, "p50Ms": 18.2, "p99Ms": 904.5},
        }
    ],
}
PROBLEMS = {
    "problems": [
        {
            "kind": "breaker_open",
            "subject": "https://api.example.com:443",
            "severity": "warning",
            "sentence": "2,310 timers for api.example.com wait behind an open breaker",
            "since": "2030-01-01T14:02:00Z",
            "advice": "A few attempts at a time look whether it answers again. To keep "
            "timers from failing while it is mended, pause the endpoint.",
            "detail": "Last error: connection refused",
            "runbook": "alerts/breaker-open",
        }
    ]
}
PAUSE = {"endpoint": "https://app.example.com", "reason": "deploy of app 4.2"}
PAUSED = {
    "endpoint": "https://app.example.com:443",
    "pausedAt": EXECUTE_AT,
    "pausedBy": "operations",
    "reason": "deploy of app 4.2",
}

CALLBACK = {
    "namespace": NAMESPACE,
    "id": TIMER_ID,
    "executeAt": EXECUTE_AT,
    "attempt": 1,
    "payload": PAYLOAD,
}

OPERATION_ID = "01977f3e-7a10-7cc3-8a2b-6f0d3b8d9c12"
BULK_CANCEL = {
    "action": "cancel",
    "namespace": OTHER_NAMESPACE,
    "filter": {"idPrefix": "campaign-7-", "dueBefore": NEXT_EXECUTE_AT},
}
BULK_MOVE = {
    "action": "reschedule",
    "namespace": OTHER_NAMESPACE,
    "filter": {"endpoint": "https://app.example.com"},
    "moveBy": "1h",
}
BULK_RUN_NOW = {
    "action": "run-now",
    "namespace": OTHER_NAMESPACE,
    "filter": {"metadata": {"key": "customerId", "value": "17"}},
}
BULK_COUNT = {
    "action": "redrive",
    "namespace": OTHER_NAMESPACE,
    "filter": {"errorContains": "HTTP 503"},
    "dryRun": True,
}
OPERATION = {
    "id": OPERATION_ID,
    "action": "cancel",
    "namespace": OTHER_NAMESPACE,
    "startedBy": "billing",
    "filter": {"idPrefix": "campaign-7-", "dueBefore": NEXT_EXECUTE_AT},
    "status": "running",
    "matched": 1_204,
    "matchedIsMinimum": False,
    "scanned": 0,
    "changed": 0,
    "skipped": 0,
    "executing": 0,
    "error": None,
    "createdAt": EXECUTE_AT,
    "updatedAt": EXECUTE_AT,
    "finishedAt": None,
}
ENDED_OPERATION = {
    **OPERATION,
    "status": "completed",
    "scanned": 5_310,
    "changed": 1_203,
    "skipped": 1,
    "updatedAt": "2030-01-01T12:00:01.204Z",
    "finishedAt": "2030-01-01T12:00:01.204Z",
}

SECRET_ID = "c1977f3e-8b24-4d0e-9c41-2f7a5d60e813"
_ED25519_ID = "01977f40-11c7-7f52-b6aa-90d4e1c27f38"
_ED25519_SECRET = {
    "id": _ED25519_ID,
    "type": "ed25519",
    "createdAt": EXECUTE_AT,
    "expiresAt": None,
    "publicKey": "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
}
_HMAC_SECRET = {"id": SECRET_ID, "type": "hmac", "createdAt": EXECUTE_AT, "expiresAt": None}
NEW_SECRET = {**_HMAC_SECRET, "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="}
NEW_ED25519_SECRET = {
    **_ED25519_SECRET,
    "secret": "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=",
}
SECRETS = [
    {**_HMAC_SECRET, "expiresAt": NEXT_EXECUTE_AT},
    {**_HMAC_SECRET, "id": OPERATION_ID.replace("7a10", "9c02")},
    _ED25519_SECRET,
]
