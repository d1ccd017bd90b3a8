"""Styles, scripts and the icon. Their address has a hash of them all, so browsers keep them."""

import gzip
from functools import cache
from hashlib import sha256
from importlib import resources

from duetime.api.http.answers import Answer

PREFIX = "/ui/static/"

_MEDIA = {
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".svg": b"image/svg+xml",
}


@cache
def _files() -> dict[str, bytes]:
    folder = resources.files("duetime.web") / "static"
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


@cache
def _compressed(name: str) -> bytes:
    return gzip.compress(_files()[name], mtime=0)


@cache
def _folder() -> str:
    digest = sha256()
    for name, content in sorted(_files().items()):
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


def static_path(name: str) -> str:
    """The address of a file. Scripts import each other by names beside their own."""
    assert name in _files(), name
    return f"{PREFIX}{_folder()}/{name}"


def static_answer(path: str, *, is_gzip: bool) -> Answer | None:
    """The file at the path, compressed if `is_gzip`; None if there is none. A path of an earlier
    release finds today's file, which is not kept."""
    folder, _, name = path.removeprefix(PREFIX).partition("/")
    content = _files().get(name)
    if content is None:
        return None
    is_current = folder == _folder()
    keeping = b"public, max-age=31536000, immutable" if is_current else b"no-cache"
    headers = (
        (b"content-type", _MEDIA[name[name.rindex(".") :]]),
        (b"x-content-type-options", b"nosniff"),
        (b"cache-control", keeping),
        (b"vary", b"accept-encoding"),
    )
    if is_gzip:
        return Answer(200, _compressed(name), (*headers, (b"content-encoding", b"gzip")))
    return Answer(200, content, headers)
