"""Scrapes of a real server, read by the parsers of prometheus-client."""

import httpx
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from tests.polling import PATIENCE_SECONDS
from tests.real_server.server_process import API_KEY

ACCEPT = {
    "text": "text/plain;version=0.0.4",
    "openmetrics": "application/openmetrics-text;version=1.0.0",
}

Families = dict[str, Metric]


async def scrape(url: str, form: str = "text") -> Families:
    """The families by name, as a scraper with a bearer token gets them."""
    key = {"Authorization": f"Bearer {API_KEY}"}
    async with httpx.AsyncClient(
        base_url=url, headers=key, timeout=PATIENCE_SECONDS, trust_env=False
    ) as client:
        return await scrape_by(client, form)


async def scrape_by(client: httpx.AsyncClient, form: str = "text") -> Families:
    answer = await client.get("/metrics", headers={"Accept": ACCEPT[form]})
    assert answer.status_code == 200, answer.text
    parse = parse_openmetrics if form == "openmetrics" else parse_text
    return {family.name: family for family in parse(answer.text)}


def value(families: Families, name: str, **labels: str) -> float:
    """The sum of the samples that have the labels."""
    return sum(
        sample.value
        for family in families.values()
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


def label_values(families: Families, label: str) -> set[str]:
    """All values of the label; the empty text for samples without it."""
    return {
        sample.labels.get(label, "") for family in families.values() for sample in family.samples
    }
