"""How long the steps of a login take."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ncheck.fleet.engines import engines
from ncheck.model.node import Node

from tests.ncheck.fleet.scripted import Told, asked, first

from .sites import Known, Site, Sshd


@pytest.mark.parametrize("site", ["paramiko"], indirect=True)
def test_the_login_and_the_start_of_the_shell_are_timed_apart(site: Site, sshd: Sshd, known: Known) -> None:
    known(port := sshd('ForceCommand sleep 1; eval "$SSH_ORIGINAL_COMMAND"'))
    (config := site.folder / "config").write_text("\n".join(["Host *", *(f"  {a} {b}" for a, b in site.lines.items())]))
    settings = replace(site.settings, transport="paramiko", ssh_config=str(config))
    node = Node("node07", port=port)
    (found,) = asked([node], [first(["node07"], [])], settings, engines(settings, site.environ), Told())
    assert found.greeting
    assert found.greeting.shell_seconds >= 1.0
    assert 0.0 < found.login.authentication_seconds < found.login.seconds
