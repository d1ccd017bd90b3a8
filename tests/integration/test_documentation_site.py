"""The site of the documentation: faults that fail its build, and its pages beside GitHub's."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.documentation_site import ROOT, build_site, small_repository

MAP = "# Map\n\n## Pages\n\n- [A](a.md)\n"
COUNTED = {"li", "ol", "pre", "td", "ul"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("site")
    built = build_site(directory)
    assert built.returncode == 0, built.stdout + built.stderr
    return directory / "site"


@pytest.mark.parametrize(
    ("pages", "complaint"),
    [
        ({"a": "# A\n", "b": "# B\n"}, "docs/b.md is not on the map"),
        ({"a": "# A\n\n[b](b.md)\n"}, "docs/a.md links to b.md, which is not there"),
        ({"a": "# A\n\n![b](b.png)\n"}, "docs/a.md links to b.png, which is not there"),
        ({"a": "# A\n\n[b](../../b.md)\n"}, "docs/a.md links to ../../b.md, which is not there"),
        ({"a": "# A\n\n[b](#b)\n"}, "anchor does not exist"),
        ({"a": "# A\n\n[b](index.md#b)\n"}, "anchor does not exist"),
    ],
)
def test_a_fault_fails_the_build_and_is_named(
    tmp_path: Path, pages: dict[str, str], complaint: str
) -> None:
    root = small_repository(tmp_path / "repository", index=MAP, **pages)
    built = build_site(tmp_path / "build", root)
    assert built.returncode != 0
    assert complaint in built.stdout + built.stderr


def test_a_folder_with_a_map_of_its_own_is_one_entry(tmp_path: Path) -> None:
    root = small_repository(
        tmp_path / "repository", index=f"{MAP}- [More](more/index.md)\n", a="# A\n"
    )
    (root / "docs" / "more").mkdir()
    (root / "docs" / "more" / "index.md").write_text("# More\n\n- [B](b.md)\n- [Up](../index.md)\n")
    (root / "docs" / "more" / "b.md").write_text("# B\n")
    built = build_site(tmp_path / "build", root)
    assert built.returncode == 0, built.stdout + built.stderr
    navigation = (tmp_path / "build" / "zensical.toml").read_text()
    assert '["a.md", { "More" = ["more/index.md", "more/b.md"] }]' in navigation
    (root / "docs" / "more" / "c.md").write_text("# C\n")
    assert "docs/more/c.md is not on the map" in build_site(tmp_path / "build", root).stderr


def test_files_of_the_repository_that_are_linked_become_pages(tmp_path: Path) -> None:
    root = small_repository(
        tmp_path / "repository",
        index=f"{MAP}- [Examples](../examples)\n- [Notes](../NOTES.md)\n",
        a="# A\n\n[code](../examples/b.py)\n\n```\n[no link](nowhere.md)\n```\n",
    )
    (root / "examples").mkdir()
    (root / "examples" / "b.py").write_text("print('hello')\n")
    (root / "NOTES.md").write_text("# Notes\n\n[back](docs/a.md)\n")
    built = build_site(tmp_path / "build", root)
    assert built.returncode == 0, built.stdout + built.stderr
    site = tmp_path / "build" / "site"
    assert "../project/examples/b.py/" in (site / "a/index.html").read_text()
    assert "hello" in (site / "project/examples/b.py/index.html").read_text()
    assert "b.py/" in (site / "project/examples/index.html").read_text()
    assert "../../a/" in (site / "project/NOTES/index.html").read_text()


class Elements(HTMLParser):
    """Counts elements, and finds what a page fetches from other hosts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.counts = dict.fromkeys(COUNTED, 0)
        self.fetched: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in COUNTED:
            self.counts[tag] += 1
        given = dict(attrs)
        source = given.get("src") or (given.get("href") if tag == "link" else None)
        if source and re.match(r"(https?:)?//", source):
            self.fetched.append(source)


def test_pages_have_the_lists_tables_and_code_that_the_repository_shows(site: Path) -> None:
    """Python-Markdown reads some lists and blocks of code differently from GitHub."""
    github = MarkdownIt("commonmark").enable("table")
    for page in sorted((ROOT / "docs").rglob("*.md")):
        name = page.relative_to(ROOT / "docs").with_suffix("")
        file = site / (name.parent if name.name == "index" else name) / "index.html"
        article = re.search(r"<article.*?</article>", file.read_text(encoding="utf-8"), re.DOTALL)
        assert article, file
        expected = Elements(github.render(page.read_text(encoding="utf-8"))).counts
        assert Elements(article[0]).counts == expected, (
            f"{name}.md is shown differently on the site: put a blank line before a list,"
            " and indent what is inside its items by four spaces"
        )


def test_pages_fetch_nothing_from_other_hosts(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 50
    assert {source for page in pages for source in Elements(page.read_text()).fetched} == set()
