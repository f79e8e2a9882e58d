"""The documents agree with the program: its output, its options, its checks, its files."""

from __future__ import annotations

import importlib.util
import re
import shlex
import shutil
import subprocess
from functools import cache
from itertools import takewhile
from pathlib import Path
from types import ModuleType

import click
import pytest
from ncheck.cli.main import commands
from ncheck.glossary import found
from ncheck.settings.file import read_settings_file
from ncheck.settings.options import OPTIONS
from ncheck.steps.registry import load_checks
from ncheck.triage.log_clues import clues_in

from tests.commands import command_of, names

TREE = Path(__file__).parents[1]
PAGES = {
    str(path.relative_to(TREE)): path.read_text(encoding="utf-8")
    for path in (*TREE.glob("README*.md"), TREE / "CONTRIBUTING.md", *sorted((TREE / "docs").glob("*.md")))
}
README, GUIDE, CHECKS = PAGES["README.md"], PAGES["docs/guide.md"], PAGES["docs/checks.md"]
CHINESE = sorted(page for page in PAGES if page.endswith(".zh-CN.md"))


@cache
def generator() -> ModuleType:
    """Return release/docs.py, which is no part of a package."""
    spec = importlib.util.spec_from_file_location("release_docs", TREE / "release" / "docs.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def generated() -> dict[str, str]:
    made: dict[str, str] = generator().documents()
    return made


@pytest.mark.slow
@pytest.mark.parametrize("path", [*generator().WITH_BLOCKS, "docs/checks.md", "docs/coverage.md"])
def test_a_document_shows_what_the_program_says_now(path: str) -> None:
    assert PAGES[path] == generated()[path], f"{path} is out of date: make docs"


def test_the_arguments_in_python_are_those_of_the_rows_of_the_settings() -> None:
    written = (TREE / "doctor" / "ncheck" / "settings" / "given.py").read_text(encoding="utf-8")
    assert written == generator().given_module(), "out of date: make docs"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "words"),
    [("replay", "healthy-4x8-h100 NC201"), ("replay", "no-such NC201"), ("triage", "LICENSE"), ("read", "LICENSE")],
)
def test_output_that_the_program_does_not_print_stops_make_docs(kind: str, words: str) -> None:
    with pytest.raises(SystemExit, match=words.split(maxsplit=1)[0]):
        generator().KINDS[kind](*words.split())


@pytest.mark.slow
def test_the_manual_page_is_what_the_commands_say() -> None:
    written = (TREE / "docs" / "ncheck.1").read_text(encoding="utf-8")
    assert written == generated()["docs/ncheck.1"], "out of date: make docs"
    options = {word for word in known_options() if word.startswith("--")}
    assert {word for word in options if word.replace("-", "\\-") not in written} == set()


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_groff_reads_the_manual_page_without_a_warning() -> None:
    argv = ["groff", "-man", "-Tutf8", "-P-cbou", "-ww", str(TREE / "docs" / "ncheck.1")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "EXIT STATUS" in done.stdout


@pytest.mark.ssh
def test_the_picture_is_what_the_demo_prints_in_a_terminal() -> None:
    make = generator()
    shown = (TREE / "docs" / "demo.svg").read_text(encoding="utf-8")
    assert make.words_of(shown) == make.words_of(make.picture()), "out of date: make docs"


def test_the_picture_fetches_nothing() -> None:
    shown = (TREE / "docs" / "demo.svg").read_text(encoding="utf-8")
    assert re.findall(r"""(?:href|src|url)\s*[=(]\s*["']?(?!#)([^"')\s]+)""", shown) == []


def test_readme_is_short_and_shows_the_picture_and_the_two_commands_and_leads_to_the_chinese_one() -> None:
    assert len(README.splitlines()) <= 150
    assert "](docs/demo.svg)" in README
    assert "](README.zh-CN.md)" in README[:100]
    for line in ("    make run  ", "    make test  "):
        assert line in README


def known_options() -> set[str]:
    """Return every option of every command."""
    context = click.Context(commands)
    found = {"--help", "--version"}
    for name in commands.list_commands(context):
        command = commands.get_command(context, name)
        assert command
        found.update(word for option in command.params for word in (*option.opts, *option.secondary_opts))
    return found


@pytest.mark.parametrize("page", ["README.md", "README.zh-CN.md", "docs/guide.md"])
def test_every_option_that_a_page_names_is_there(page: str) -> None:
    ours = re.sub(r"```.*?```", "", PAGES[page], flags=re.DOTALL)
    lines = [line for line in ours.splitlines() if not re.search("pip install|horovodrun", line)]
    # `--connect-timeout 15`
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", "\n".join(lines)))
    assert named - known_options() == set()


@pytest.mark.parametrize("name", ["check", "plan", "launch", "probe", "replay", "local", "verdict"])
def test_every_option_of_a_command_is_in_the_guide(name: str) -> None:
    command = commands.get_command(click.Context(commands), name)
    assert command
    options = {word for option in command.params for word in option.opts if word.startswith("-")}
    short = {"--port", "--user"}  # -p and -l stand for these
    assert {word for word in options - short if word not in GUIDE} == set()


COMMAND_PAGES = [
    "README.md", "CONTRIBUTING.md",
    *(f"docs/{name}.md" for name in ("guide", "integrations", "operations", "containers", "pitfalls", "api")), *CHINESE,
]  # fmt: skip


@pytest.mark.parametrize("page", COMMAND_PAGES)
def test_every_command_that_a_page_names_is_there(page: str) -> None:
    # ncheck replay trouble/
    named = set(re.findall(r"^ +(?:python3 )?ncheck(?:\.pyz)? ([a-z]+)(?: |$)", PAGES[page], re.MULTILINE))
    assert named <= set(commands.list_commands(click.Context(commands)))


def typed_commands(page: str) -> list[list[str]]:
    """Return the words of each ncheck command of a page, up to what the shell does with it, but of no PLACEHOLDER."""
    text = re.sub(r"<!-- make docs.*?<!-- end -->", "", PAGES[page], flags=re.DOTALL)
    scripts = "\n".join(re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL))
    #     ncheck nodes.txt && torchrun ...   |   `ncheck plan --for env`
    found = [*re.findall(r"^ {4}(ncheck .*)$", text, re.MULTILINE), *re.findall(r"`(ncheck [^`]*)`", text)]
    found += re.findall(r"^(ncheck .*)$", scripts, re.MULTILINE)
    commands = []
    for line in found:
        lexer = shlex.shlex(line.replace("$(date +%F)", "date"), posix=True, punctuation_chars="|&;<>")
        lexer.whitespace_split = True
        _, *words = takewhile(lambda word: not set(word) <= set("|&;<>"), lexer)
        if not re.search(r"\b[A-Z]{4,}\b", line):
            commands.append(words)
    return commands


