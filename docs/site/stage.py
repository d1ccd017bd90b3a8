"""Stage the documentation for the generator of its site: `python docs/site/stage.py DIRECTORY`.

The pages in docs/ are written to be read in the repository, and some link to files outside docs/. A
site shows only what is below its own directory, so those files become pages too. The navigation is
the map in docs/index.md: a heading is a tab, and the links below it are its pages. A folder may
have a map of its own, its index.md.
"""

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TypeAlias

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = {".json": "json", ".py": "python", ".sh": "sh", ".toml": "toml", ".yaml": "yaml"}
INDEXES = ("index.md", "README.md")

_FENCE_OR_LINK = re.compile(
    r"^(?P<indent> *)(?P<fence>```+).*?^(?P=indent)(?P=fence) *$|\]\((?P<link>[^)\s]+)\)",
    re.MULTILINE | re.DOTALL,
)
_ELSEWHERE = re.compile(r"[a-z]+:|#")
_MAPPED = re.compile(r"(?:- |\| )\[[^\]]*\]\(([^)#\s]+)\)")
_DIAGRAM = re.compile(r"^```mermaid$.*?^```$", re.MULTILINE | re.DOTALL)

Entry: TypeAlias = "str | Mapping[str, Sequence[Entry]]"
"""A page of the navigation, or the title and the pages of a folder."""


class Faulty(Exception):
    """The documentation cannot become a site. The message names the page and says why."""


