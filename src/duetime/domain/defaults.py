"""Defaults of settings that are stated outside of the settings, too: in texts of the API and of the
command line. `settings.definitions` has all others."""

DEFAULT_PORT = 8_080
"""Port of the API."""

DEFAULT_MIN_DELAY_SECONDS = 5
"""Delay until an instant that the platform API requires."""

DEFAULT_MAX_BODY_BYTES = 1_048_576
"""Size of a request body."""

DEFAULT_MAX_BODIES_BYTES = 128 * 2**20
"""Size of all request bodies under way."""

DEFAULT_MAX_PAYLOAD_BYTES = 262_144
"""Size of a payload."""

DEFAULT_CALLBACK_TIMEOUT_MS = 30_000
"""Time that an attempt may take."""

DEFAULT_KEPT_ANSWER_BYTES = 1_024
"""Size of the part of a failing answer that is kept with its attempt."""

DEFAULT_DISK_RESERVE_BYTES = 64 * 2**20
"""Free space on the disk of the SQLite file that is kept for accepted timers."""

DEFAULT_SECRET_OVERLAP_MS = 86_400_000
"""Time for which `duetime secrets rotate` lets the secrets of before sign."""

DEFAULT_KEY_MAX_CONCURRENT = 1_000
"""Requests of one API key under way at once."""

DEFAULT_OVERLAP_MS = 24 * 3_600_000
"""Time for which a rotated API key goes on working beside its successor."""
