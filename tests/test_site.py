"""make site: no link is dead, nothing comes from a network, and Chromium shows and searches it from its files."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import build_site
import ncheck
import pytest
from markdown_it import MarkdownIt
from ncheck.steps.registry import OURS, load_checks
from ncheck.triage.causes import CAUSES, UNKNOWN

import docs
from tests.chromium import Browser, browsing

pytestmark = [pytest.mark.slow]

ROOT = Path(__file__).parents[1]
BLOCKS = ("h1", "h2", "h3", "h4", "li", "pre", "td", "th")
WIDTHS = (1280, 390)


class Page(HTMLParser):
    """What a page refers to and has; and the words and the number of each block within one of its elements."""

    def __init__(self, text: str, within: str = "") -> None:
        super().__init__()
        self.lang, self.links, self.loaded, self.ids = "", list[str](), list[str](), {""}
        self.words, self.blocks = list[str](), Counter[str]()
        self.within, self.inside, self.mark = within, not within, False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids.add(given.get("id", ""))
        self.lang = given["lang"] if tag == "html" else self.lang
        named = [given[name] for name in ("src", "href", "data", "poster", "srcset") if name in given]
        (self.links if tag == "a" else self.loaded).extend(named)
        self.inside = self.inside or tag == self.within
        self.blocks[tag] += self.inside and tag in BLOCKS
        self.mark = given.get("class") == "headerlink"

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag != self.within
        self.mark = False

    def handle_data(self, data: str) -> None:
        self.words += data.split() if self.inside and not self.mark else ()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("site"), {"TZ": "UTC"}, 0o022)


def made(out: Path, environ: Mapping[str, str], umask: int) -> Path:
    words = [sys.executable, str(ROOT / "release" / "build_site.py"), str(out)]
    done = subprocess.run(
        words, env={**os.environ, **environ}, umask=umask, cwd=out, capture_output=True, text=True, check=False
    )
    folder = out / ncheck.__version__
    assert (done.stderr, done.stdout) == ("", f"{folder}/index.html\n")
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    """Return every page by its path in the site."""
    return {
        str(path.relative_to(site)): Page(path.read_text(encoding="utf-8"), "article") for path in site.rglob("*.html")
    }


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    yield from browsing(tmp_path_factory.mktemp("profile"))


def dead(site: Path, pages: Mapping[str, Page], page: str, link: str) -> bool:
    """Return whether a link of a page leads to no file, or to no place in it."""
    parts = urlsplit(link)
    target = os.path.normpath(site / Path(page).parent / unquote(parts.path)) if parts.path else str(site / page)
    within = os.path.relpath(target, site)
    known = pages[within].ids if within in pages else {""}
    return within.startswith("..") or not Path(target).is_file() or unquote(parts.fragment) not in known


def test_no_link_is_dead_and_nothing_is_loaded_from_a_network(site: Path, pages: dict[str, Page]) -> None:
    assert len(pages) > 300
    assert [
        (name, link)
        for name, page in pages.items()
        for link in (*page.loaded, *(one for one in page.links if not one.startswith(("https://", "http://"))))
        if dead(site, pages, name, link)
    ] == []
    # url(data:image/svg+xml;...)
    urls = [
        (str(path.relative_to(site)), url.strip("'\""))
        for path in (*site.rglob("*.css"), *site.rglob("*.svg"))
        for url in re.findall(r"(?:url\(|@import )([^)]*)", path.read_text(encoding="utf-8"))
    ]
    assert [
        (name, url) for name, url in urls if not url.startswith(("data:", "#")) and dead(site, pages, name, url)
    ] == []


def test_every_check_and_every_cause_has_its_address(site: Path, pages: dict[str, Page]) -> None:
    checks = {check.code: check for check in load_checks().checks if check.module.startswith(f"{OURS}.")}
    assert {path.name for path in (site / "checks").iterdir()} == {*checks, "index.html"}
    assert {path.name for path in (site / "causes").iterdir()} == {*CAUSES, UNKNOWN, "index.html"}
    assert {code: pages[f"checks/{code}/index.html"].words[:2] for code in checks} == {
        code: [code, check.name] for code, check in checks.items()
    }


def test_a_page_has_the_words_lists_and_tables_that_its_document_has_on_a_forge(
    pages: dict[str, Page], tmp_path: Path
) -> None:
    build_site.write_sources(tmp_path)
    texts = {str(path.relative_to(tmp_path)): path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.md")}
    for path, address in build_site.addresses().items():
        if address in texts and (ROOT / path).is_file() and path not in (docs.CHECKS, docs.CAUSES):
            texts[address] = (ROOT / path).read_text(encoding="utf-8")
    forge = MarkdownIt("commonmark").enable("table")
    wanted = {f"{address.removesuffix('.md')}.html": Page(forge.render(text)) for address, text in texts.items()}
    assert wanted.keys() == pages.keys()
    assert [name for name, page in wanted.items() if "".join(page.words) != "".join(pages[name].words)] == []
    assert {name: page.blocks for name, page in wanted.items()} == {name: page.blocks for name, page in pages.items()}


def test_a_chinese_page_says_that_it_is_chinese(site: Path, pages: dict[str, Page]) -> None:
    chinese = {name for name, page in pages.items() if page.lang == "zh"}
    assert chinese == {"zh/index.html", "zh/pitfalls.html", "zh/containers.html"}
    assert {page.lang for name, page in pages.items() if name not in chinese} == {"en"}
    assert {name for name in pages if 'placeholder="搜索"' in (site / name).read_text(encoding="utf-8")} == chinese
    assert chinese <= {os.path.normpath(link) for link in pages["index.html"].links}


def test_another_day_folder_zone_and_user_give_the_same_bytes(site: Path, tmp_path: Path) -> None:
    other = made(tmp_path, {"TZ": "Asia/Tokyo", "SOURCE_DATE_EPOCH": "86400", "LC_ALL": "C"}, 0o027)
    first, second = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (site, other)
    )
    assert [name for name in first if first[name] != second.get(name)] == []
    assert first.keys() == second.keys()


# In Chromium


def test_no_page_is_wider_than_its_window(browser: Browser, site: Path, pages: dict[str, Page]) -> None:
    longest = [max((name for name in pages if name.startswith(kind)), key=lambda name: max(map(len, pages[name].words)))
               for kind in ("checks/NC", "causes/")]  # fmt: skip
    wide = {}
    browser.ask("Network.setBlockedURLs", urls=["*/search/search_index.js"])  # each page would index the whole site
    for name in sorted({*(one for one in pages if not one.startswith(("checks/NC", "causes/"))), *longest}):
        browser.open(site / name, width=WIDTHS[0])
        for width in WIDTHS:
            browser.resize(width)
            if (edge := browser.value("document.documentElement.scrollWidth")) > width:
                wide[name, width] = edge
    browser.ask("Network.setBlockedURLs", urls=[])
    assert wide == {}


def test_a_page_is_dark_where_the_reader_wants_it(browser: Browser, site: Path) -> None:
    seen: dict[str, list[str]] = {}
    for wanted in ("light", "dark", "light"):
        browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": wanted}])
        browser.open(site / "index.html")
        style = "getComputedStyle(document.body)"
        colors = [browser.value(f"{style}.{name}") for name in ("color", "backgroundColor")]
        seen.setdefault(wanted, colors)
        assert seen[wanted] == colors
    bright = {wanted: [sum(map(int, re.findall(r"\d+", one)[:3])) for one in colors] for wanted, colors in seen.items()}
    assert bright["light"][0] < bright["light"][1]
    assert bright["dark"][0] > bright["dark"][1]


FOUND = """new Promise(done => {
    const list = document.querySelector('.md-search-result__list')
    const before = list.querySelector('a')?.getAttribute('href')
    new MutationObserver(() => {
        const links = [...list.querySelectorAll('a')].map(one => one.getAttribute('href'))
        if (links.length && links[0] !== before) done(links)
    }).observe(list, {childList: true, subtree: true})
    const box = document.querySelector('.md-search__input')
    box.focus()
    box.value = WORD
    box.dispatchEvent(new Event('keyup', {bubbles: true}))
})"""


def test_a_word_is_found_without_a_server(browser: Browser, site: Path) -> None:
    browser.open(site / "zh" / "containers.html")  # whose search reads the index of the whole site, once
    words = {
        "Polling": "checks/NC402/index.html",
        "wrong_nic": "causes/wrong_nic/index.html",
        "网桥": "zh/pitfalls.html",
    }
    firsts = {word: urlsplit(browser.value(FOUND.replace("WORD", json.dumps(word)))[0]) for word in words}
    assert {word: first._replace(query="", fragment="").geturl() for word, first in firsts.items()} == {
        word: (site / page).as_uri() for word, page in words.items()
    }
    asked = [event["params"]["request"]["url"] for event in browser.events
             if event.get("method") == "Network.requestWillBeSent"]  # fmt: skip
    assert [url for url in asked if not url.startswith(("file:///", "data:"))] == []
    wrong = ("Runtime.exceptionThrown", "Log.entryAdded")
    assert [event for event in browser.events if event.get("method") in wrong] == []