def ncheck_context() -> click.Context:
    return commands.make_context("ncheck", [], resilient_parsing=True)  # with the names of --help, which click keeps


@pytest.mark.parametrize("page", COMMAND_PAGES)
def test_every_command_line_of_a_page_can_be_typed(page: str) -> None:
    for words in typed_commands(page):
        name, args = (words[0], words[1:]) if words and words[0] in names() else ("check", words)
        command = command_of(name)
        try:
            context = command.make_context(name, list(args), parent=ncheck_context())
        except click.exceptions.Exit:  # --help
            continue
        except click.MissingParameter:  # `ncheck explain` in a sentence is its name
            assert not args
            continue
        except click.ClickException as error:
            pytest.fail(f"{page}: ncheck {shlex.join(words)}: {error.format_message()}")
        for option, value in context.params.items():
            if value not in (None, ()) and option in OPTIONS:
                OPTIONS[option].read(value)  # raises ValueError


def test_every_command_is_in_the_guide() -> None:
    missing = [name for name in commands.list_commands(click.Context(commands)) if f"ncheck {name}" not in GUIDE]
    assert missing == []


def test_the_settings_file_in_the_guide_can_be_used(tmp_path: Path) -> None:
    blocks = re.findall(r"^```toml\n(.*?)^```", GUIDE, flags=re.DOTALL | re.MULTILINE)
    (tmp_path / "ncheck.toml").write_text("\n".join(blocks))
    file = read_settings_file("ncheck.toml", {}, tmp_path)
    assert {"port", "setup", "ignore"} <= set(file.values)
    assert [nodes for nodes, _ in file.hosts] == ["node[01-04]"]
    assert [check.code for check in file.checks] == ["X001"]


def test_every_check_has_its_anchor_and_its_page() -> None:
    for check in load_checks().checks:
        assert f'<a id="{check.code.lower()}"></a>\n\n### {check.code} {check.name}\n' in CHECKS


def test_every_link_in_the_documents_leads_somewhere() -> None:
    for page, text in PAGES.items():
        # [docs/checks.md](docs/checks.md#nc111)
        prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", prose):
            file = (TREE / page).parent / target if target else TREE / page
            assert file.exists(), f"{page}: {target}"
            if anchor and file.suffix == ".md":
                assert anchor in anchors(file.resolve()), f"{page}: {target}#{anchor}"


@cache
def anchors(page: Path) -> set[str]:
    """Return what a link into a page may name: explicit anchors, and headings in the form in which they are linked."""
    text = page.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings)
    return {*re.findall(r'<a id="([\w-]+)">', text), *plain}


