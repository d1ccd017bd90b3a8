"""Field names in the server's messages, translated to the options that stand for them."""

import re

_OPTIONS = {
    "id": "--id",
    "executeAt": "--at",
    "executeIn": "--in",
    "callback.type": "--nats-topic",
    "callback.topic": "--nats-topic",
    "callback.key": "--nats-key",
    "callback.ack": "--ack",
    "callback.url": "--url",
    "callbackUrl": "--url",
    "callback.headers": "--header",
    "callbackHeaders": "--header",
    "callback.payload": "--payload",
    "payload": "--payload",
    "callbackTimeout": "--callback-timeout",
    "metadata": "--metadata",
    "metadata.key": "--metadata",
    "metadata.value": "--metadata",
    "idempotencyKey": "--idempotency-key",
    "maxRetries": "--max-retries",
    "initialInterval": "--initial-interval",
    "maxInterval": "--max-interval",
    "backoffMultiplier": "--backoff-multiplier",
    "maxRetryAttemptsDuration": "--max-duration",
    "numShards": "--shards",
    "retention": "--retention",
    "concurrency": "--concurrency",
    "maxPayloadBytes": "--max-payload-bytes",
    "expireOthersAfter": "--overlap",
    "type": "--type",
    "maxPending": "--max-pending",
    "callbackNetworks": "--callback-networks",
    "slo": "--slo",
    "expiresAt": "--expires-at",
    "rateLimit.perSecond": "--rate",
    "rateLimit.burst": "--burst",
    "maxConcurrent": "--max-concurrent",
    "overlap": "--overlap",
    "idPrefix": "--id-prefix",
    "endpoint": "--endpoint",
    "errorContains": "--error-contains",
    "dueAfter": "--due-after",
    "dueBefore": "--due-before",
    "moveBy": "--by",
    "status": "--status",
    "limit": "--limit",
    "offset": "--offset",
    "sort": "--sort",
    "order": "--order",
    "cursor": "--cursor",
    "actor": "--actor",
    "target": "--target",
    "from": "--since",
    "until": "--until",
}
_OF_OPERATIONS = {"executeAt": "--to"}
"""Options of commands that change many timers, where they differ."""

_GROUP = re.compile(r"(filter|retryPolicy)\.")
_UNDERSCORE = re.compile(r"_([a-z])")
_NAME = re.compile(r"(?<![\w.'\"`-])[A-Za-z_]+(?:\.[A-Za-z_]+)*(?![\w'\"`-])")
_BEFORE_PLAIN_FIELD = re.compile(r"(, | and | differs in )$")
_AFTER_PLAIN_FIELD = re.compile(r"(, | and )")
_PROBLEM = re.compile(r" (must|is|was|has|cannot)\b")
_AFTER_LIST = re.compile(rf"(?! )|{_PROBLEM.pattern}")


def in_option_names(message: str, *, of_operation: bool = False) -> str:
    """The message with options instead of fields. A field whose name is also a plain word, such as
    `payload`, is one only at the beginning, before its problem, or in a list."""
    options = _OPTIONS | _OF_OPERATIONS if of_operation else _OPTIONS

    def translated(match: re.Match[str]) -> str:
        text = match[0]
        name = _GROUP.sub("", _UNDERSCORE.sub(lambda letter: letter[1].upper(), text))
        is_plain_word = text.isalpha() and text.islower()
        if is_plain_word and not _is_field(message[: match.start()], message[match.end() :]):
            return text
        return options.get(name, text)

    return _NAME.sub(translated, message)


def _is_field(before: str, after: str) -> bool:
    """Whether a plain word between these texts is the name of a field."""
    if not before:
        return _PROBLEM.match(after) is not None
    if _AFTER_PLAIN_FIELD.match(after):
        return True
    # Not so in "whole hours, from 1h to 90d".
    return bool(_BEFORE_PLAIN_FIELD.search(before) and _AFTER_LIST.match(after))
