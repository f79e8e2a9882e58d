"""A suggested ncheck command has the nodes and the login of this run, and is otherwise as the check wrote it."""

from __future__ import annotations

import shlex

import pytest
from ncheck.settings import JobEnvironment, Settings
from ncheck.steps.rerun_line import with_nodes_of_run


@pytest.mark.parametrize(("settings", "line"), [
    (Settings(), "ncheck plan nodes.txt --for env"),
    (Settings(nodes_file="-"), "ncheck plan nodes.txt --for env"),
    (Settings(nodes_file="my nodes", port=10001), "ncheck plan 'my nodes' -p 10001 --for env"),
    (Settings(hosts="node[01-04]", user="ada"), "ncheck plan -H 'node[01-04]' -l ada --for env"),
    (Settings(slurm=True, identity="~/a key"), "ncheck plan --slurm -i '~/a key' --for env"),
    (Settings(nodes_file="n", ssh_config="none", transport="openssh"),
     "ncheck plan n -F none --transport openssh --for env"),
    (Settings(environment=JobEnvironment(rsh="kubectl exec -i {node} --")),
     "ncheck plan nodes.txt --rsh 'kubectl exec -i {node} --' --for env"),
])  # fmt: skip
def test_the_nodes_and_the_login_of_this_run_are_in_the_command(settings: Settings, line: str) -> None:
    assert with_nodes_of_run("ncheck plan nodes.txt --for env", settings) == line
    assert shlex.split(line)[0] == "ncheck"


def test_an_option_that_the_command_has_itself_is_not_repeated() -> None:
    settings = Settings(nodes_file="n", port=22, user="ada")
    assert with_nodes_of_run("ncheck -p 2222 nodes.txt", settings) == "ncheck -p 2222 n -l ada"


@pytest.mark.parametrize("line", ["ip -br address", "ssh n cat nodes.txt", "ncheck explain NC201", ""])
def test_every_other_command_stays_as_it_is(line: str) -> None:
    assert with_nodes_of_run(line, Settings(nodes_file="n", port=22)) == line
