"""The token bucket: a rate that may be exceeded for a moment."""

from collections import OrderedDict

from duetime.domain.security.credentials import RateLimit


class TokenBucket:
    """Full at first. Instants are seconds of the monotonic clock."""

    __slots__ = ("_burst", "_per_second", "_seen_at_seconds", "_tokens")

    def __init__(self, limit: RateLimit, now_seconds: float) -> None:
        self._per_second = limit.per_second
        self._burst = float(limit.burst)
        self._tokens = self._burst
        self._seen_at_seconds = now_seconds

    def take(self, now_seconds: float) -> float:
        """Take a token: 0.0 if there was one, else the seconds until there is."""
        gained = (now_seconds - self._seen_at_seconds) * self._per_second
        tokens = min(self._tokens + gained, self._burst)
        self._seen_at_seconds = now_seconds
        if tokens >= 1.0:
            self._tokens = tokens - 1.0
            return 0.0
        self._tokens = tokens
        return (1.0 - tokens) / self._per_second


class TokenBuckets:
    """A bucket for each source, of those that were used last."""

    def __init__(self, limit: RateLimit, max_sources: int) -> None:
        self._limit = limit
        self._max_sources = max_sources
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def take(self, source: str, now_seconds: float) -> float:
        """As `TokenBucket.take`, from the bucket of the source."""
        bucket = self._buckets.get(source)
        if bucket is None:
            if len(self._buckets) >= self._max_sources:
                self._buckets.popitem(last=False)
            bucket = self._buckets[source] = TokenBucket(self._limit, now_seconds)
        self._buckets.move_to_end(source)
        return bucket.take(now_seconds)
