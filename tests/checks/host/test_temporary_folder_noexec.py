"""NC632: what is built at run time is loaded from the folder for temporary files."""

from __future__ import annotations

from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.host.temporary_folder_noexec import temporary_folder_noexec

from .folders import TMP, folder, node


def test_the_folder_that_programs_use_is_named_with_the_line_that_lets_them_run() -> None:
    nodes = {"n1": node(folder(TMP, no_exec=True)), "n2": node()}
    assert judge([temporary_folder_noexec], nodes).findings == [
        Finding("NC632", "temporary-folder-noexec", Severity.WARNING, ("n1",),
                f"{TMP} is mounted noexec: torch.compile, Triton and CUDA extensions cannot load what they build", (),
                'sudo mount -o remount,exec "$(findmnt -no TARGET -T /tmp)"',
                summary="no program runs from the folder for temporary files"),
    ]  # fmt: skip


def test_where_tmpdir_leads_elsewhere_nothing_is_loaded_from_tmp() -> None:
    sick = folder(TMP, no_exec=True)
    for nodes in (node(sick, folder("/local", "TMPDIR")), node(folder(TMP), folder("/x", "OMPI_MCA_a", no_exec=True))):
        assert judge([temporary_folder_noexec], {"n1": nodes}).findings == []
