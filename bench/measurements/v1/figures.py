"""All that one run finds out about the Timer API v1."""

import msgspec

from bench.measurements.v1.batches import BatchesFigures
from bench.measurements.v1.hanging import HangingFigures
from bench.measurements.v1.imports import ImportFigures
from bench.measurements.v1.pages import PagesFigures
from bench.measurements.v1.retries import RetriesFigures


class V1Figures(msgspec.Struct, kw_only=True):
    batches: BatchesFigures | None = None
    imported: ImportFigures | None = None
    pages: PagesFigures | None = None
    hanging: HangingFigures | None = None
    retries: RetriesFigures | None = None

    @property
    def is_empty(self) -> bool:
        return not any(msgspec.structs.astuple(self))

    @property
    def faults(self) -> list[str]:
        figures = (self.batches, self.imported, self.pages, self.hanging, self.retries)
        return [fault for each in figures if each for fault in each.faults]
