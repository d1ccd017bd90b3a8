"""Supervisors and workers of different releases understand each other."""

import msgspec

from duetime.server.worker_link import WorkerDescriptors


def test_descriptors_of_an_older_supervisor_lack_what_is_new() -> None:
    old = b'{"number":2,"line":7,"listener":8,"is_alone":true}'
    descriptors = msgspec.json.decode(old, type=WorkerDescriptors)
    assert descriptors == WorkerDescriptors(2, 7, 8, True, None, None)


def test_an_older_worker_ignores_what_is_new() -> None:
    class OlderDescriptors(msgspec.Struct, frozen=True):
        number: int
        line: int
        listener: int
        is_alone: bool = False

    new = msgspec.json.encode(WorkerDescriptors(2, 7, 8, True, "/tmp/directory", 3))
    assert msgspec.json.decode(new, type=OlderDescriptors) == OlderDescriptors(2, 7, 8, True)
