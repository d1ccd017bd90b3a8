"""The measurements of the Timer API v1, each on a store of its own."""

from bench.progress import Steps
from bench.receiver import Receiver
from bench.scale import V1Scale
from bench.server import Server
from bench.stores import Stores
from bench.v1.batches import measure_batches
from bench.v1.figures import V1Figures
from bench.v1.hanging import measure_hanging
from bench.v1.imports import measure_import
from bench.v1.pages import NAMESPACES, measure_pages
from bench.v1.retries import measure_retries

V1_MEASURES = ("batches", "import", "pages", "hanging", "retries")


def measure_v1(
    names: set[str],
    scale: V1Scale,
    stores: Stores,
    receiver: Receiver,
    steps: Steps,
    figures: V1Figures,
) -> None:
    """What was asked for and is not among the figures yet."""
    if "batches" in names:
        with steps.step("v1: batches"), stores.new_site("batches") as site:
            figures.batches = measure_batches(site, scale)
    if "import" in names:
        with steps.step("v1: import"), stores.new_site("import") as site:
            figures.imported = measure_import(site, scale)
    if "retries" in names:
        with (
            steps.step("v1: retries"),
            stores.new_site("retries") as site,
            Server(site) as server,
        ):
            figures.retries = measure_retries(server, receiver, scale)
    if "hanging" in names:
        with (
            steps.step("v1: a hanging endpoint"),
            stores.new_site("hanging") as site,
            Server(site) as server,
        ):
            figures.hanging = measure_hanging(server, scale)
    if "pages" in names and figures.pages is None:
        with stores.new_site("pages") as site:
            text = f"storing {scale.paged:,} pending and {scale.paged:,} finished timers"
            with steps.step(text):
                site.fill(scale.paged, steps, analyze=True)
            with steps.step("v1: pages"), Server(site, namespaces=NAMESPACES) as server:
                figures.pages = measure_pages(server, scale)