class Staging:
    """The documentation of one repository, and the pages that it becomes."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._docs = root / "docs"
        self._map = self._docs / "index.md"

    def write(self, directory: Path) -> None:
        """Replace `pages` and `zensical.toml` in the directory; raises Faulty before it writes."""
        texts = self._texts()
        navigation = self._navigation()
        pages = directory / "pages"
        shutil.rmtree(pages, ignore_errors=True)
        shutil.copytree(self._docs, pages, ignore=shutil.ignore_patterns("*.md", "site"))
        for name, text in texts.items():
            (pages / name).parent.mkdir(parents=True, exist_ok=True)
            (pages / name).write_text(text, encoding="utf-8")
        site = self._docs / "site"
        for asset in ("icon.svg", "site.css"):
            shutil.copy(site / asset, pages)
        (pages / "mermaid.js").write_bytes((files("mermaidx") / "assets/mermaid.js").read_bytes())
        config = (site / "zensical.toml").read_text(encoding="utf-8")
        (directory / "zensical.toml").write_text(
            config.replace("nav = []\n", navigation), encoding="utf-8"
        )

    def _texts(self) -> dict[Path, str]:
        """Every page by its path in the site: all of docs/, and everything they link to."""
        texts: dict[Path, str] = {}
        waiting = sorted(self._docs.rglob("*.md"))
        while waiting:
            file = waiting.pop()
            name = self._staged(file)
            if name in texts or name.suffix != ".md":
                continue
            texts[name] = self._page(file) if file.suffix == ".md" else self._shown(file)
            if file.suffix == ".md":
                waiting += [target for _, target in self._links(file)]
            elif file.is_dir():
                waiting += shown_files(file)
        return texts

    def _staged(self, file: Path) -> Path:
        """Path of the file below the pages of the site."""
        if file.is_relative_to(self._docs):
            return file.relative_to(self._docs)
        name = "project" / file.relative_to(self._root)
        if file.is_dir():
            return name / "index.md"
        return name if name.suffix == ".md" else name.with_name(f"{name.name}.md")

    def _links(self, page: Path) -> Iterator[tuple[re.Match[str], Path]]:
        """Links outside blocks of code that lead to files, and these files."""
        for match in _FENCE_OR_LINK.finditer(page.read_text(encoding="utf-8")):
            if not match["link"] or _ELSEWHERE.match(match["link"]):
                continue
            target = (page.parent / match["link"].partition("#")[0]).resolve()
            if not target.exists() or not target.is_relative_to(self._root):
                raise Faulty(
                    f"{page.relative_to(self._root)} links to {match['link']}, which is not there"
                )
            readme = target / "README.md"
            yield match, readme if readme.exists() else target

    def _page(self, page: Path) -> str:
        """The page with links that are right where it is staged."""
        text = page.read_text(encoding="utf-8")
        here = self._staged(page)
        for match, target in reversed(list(self._links(page))):
            link = os.path.relpath(self._staged(target), here.parent)
            anchor = "".join(match["link"].partition("#")[1:])
            text = text[: match.start("link")] + link + anchor + text[match.end("link") :]
        text, diagrams = _DIAGRAM.subn(r'<div class="diagram" markdown>\n\n\g<0>\n\n</div>', text)
        if diagrams:
            # Without it the theme would fetch the script from elsewhere. A page is a directory.
            up = "../" * (len(here.parts) - (here.name in INDEXES))
            text += f'\n<script src="{up}mermaid.js"></script>\n'
        return text

    def _shown(self, file: Path) -> str:
        """A page that shows a file as it is, or lists the files of a directory."""
        heading = f"# {file.relative_to(self._root)}\n\n"
        if file.is_dir():
            names = [str(each.relative_to(file)) for each in shown_files(file)]
            return heading + "".join(f"- [{name}]({name}.md)\n" for name in names)
        text = file.read_text(encoding="utf-8", errors="replace").rstrip()
        return f"{heading}````{LANGUAGES.get(file.suffix, 'text')}\n{text}\n````\n"

    def _navigation(self) -> str:
        """The tabs and their pages, as TOML. Each page of docs/ must be on a map."""
        tabs: dict[str, list[Entry]] = {}
        for line in self._map.read_text(encoding="utf-8").splitlines():
            if line.startswith("## "):
                tabs[line.removeprefix("## ").strip()] = []
            elif tabs and (link := _MAPPED.match(line)):
                list(tabs.values())[-1].append(self._entry((self._docs / link[1]).resolve()))
        text = "".join(f"  {{ {json.dumps(tab)} = {toml(tabs[tab])} }},\n" for tab in tabs)
        for page in sorted(self._docs.rglob("*.md")):
            if page != self._map and json.dumps(str(self._staged(page))) not in text:
                raise Faulty(
                    f"{page.relative_to(self._root)} is not on the map: "
                    "add it to a list in docs/index.md, or in the index.md of its folder"
                )
        return f'nav = [\n  {{ "Home" = "index.md" }},\n{text}]\n'

    def _entry(self, file: Path) -> Entry:
        """A page, or the pages of a folder whose index.md is a map of its own."""
        name = str(self._staged(file))
        if file.name != "index.md" or not file.is_relative_to(self._docs):
            return name
        lines = file.read_text(encoding="utf-8").splitlines()
        links = filter(None, map(_MAPPED.match, lines))
        found = [(file.parent / link[1]).resolve() for link in links]
        below = [each for each in found if each.is_relative_to(file.parent) and each != file]
        title = next((line[2:] for line in lines if line.startswith("# ")), name)
        return {title: [name, *(self._entry(each) for each in below if each.exists())]}


def toml(entries: Sequence[Entry]) -> str:
    """An array of pages and of folders."""
    items = (
        json.dumps(entry)
        if isinstance(entry, str)
        else "".join(f"{{ {json.dumps(title)} = {toml(inner)} }}" for title, inner in entry.items())
        for entry in entries
    )
    return f"[{', '.join(items)}]"


def shown_files(directory: Path) -> list[Path]:
    """The files below a directory that are worth a page: no caches, nothing hidden."""
    return sorted(
        file
        for file in directory.rglob("*")
        if file.is_file()
        and not any(part.startswith((".", "__")) for part in file.relative_to(directory).parts)
    )


if __name__ == "__main__":
    try:
        Staging(ROOT).write(Path(sys.argv[1]))
    except Faulty as fault:
        sys.exit(str(fault))
