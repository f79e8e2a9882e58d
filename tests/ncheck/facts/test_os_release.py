"""The distribution of a node, and the installer that follows from it."""

from __future__ import annotations

import pytest
from ncheck.facts.os_release import OS_RELEASE, OsFacts, command_to_install, os_release
from ncheck.model.evidence import Evidence, Login, Reply, Status
from ncheck.model.fact import Absent

ROCKY = 'NAME="Rocky Linux"\nVERSION="9.3 (Blue Onyx)"\nID="rocky"\nID_LIKE="rhel centos fedora"\n'
UBUNTU = 'PRETTY_NAME="Ubuntu 22.04.4 LTS"\nID=ubuntu\nID_LIKE=debian\n'
PACKAGES = {"apt-get": ("a-deb",), "dnf": ("a-rpm",), "zypper": ("a-suse",)}


def read(reply: Reply) -> OsFacts | Absent | object:
    return os_release(Evidence("n1", Login(reached=True), replies={OS_RELEASE.key: reply}))


@pytest.mark.parametrize(("text", "ids", "line"), [
    (UBUNTU, ("ubuntu", "debian"), "sudo apt-get install a-deb"),
    (ROCKY, ("rocky", "rhel", "centos", "fedora"), "sudo dnf install a-rpm"),
    ('ID="sles"\nID_LIKE="suse"\n', ("sles", "suse"), "sudo zypper install a-suse"),
    ('ID="opensuse-leap"\nID_LIKE="suse opensuse"\n', ("opensuse-leap", "suse", "opensuse"),
     "sudo zypper install a-suse"),
    ("no equals sign\n\x00=\n", (), "sudo apt-get install a-deb"),
])  # fmt: skip
def test_the_names_of_a_distribution_and_of_those_it_is_like_decide_the_installer(
    text: str, ids: tuple[str, ...], line: str
) -> None:
    facts = read(Reply(Status.OK, value=text))
    assert isinstance(facts, OsFacts)
    assert facts.ids == ids
    assert command_to_install(PACKAGES, facts) == line


@pytest.mark.parametrize("reply", [Reply(Status.MISSING), Reply(Status.DENIED), Reply(Status.OK, value=7)])
def test_without_the_file_it_is_absent_and_nothing_depends_on_it(reply: Reply) -> None:
    assert read(reply) == Absent("no /etc/os-release")
    assert command_to_install(PACKAGES, read(reply)) == "sudo apt-get install a-deb"
