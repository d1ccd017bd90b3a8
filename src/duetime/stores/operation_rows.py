"""The text of a bulk operation, as the SQL stores keep it."""

import msgspec

from duetime.domain.bulk import BulkOperation

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(BulkOperation).decode


def operation_text(operation: BulkOperation) -> str:
    return _encode(operation).decode()


def operation_of(text: str) -> BulkOperation:
    return _decode(text)
