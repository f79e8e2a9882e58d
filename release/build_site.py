"""Write the documents as a site that needs no server and no network: `make site`.

    python release/build_site.py OUT      OUT/VERSION/index.html; what was in OUT/VERSION goes

MkDocs with its theme Material makes the pages, as mkdocs.yml says, from a folder that is written here: the documents
under the addresses of a site, and one page for each check and each cause, from the registries of the program. A link
that leads nowhere stops it. The same commit and the same packages give the same bytes: no page has a time.
"""

from __future__ import annotations

import argparse
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import ncheck
from ncheck import Check
from ncheck.triage.causes import NAMED, page_of

from docs import CAUSES, CHECKS, TREE, checks_by_topic, table_of_topic

CONFIG = TREE / "release" / "mkdocs.yml"
THEME = TREE / "release" / "theme"
EXAMPLES = "docs/examples"
CHINESE = ".zh-CN.md"
# Those that have an address of their own; any other file of docs/ keeps its name.
_ADDRESSES = {
    "README.md": "index.md", f"README{CHINESE}": "zh/index.md", "LICENSE": "LICENSE.txt",
    "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md",
    CHECKS: "checks/index.md", CAUSES: "causes/index.md",
}  # fmt: skip
_NO_PAGES = ("404.html", "sitemap.xml", "sitemap.xml.gz")  # for a server at a known address

# ```text ... ```   |   a mark of make docs   |   a row of a table   |   [the guide](docs/guide.md#nodes)
_FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_MARK = re.compile(r"^<!-- .*? -->\n", re.MULTILINE)
_CELLS = re.compile(r"^\|.*\|$", re.MULTILINE)
_CODE = re.compile(r"`[^`\n]+`")  # in which MkDocs, unlike a forge, shows the \\ of an escaped |
_LINK = re.compile(r"\]\((?P<path>[^)\s:#]+)(?:#(?P<anchor>[^)]*))?\)")


def build(out: Path) -> Path:
    """Write the site into a folder that is named after the version, and return it."""
    made = out.absolute() / ncheck.__version__
    shutil.rmtree(made, ignore_errors=True)
    with TemporaryDirectory() as name:
        folder = Path(name, "docs")
        write_sources(folder)
        config = Path(name, "mkdocs.yml")
        wanted = {"INHERIT": str(CONFIG), "docs_dir": str(folder), "theme": {"custom_dir": str(THEME)}}
        config.write_text(json.dumps(wanted), encoding="utf-8")  # JSON is YAML
        environ = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # Material's note on its own end, in 2027
        words = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "-f", str(config), "-d", str(made)]
        if (code := subprocess.run(words, check=False, env=environ).returncode) != 0:
            raise SystemExit(f"build_site: mkdocs ended with {code}")
    for page in _NO_PAGES:
        (made / page).unlink(missing_ok=True)
    return made


def write_sources(folder: Path) -> None:
    """Write the folder that MkDocs reads."""
    for path, address in addresses().items():
        target = folder / address
        target.parent.mkdir(parents=True, exist_ok=True)
        if (TREE / path).is_dir():
            target.write_text(_examples(path), encoding="utf-8")
        elif path not in (CHECKS, CAUSES):
            if address.endswith(".md"):
                target.write_text(_page(path), encoding="utf-8")
            else:
                shutil.copyfile(TREE / path, target)
    for address, text in (*_checks(), *_causes()):
        target = folder / address
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


@cache
def addresses() -> dict[str, str]:
    """Return the path in the site of each document, and of each folder of examples, by its path in the tree."""
    found = dict(_ADDRESSES)
    for path in sorted((TREE / "docs").rglob("*")):
        name = str(path.relative_to(TREE))
        address = name.removeprefix("docs/")
        if path.is_dir():
            if name.startswith(f"{EXAMPLES}/") and path.parent == TREE / EXAMPLES:
                found[name] = f"{address}/index.md"
        elif name.endswith(CHINESE):
            found[name] = f"zh/{address.removesuffix(CHINESE)}.md"
        else:
            found.setdefault(name, address)
    return found


def _page(path: str) -> str:
    """Return a document with the links of the site, and without what a reader does not see."""
    text = (TREE / path).read_text(encoding="utf-8")
    parts, at = [], 0
    for fence in (*_FENCE.finditer(text), None):
        prose = _MARK.sub("\n", text[at : fence.start() if fence else len(text)])
        prose = _CELLS.sub(lambda row: _CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0]), prose)
        parts += [_LINK.sub(lambda link: _link(path, link), prose), fence[0] if fence else ""]
        at = fence.end() if fence else at
    return ("---\nlang: zh\n---\n\n" if path.endswith(CHINESE) else "") + "".join(parts)


def _link(path: str, link: re.Match[str]) -> str:
    known, here = addresses(), addresses()[path]
    wanted = posixpath.normpath(posixpath.join(posixpath.dirname(path), link["path"]))
    anchor = link["anchor"] or ""
    if wanted not in known:
        raise SystemExit(f"build_site: {path} links to {link['path']}, which the site does not have")
    target = known[wanted]
    if anchor and wanted in (CHECKS, CAUSES):
        name = anchor.upper() if wanted == CHECKS else anchor
        target, anchor = posixpath.join(posixpath.dirname(target), name, "index.md"), ""
    relative = posixpath.relpath(target, posixpath.dirname(here) or ".")
    return f"]({relative}{anchor and '#'}{anchor})"


def _checks() -> Iterator[tuple[str, str]]:
    topics = checks_by_topic()
    parts = [f"# Checks\n\n{sum(map(len, topics.values()))} checks. `ncheck list` prints them in a terminal.\n"]
    for topic, members in topics.items():
        parts.append(table_of_topic(topic, members, "{}/index.md".format))
        yield from ((f"checks/{check.code}/index.md", _check(topic, check)) for check in members)
    yield "checks/index.md", "\n".join(parts)


def _check(topic: str, check: Check) -> str:
    title, _, rest = check.page.strip().partition("\n")
    return (
        f"# {check.code} {check.name}\n\n{title} ({check.severity.value}).\n\n{rest.strip()}\n\n---\n\n"
        f"[{topic}](../index.md), `ncheck explain {check.code}`\n"
    )


def _causes() -> Iterator[tuple[str, str]]:
    rows = []
    for name, cause in NAMED.items():
        rows.append(f"| [{name}]({name}/index.md) | {cause.meaning} |\n")
        text = f"# {name}\n\n{page_of(cause)}"
        yield f"causes/{name}/index.md", f"{text}\n---\n\n[Causes](../index.md)\n"
    head = "# Causes\n\nWhat `ncheck triage` answers: one cause is one repair.\n\n| cause | meaning |\n|---|---|\n"
    yield "causes/index.md", head + "".join(rows)


def _examples(path: str) -> str:
    """Return a page with each file of a folder of examples."""
    parts = [f"# {path.removeprefix('docs/')}\n"]
    for file in sorted((TREE / path).rglob("*")):
        if file.is_file():
            name = file.relative_to(TREE / path)
            parts.append(
                f"## {name}\n\n[{name}]({name})\n\n````text\n{file.read_text(encoding='utf-8').rstrip()}\n````\n"
            )
    return "\n".join(parts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    sys.stdout.write(f"{build(parser.parse_args().out)}/index.html\n")
