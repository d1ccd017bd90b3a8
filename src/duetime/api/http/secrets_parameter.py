"""The query parameter that shows the secrets of callbacks."""

from collections.abc import Mapping

from starlette.types import Scope

from duetime.api.http.caller import caller_of
from duetime.api.http.operation import Parameter
from duetime.api.http.query import choice, parameters
from duetime.domain.security.access import Role

READ_SECRETS = "secrets.read"
"""The word for it in the audit log."""

NAME = "secrets"
SECRETS = Parameter(
    NAME,
    "Show the secrets of callbacks: values of headers such as `Authorization`, and passwords in "
    "URLs. Otherwise they are `[redacted]`. Needs the role `admin`, and leaves an entry in the "
    "audit log.",
    {"type": "boolean", "default": False},
)

_CHOICES = {"false": False, "true": True}
_ALONE = frozenset({NAME})


def asks_for_secrets(scope: Scope, given: Mapping[str, str] | None = None) -> bool:
    """Whether the answer has to show secrets. `given` are the parameters of the query; without
    them the operation takes no others. A request that asks for secrets gets into the audit log,
    even if it is refused. Raises `InvalidInput` and `Forbidden`."""
    if given is None:
        given = parameters(scope["query_string"], _ALONE)
    wanted = choice(NAME, given.get(NAME, "false"), _CHOICES)
    if wanted:
        caller = caller_of(scope)
        caller.action = READ_SECRETS
        caller.check_role(Role.ADMIN)
    return wanted
