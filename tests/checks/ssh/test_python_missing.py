"""NC125: a node that has no python3 to be looked at with."""

from __future__ import annotations

from ncheck.facts.login import LoginFacts
from ncheck.model.cluster import Facts
from ncheck.model.evidence import Cause, Login
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.ssh.python_missing import python_missing


def node(cause: Cause | None, detail: str = "") -> Facts:
    return {LoginFacts: LoginFacts(Login(reached=True, cause=cause, detail=detail))}


def test_where_python_is_too_old_its_package_is_no_remedy() -> None:
    said = "/usr/bin/python3: it is Python 3.5, and 3.6 is the oldest that will do"
    login = Login(reached=True, cause=Cause.NO_PYTHON, detail=said)
    old: Facts = {LoginFacts: LoginFacts(login, old_python="python3")}
    assert judge([python_missing], {"n1": old, "n2": node(None)}).findings == [
        Finding("NC125", "python-missing", Severity.ERROR, ("n1",),
                "the python3 of n1 is too old (3.6 or newer is needed)", (said,),
                "install a newer one beside it, such as one of conda, and name it: --python /opt/conda/bin/python3",
                kind="do", summary="python3 is too old"),
    ]  # fmt: skip


def test_a_node_without_python_is_named_with_what_it_said() -> None:
    said = "no python3 on PATH or in its usual places"
    assert judge([python_missing], {"n1": node(Cause.NO_PYTHON, said), "n2": node(None)}).findings == [
        Finding("NC125", "python-missing", Severity.ERROR, ("n1",),
                "n1 has no working python3 (3.6 or newer is needed)", (said,),
                "sudo apt-get install python3 || sudo dnf install python3 || sudo zypper install python3",
                summary="no python3"),
    ]  # fmt: skip


def test_a_python_that_is_there_and_does_not_run_is_looked_at_and_not_installed() -> None:
    said = "python3 is installed and does not run: it ended at once with exit status 139: Segmentation fault"
    login = Login(reached=True, cause=Cause.NO_PYTHON, detail=said)
    broken: Facts = {LoginFacts: LoginFacts(login, python="/opt/my python/bin/python3")}
    assert judge([python_missing], {"n1": broken, "n2": node(None)}).findings == [
        Finding("NC125", "python-missing", Severity.ERROR, ("n1",),
                "python3 is installed on n1 and does not run", (said,),
                "ulimit -a; timeout 20 '/opt/my python/bin/python3' -I -v -c pass 2>&1 | tail -n 5",
                kind="look", summary="python3 does not run"),
    ]  # fmt: skip


def test_a_node_that_was_not_reached_is_not_blamed_for_its_python() -> None:
    assert judge([python_missing], {"n1": node(Cause.REFUSED), "n2": node(Cause.NOT_ENTERED)}).findings == []
