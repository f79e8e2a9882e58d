"""NC120: an error on the nodes whose login ended by its cause, and on no others."""

from __future__ import annotations

from dataclasses import replace

from ncheck.facts.login import LoginFacts
from ncheck.model.cluster import Facts
from ncheck.model.evidence import Cause, Login
from ncheck.steps.judge import judge
from ncheck_checks.ssh.authentication_refused import authentication_refused

from .login_cause import only_its_cause_is_red


def test_only_a_login_that_ended_by_its_cause_is_red() -> None:
    message = "ann refused: no key was accepted"
    only_its_cause_is_red(
        judge, authentication_refused, "NC120", Cause.AUTH_REFUSED, message, where="here", kind="look"
    )


def test_without_a_key_to_offer_one_is_to_be_named() -> None:
    login = Login(reached=False, cause=Cause.AUTH_REFUSED, port=22, user="ann")
    (finding,) = judge([authentication_refused], {"a": {LoginFacts: LoginFacts(login)}}).findings
    assert finding.message == "ann refused: no key was offered"
    assert (finding.where, finding.kind, finding.fix) == (
        "here", "do", "name a key that is in authorized_keys there, with -i"
    )  # fmt: skip


def test_without_a_key_one_is_made_once_and_installed_on_each_node() -> None:
    def refused(name: str) -> Login:
        fix = f"ssh-keygen -t ed25519; ssh-copy-id ann@{name}"
        return Login(reached=False, cause=Cause.AUTH_REFUSED, port=22, user="ann", detail="no key", fix=fix)

    make = "ssh-keygen -t ed25519; ssh-copy-id ann@a"
    words = "no key was offered: make one, install it on each node, or name yours with -i KEY"
    assert found(refused("a"), refused("b")) == [(("a", "b"), words, f"{make}; ssh-copy-id ann@b", "fix")]
    assert [one[2] for one in found(refused("a"), Login(reached=True))] == [make]


KEY = "ED25519 SHA256:k ~/.ssh/id_ed25519"
REFUSED = Login(reached=False, cause=Cause.AUTH_REFUSED, user="ann", port=22, offered_keys=("RSA SHA256:r x", KEY),
                fix="ssh-copy-id ann@c", detail="refused")  # fmt: skip


def found(*logins: Login) -> list[tuple[tuple[str, ...], str, str, str]]:
    facts: dict[str, Facts] = {
        name: {LoginFacts: LoginFacts(login)} for name, login in zip("abcd", logins, strict=False)
    }
    judged = judge([authentication_refused], facts).findings
    return [(one.nodes, one.message, one.fix, one.kind) for one in judged]


def test_a_user_whom_others_let_in_with_the_same_key_may_have_no_account_there() -> None:
    others = [replace(REFUSED, reached=True, cause=None)] * 2
    message = (
        "ann refused: no key was accepted, although a,b let this user in with one of them: either the account ann is "
        "missing (LDAP, sssd), or its home is not mounted, or the key is not installed; ssh-copy-id mends only the last"
    )
    look = "getent passwd ann; sudo journalctl -u ssh -u sshd -n 30 --no-pager"
    assert found(*others, REFUSED) == [(("c",), message, look, "look")]


def test_a_key_that_no_other_node_has_shown_to_be_good_is_to_be_installed() -> None:
    plain = [(("b",), "ann refused: no key was accepted", "ssh-copy-id ann@c", "fix")]
    let_in = replace(REFUSED, reached=True, cause=None)
    for other in (REFUSED, replace(let_in, user="bob"), replace(let_in, offered_keys=("RSA SHA256:other x",))):
        assert found(other, REFUSED)[-1:] == plain
    root = replace(REFUSED, user="root")
    assert found(replace(let_in, user="root"), root)[0][2:] == ("ssh-copy-id ann@c", "fix")
