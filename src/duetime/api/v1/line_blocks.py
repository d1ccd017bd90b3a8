"""Cutting a stream at ends of lines."""

from collections import deque

from msgspec import Struct


class Block(Struct, frozen=True):
    """Whole lines, the first of which has this number. Without content it is one line that is
    longer than allowed; nobody keeps it."""

    first_line: int
    lines: int
    content: bytes | None


class LineBlocks:
    """Takes the chunks of a stream as they come; gives back what is complete."""

    def __init__(self, max_line_bytes: int) -> None:
        self._max_line_bytes = max_line_bytes
        self._ready: deque[Block] = deque()
        self._complete: list[bytes] = []
        self._tail: list[bytes] = []
        self._tail_bytes = 0
        self._is_skipping = False
        self._next_line = 1
        self.complete_bytes = 0
        """Of lines that are complete and not yet taken."""

    def feed(self, chunk: bytes) -> None:
        if self._is_skipping:
            _, newline, chunk = chunk.partition(b"\n")
            self._is_skipping = not newline
        end = chunk.rfind(b"\n") + 1
        if end:
            self._complete += [*self._tail, chunk[:end]]
            self.complete_bytes += self._tail_bytes + end
            self._tail, self._tail_bytes = [], 0
        self._tail.append(chunk[end:])
        self._tail_bytes += len(chunk) - end
        if self._tail_bytes > self._max_line_bytes:
            self._close_block()
            self._ready.append(self._numbered(None))
            self._tail, self._tail_bytes = [], 0
            self._is_skipping = True

    def end(self) -> None:
        """There are no more chunks: the last line is complete as it is."""
        self._complete += self._tail
        self.complete_bytes += self._tail_bytes
        self._tail, self._tail_bytes = [], 0

    def take(self) -> Block | None:
        """The next lines, if any are complete."""
        if not self._ready:
            self._close_block()
        return self._ready.popleft() if self._ready else None

    def _close_block(self) -> None:
        content = b"".join(self._complete)
        self._complete, self.complete_bytes = [], 0
        if content:
            self._ready.append(self._numbered(content))

    def _numbered(self, content: bytes | None) -> Block:
        first_line = self._next_line
        lines = 1
        if content is not None:
            lines = content.count(b"\n") + (not content.endswith(b"\n"))
        self._next_line += lines
        return Block(first_line, lines, content)
