"""Sizes and ranges that the service's input is held to. No other module states these numbers.

The range of a setting is declared with the setting, in `settings.definitions`.
"""

import re

MIN_API_KEY_CHARACTERS = 32

MAX_API_KEYS = 10_000
"""API keys that are kept at once."""

MAX_NAME_CHARACTERS = 100
"""Length of the name of an API key."""

MAX_KEY_NAMESPACES = 100
"""Namespaces that one API key may name."""

MIN_REQUESTS_PER_SECOND = 0.001
MAX_REQUESTS_PER_SECOND = 1_000_000

MAX_BURST = 1_000_000
"""Requests of one API key that a rate limit may allow at once."""

MAX_CONCURRENT_REQUESTS = 1_000_000
"""Requests of one API key under way that its limit may allow."""

MAX_OVERLAP_DAYS = 365
"""Time for which a rotated API key may go on working beside its successor."""

MAX_SESSIONS = 2_000
"""Sessions of the Web UI that are kept at once, and as many links that open one. Every node reads
all of them after each sign-in."""

MAX_SESSIONS_OF_KEY = 50
"""Sessions of one API key that are kept at once, and as many links."""

MAX_KEY_CHARACTERS = 255
"""Length of a timer's id, a namespace's name and an idempotency key."""

MAX_INSTANT_CHARACTERS = 64
"""Length of an instant as text."""

MAX_DURATION_CHARACTERS = 32
"""Length of a duration as text."""

MAX_DELAY_YEARS = 100
"""Delay until an instant that a request may ask for, in years of 365.25 days."""

MAX_DELAY_MICROSECONDS = MAX_DELAY_YEARS * 31_557_600 * 1_000_000

MAX_HEAD_BYTES = 65_536
"""Size of a request's head."""

MAX_JSON_DEPTH = 64
"""Levels of arrays and objects in a request body."""

MAX_URL_CHARACTERS = 2_048
"""Length of a callback's URL."""

MAX_HOST_CHARACTERS = 253
"""Length of a host name in DNS."""

MAX_PORT = 65_535

MAX_CALLBACK_NETWORKS = 256
"""Entries in a list of networks that callbacks may go to."""

MAX_CALLBACK_NETWORKS_CHARACTERS = 8_192
"""Length of such a list."""

MAX_HEADERS = 64
"""Headers that one callback may carry."""

MAX_HEADER_BYTES = 16_384
"""Size of all headers of one callback."""

MAX_ANSWER_BYTES = 65_536
"""Size of an answer to a callback; the rest of a longer one is not kept."""

MAX_KEPT_ANSWER_BYTES = 4_096
"""Size of the part of a failing answer that is kept with its attempt."""

MAX_REASON_CHARACTERS = 200
"""Length of the endpoint's own words in a timer's last error."""

MAX_SUBJECT_CHARACTERS = 255
"""Length of the NATS subject that a callback publishes on."""

MAX_COMMAND_BYTES = 65_536
"""Size of a command on the bus."""

MAX_CORRELATION_CHARACTERS = 1_024
"""Length of a correlation id on the bus."""

MAX_OLD_MESSAGES = 10_000
"""Stored messages of a channel that a watch may show first."""

MIN_CALLBACK_TIMEOUT_MS = 1
MAX_CALLBACK_TIMEOUT_MS = 3_600_000

MAX_RETRIES = 100
"""Retries after the first attempt. `max_attempts` allows one more."""

MAX_RETRY_INTERVAL_MS = 30 * 86_400_000
"""Length of one wait between two attempts."""

MAX_RETRY_DURATION_MS = 365 * 86_400_000
"""Time after the first attempt in which retries may be planned."""

MAX_ATTEMPTS_REMEMBERED = 20
"""Attempts that a timer keeps a record of."""

MIN_BACKOFF_MULTIPLIER = 1
MAX_BACKOFF_MULTIPLIER = 100

MAX_SCHEMA_CHARACTERS = 48
"""Length of the name of a PostgreSQL schema. Duetime makes names that start with the schema's; they
must fit into PostgreSQL's 63 bytes."""

MAX_SHARDS = 4_096
"""Shards of one namespace."""

MAX_NAMESPACE_CONCURRENCY = 65_536
"""Callbacks of one namespace under way at once."""

MAX_NAMESPACE_PENDING = 1_000_000_000
"""Timers that a namespace may be allowed to have pending."""

MAX_RETENTION_DAYS = 36_500
"""Time for which finished timers may be kept, unless they are kept for ever."""

MAX_PAYLOAD_BYTES = 16 * 2**20
"""Size of a payload that a namespace, or the service, may be set to accept."""

MAX_METADATA_BYTES = 65_536
"""Size of a timer's metadata."""

MAX_BATCH_TIMERS = 1_000
"""Timers in one batch request."""

BATCH_BODY_FACTOR = 8
"""Size of a batch body, as a multiple of the size allowed for a single request."""

SMALL_BODY_BYTES = 65_536
"""Size of a body that may use the reserve of the memory for bodies."""

BODY_RESERVE_PART = 8
"""Parts of the memory for bodies, one of which is reserved for small ones."""

PEER_RESERVE_PART = 16
"""Parts of the memory for bodies, one of which no peer gets if it has all the others."""

MAX_IMPORT_ERRORS = 100
"""Refused lines that the answer to an import describes; the others are only counted."""

DEFAULT_PAGE_TIMERS = 50
"""Timers on a page, unless the request says otherwise."""

MAX_PLATFORM_PAGE_TIMERS = 200
MAX_V1_PAGE_TIMERS = 1_000

MAX_PAGE_OFFSET = 2**63 - 1
"""Timers that a page of the platform API may skip."""

MAX_FILTER_CHARACTERS = 1_024
"""Length of a text in the filter of a bulk operation."""

MAX_CHOSEN_TIMERS = 200
"""Timers that one request acts on one by one."""

MAX_RUNNING_OPERATIONS = 20
"""Bulk operations that may run at once."""

MAX_PAUSED_ENDPOINTS = 1_000
"""Endpoints that may be paused at once. Every node reads all of them every second."""

MAX_PAUSE_REASON_CHARACTERS = 500
"""Length of the reason for a pause."""

MAX_QUERY_PARAMETERS = 50
"""Parameters in one query string."""

MIN_SECRET_BYTES = 24
MAX_SECRET_BYTES = 64
"""Size of the key of a secret that signs with HMAC, as Standard Webhooks bounds it."""

SEED_BYTES = 32
"""Size of the seed, and of the public key, of an Ed25519 key."""

MAX_SECRETS = 10
"""Secrets that sign the callbacks of one namespace at once."""

MAX_SECRET_OVERLAP_MS = 30 * 86_400_000
"""Time for which secrets may go on signing after a new one took their place."""

SCHEMA_NAME_RULE = (
    f"up to {MAX_SCHEMA_CHARACTERS} of a-z, 0-9 and _, not starting with a digit or with pg_"
)
"""Completes a sentence: "schema must be ..."."""

_SCHEMA_NAME = re.compile(rf"(?!pg_)[a-z_][a-z0-9_]{{0,{MAX_SCHEMA_CHARACTERS - 1}}}")


def is_schema_name(text: str) -> bool:
    """Whether the name needs no quoting in SQL, and PostgreSQL allows it."""
    return _SCHEMA_NAME.fullmatch(text) is not None
