"""The number of open descriptors, which must be told just when none is left."""

import errno
import os
import resource

import pytest

from duetime.reports import process_metrics


def test_open_files_are_those_of_the_process() -> None:
    before = process_metrics._open_files()
    with open(os.devnull), open(os.devnull):
        assert process_metrics._open_files() == before + 2


def test_a_process_without_a_descriptor_left_has_all_in_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none_left(path: object) -> list[str]:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(process_metrics, "_size_of_descriptors", lambda: 0)
    monkeypatch.setattr(os, "listdir", none_left)
    assert process_metrics._open_files() == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
