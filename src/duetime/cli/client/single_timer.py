"""Requests about one timer, through the API that can name it."""

import re

from duetime.cli.client.platform import PlatformClient
from duetime.cli.client.v1 import V1Client, path_segment
from duetime.domain.namespace import DEFAULT_NAMESPACE

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


class SingleTimer:
    """A UUID without a namespace goes to the platform API, which shows every member of the timers
    created there. All other ids go to the v1 API."""

    def __init__(
        self, id: str, namespace: str | None, *, server: str | None, api_key: str | None
    ) -> None:
        self.is_v1 = namespace is not None or not _UUID.fullmatch(id)
        self._path = v1_timer_path(namespace, id) if self.is_v1 else f"/timers/{id}"
        self._client = V1Client(server, api_key) if self.is_v1 else PlatformClient(server, api_key)

    def request(self, method: str, *, body: object = None) -> object:
        return self._client.request(method, self._path, body=body)


def v1_timer_path(namespace: str | None, id: str) -> str:
    """The path of any timer, with its namespace and id encoded."""
    if namespace is None:
        namespace = DEFAULT_NAMESPACE
    return f"/timers/{path_segment('--namespace', namespace)}/{path_segment('ID', id)}"
