"""Requirements of pip are read as pip reads them, and what cannot be judged is refused with its line."""

from __future__ import annotations

import pytest
from ncheck.facts.requirements import Requirement, applies, is_met, read_requirements


def test_lines_are_read_with_comments_hashes_conditions_and_options_of_the_index() -> None:
    text = """
# the job
--index-url https://download.pytorch.org/whl/cu121
-f wheels/
Torch_Vision == 0.18.0  # with torch
torch==2.3.0 \\
    --hash=sha256:97ff6cfd9c86c5c09d7ce775ab64ec5c99230f5d \\
    --hash=sha256:cf30153c4c131c8164ee7798e5022d810682e2cb
transformers[torch] >=4.40, <5
tomli; python_version < "3.11"
numpy
"""
    assert read_requirements(text) == (
        Requirement("torch-vision", "==0.18.0"), Requirement("torch", "==2.3.0"),
        Requirement("transformers", "<5,>=4.40"), Requirement("tomli", "", 'python_version < "3.11"'),
        Requirement("numpy"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("torch\n-r more.txt\n", "line 2: '-r more.txt' names another file, which is not read: put its lines here"),
        ("-c limits.txt", "line 1: '-c limits.txt' names another file, which is not read: put its lines here"),
        ("-e .", "line 1: '-e .' is not NAME==VERSION or the like, as in torch>=2.3"),
        ("--flush>=2", "line 1: '--flush>=2' is not NAME==VERSION or the like, as in torch>=2.3"),
        ("\n./wheels/torch.whl", "line 2: './wheels/torch.whl' is not NAME==VERSION or the like, as in torch>=2.3"),
        ("x @ file:///x.whl", "line 1: 'x @ file:///x.whl' has no version that could be compared, but an address"),
        (
            "git+https://ann:geheim@example.org/x.git",
            "line 1: 'git+https://<hidden>@example.org/x.git' is not NAME==VERSION or the like, as in torch>=2.3",
        ),
        (
            "x @ https://geheim@example.org/x.whl",
            "line 1: 'x @ https://<hidden>@example.org/x.whl' has no version that could be compared, but an address",
        ),
        ("# nothing\n", "0 requirements: expected 1 to 2000"),
    ],
)  # fmt: skip
def test_what_cannot_be_judged_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011  the whole message is compared
        read_requirements(text)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("specifier", "version", "met"),
    [
        ("==2.3.0", "2.3.0+cu121", True),
        ("==2.3.0+cu118", "2.3.0+cu121", False),
        (">=2.3", "2.10.0", True),
        (">=2.3", "2.3.0rc1", False),
        (">=2.3", "2.4.0a0+40ec155e58.nv24.03", True),
        ("", "1", True),
    ],
)
def test_versions_are_compared_as_pip_compares_them(specifier: str, version: str, met: bool) -> None:  # noqa: FBT001  of a table
    assert is_met(Requirement("torch", specifier), version) is met


def test_a_condition_that_the_node_did_not_answer_does_not_hold() -> None:
    assert applies(Requirement("x", "", 'sys_platform == "linux"'), {"sys_platform": "linux"})
    assert not applies(Requirement("x", "", 'sys_platform == "linux"'), {})
    assert not applies(Requirement("x", "", 'extra == "dev"'), {})
