"""NC104: one ControlPath for all hosts."""

from __future__ import annotations

from ncheck.facts.login import IdentityFacts, LoginFacts
from ncheck.model.cluster import Facts
from ncheck.model.evidence import Login
from ncheck.model.finding import Finding, Severity
from ncheck.steps.judge import judge
from ncheck_checks.ssh.control_path_shared import control_path_shared
from ncheck_checks.ssh.one_machine_twice import one_machine_twice

PATH = "/root/.ssh/cm"


def nodes(*paths: str, options: tuple[str, ...] = ()) -> dict[str, Facts]:
    identity = IdentityFacts("n1", "b00t", "net:[4026531840]", 0)
    return {
        f"n{number}": {
            LoginFacts: LoginFacts(Login(reached=True, shared_socket=path, options=options)), IdentityFacts: identity,
        }
        for number, path in enumerate(paths, 1)
    }  # fmt: skip


def test_the_path_is_named_and_that_all_are_one_machine_follows_of_it() -> None:
    cause, effect = judge([control_path_shared, one_machine_twice], nodes(PATH, PATH)).findings
    assert cause == Finding(
        "NC104", "control-path-shared", Severity.ERROR, ("n1", "n2"),
        f"ControlPath {PATH} is the same for n[1-2]: each ssh to them ends on the machine of the first", (),
        "grep -inE '^[[:space:]]*(ControlPath|Include)' ~/.ssh/config /etc/ssh/ssh_config /etc/ssh/ssh_config.d/*",
        where="here", kind="look", summary="one ControlPath for all nodes",
    )  # fmt: skip
    assert (effect.code, effect.see) == ("NC102", ("NC104",))
    (given,) = judge([control_path_shared], nodes(PATH, PATH, options=("-F", "my config"))).findings
    assert given.fix.endswith("Include)' 'my config'")


def test_one_node_and_a_path_of_each_host_are_no_trouble() -> None:
    assert judge([control_path_shared], nodes(PATH, "")).findings == []
    assert judge([control_path_shared], nodes("", "")).findings == []
