"""What JSON Schema can say of the values that the service accepts.

They are told to clients here; the service checks them itself, with messages that name the field.
"""

from duetime.domain.limits import MAX_INSTANT_CHARACTERS, MAX_KEY_CHARACTERS

KEY_LENGTH = {"minLength": 1, "maxLength": MAX_KEY_CHARACTERS}
KEY_TEXT = {**KEY_LENGTH, "pattern": r"^[^\u0000]*$"}
INSTANT = {"format": "date-time", "maxLength": MAX_INSTANT_CHARACTERS}
DURATION = {"pattern": r"^([0-9]+(\.[0-9]+)?(ms|s|m|h|d))+$", "maxLength": 32}
HTTP_URL = {"format": "uri", "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://", "maxLength": 2048}
HEADERS = {"maxProperties": 64, "propertyNames": {"pattern": r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"}}
HEADER_VALUE = {"pattern": r"^[\u0009\u0020-\u007e\u0080-\u00ff]*$"}
MAX_RETRIES = {"minimum": 0, "maximum": 100}
MAX_ATTEMPTS = {"minimum": 1, "maximum": 101}
BACKOFF_MULTIPLIER = {"minimum": 1, "maximum": 100}
TIMEOUT_SECONDS = {"minimum": 0.001, "maximum": 3600}