@pytest.mark.parametrize(
    "page",
    ["README.md", "docs/guide.md", "docs/integrations.md", "docs/containers.md", "docs/architecture.md", *CHINESE],
)
def test_a_code_stands_beside_its_own_name(page: str) -> None:
    names = {check.code: check.name for check in load_checks().checks}
    # [connection-refused](docs/checks.md#nc111)
    for name, code in re.findall(r"\[([a-z0-9-]+)\]\([\w/.]*checks\.md#(nc\d+)\)", PAGES[page]):
        assert names[code.upper()] == name


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_every_file_that_a_page_names_is_there(page: str) -> None:
    # | `doctor/ncheck/inventory/` | which nodes | connect |
    named = set(re.findall(r"`((?:doctor|checks|tests|fixtures|docs|release|bench)/[\w./]*)`", PAGES[page]))
    assert {path for path in named if not (TREE / path).exists()} == set()
    assert len(named) > 10


def test_the_line_that_shows_the_free_codes_of_a_topic_shows_none_that_is_used_or_retired() -> None:
    (line,) = re.findall(r"^comm .*", PAGES["CONTRIBUTING.md"], re.MULTILINE)
    shown = subprocess.run(["bash", "-c", line], cwd=TREE, capture_output=True, text=True, check=True)
    used = {check.code for check in load_checks().checks} | {"NC630", "NC631"}
    assert (shown.stderr, shown.stdout.split()) == ("", [f"NC{at}" for at in range(600, 700) if f"NC{at}" not in used])


def test_the_lists_that_a_change_may_need_are_where_the_page_says() -> None:
    # | a fix that is typed | `TYPED` or `NOT_TYPED` in `tests/lab/fixes.py`: why | `tests/checks/test_all_checks.py` |
    named = re.findall(r"((?:`[A-Z_]+`(?: or )?)+) in `(tests/\S+)`", PAGES["CONTRIBUTING.md"])
    lists = {
        name: (TREE / file).read_text(encoding="utf-8") for names, file in named for name in names.split("`")[1::2]
    }
    assert len(lists) == 6
    assert [name for name, text in lists.items() if not re.search(rf"^{name}\b.* = ", text, re.MULTILINE)] == []


@pytest.mark.slow
def test_the_errors_that_the_pitfalls_list_lead_to_a_check_or_a_cause_of_their_story() -> None:
    page, registry = PAGES["docs/pitfalls.md"], load_checks()
    stories = dict(re.findall(r'<a id="([\w-]+)">(.*?)(?=<a id=|\Z)', page, re.DOTALL))
    # | `orted: command not found` | [mpirun finds no orted](#orted) |
    rows = re.findall(r"^\| (.*) \| \[.*\]\(#([\w-]+)\) \|$", page, re.MULTILINE)
    astray = [
        error
        for seen, anchor in rows
        for error in re.findall("`(.*?)`", seen)
        if not any(word in stories[anchor] for word in [*found(registry, error), *causes_of(error)])
    ]
    assert (astray, {anchor for _, anchor in rows}) == ([], set(stories))


def causes_of(error: str) -> list[str]:
    return [clue.cause for clue in clues_in([error])]


# Chinese pages


def blocks(text: str) -> list[str]:
    """Return fenced blocks, marks of `make docs`, and indented commands without their remarks, in order."""
    found = re.findall(r"^```.*?^```$|^<!-- (?:make docs: .*?|end) -->$|^ {4}\S[^\n]*$", text, re.DOTALL | re.MULTILINE)
    #     ncheck -H node01,node02      # nodes by name
    return [re.sub(r" +# .*", "", one) if one.startswith("    ") else one for one in found]


def inline_commands(text: str) -> list[str]:
    return sorted(re.findall(r"`(ncheck [^`]*)`", text))


def links(text: str) -> list[str]:
    """Return what links lead to, sorted: sentences differ in their order, and headings in their words."""
    return sorted(re.sub(r"(^|\.zh-CN\.md)#.*", r"\1#", link) for link in re.findall(r"\]\(([^)]+)\)", text))


def in_chinese(page: str, link: str) -> str:
    """Return where the Chinese page leads where the English one has this link: to a Chinese page if there is one."""
    if link.endswith(".zh-CN.md"):  # the other language
        return link.replace(".zh-CN.md", ".md")
    # ../README.md   |   containers.md#pods
    sibling = re.sub(r"\.md(#?).*", r".zh-CN.md\1", link)
    return sibling if (TREE / page).parent.joinpath(sibling.rstrip("#")).is_file() else link


@pytest.mark.parametrize("page", CHINESE)
def test_a_chinese_page_has_the_commands_blocks_and_links_of_the_english_one(page: str) -> None:
    english, chinese = PAGES[page.replace(".zh-CN.md", ".md")], PAGES[page]
    assert blocks(chinese) == blocks(english)
    assert inline_commands(chinese) == inline_commands(english)
    assert links(chinese) == sorted(in_chinese(page, link) for link in links(english))
