"""--prefix: named where a plain login does not lead to mpirun's own daemon, and every node has that at one place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ncheck.facts.mpi_daemon import BESIDE, INTERACTIVE, LOGIN, PLAIN, USUAL, MpiDaemonFacts, MpiProgram
from ncheck.mpi import prefix_for


def program(path: str, *ways: str, real: str = "", version: str = "4.1.4", **told: Any) -> MpiProgram:
    return MpiProgram(path, real or path, ways, "Open MPI", version, **told)


def node(*ways: str, prefix: str = "/opt/openmpi", version: str = "4.1.4", **told: Any) -> MpiDaemonFacts:
    """Make a node whose Open MPI is found in these ways."""
    mpirun = program(f"{prefix}/bin/mpirun", *(ways or (PLAIN,)), version=version)
    return MpiDaemonFacts(
        mpirun, (program(f"{prefix}/bin/orted", *(ways or (PLAIN, BESIDE)), version=version, **told),)
    )


def test_it_is_mpiruns_own_installation_where_one_node_does_not_find_it() -> None:
    assert prefix_for({"n1": node(), "n2": node(INTERACTIVE)}) == "/opt/openmpi"
    assert prefix_for({"n1": node(INTERACTIVE), "n2": node(LOGIN)}) == "/opt/openmpi"


@pytest.mark.parametrize("others", [node(), node(version="4.1.6")])
def test_nothing_need_be_said_where_every_plain_login_finds_it(others: MpiDaemonFacts) -> None:
    assert prefix_for({"n1": node(), "n2": others}) is None


def test_nothing_helps_where_it_lies_at_several_places_or_is_not_there_at_all() -> None:
    assert prefix_for({"n1": node(), "n2": node(INTERACTIVE, prefix="/usr/local/openmpi")}) is None
    assert prefix_for({"n1": node(), "n2": MpiDaemonFacts(None, ())}) is None


def test_another_release_at_the_same_place_is_no_help() -> None:
    assert prefix_for({"n1": node(), "n2": node(USUAL, version="5.0.11")}) is None


def test_a_link_to_the_installation_counts_by_what_both_nodes_call_it() -> None:
    linked = replace(
        node(),
        starter=program("/usr/local/bin/mpirun", PLAIN, real="/opt/openmpi/bin/orterun"),
    )
    assert prefix_for({"n1": linked, "n2": node(INTERACTIVE)}) == "/opt/openmpi"


def test_libraries_that_only_its_own_folder_holds_are_found_by_it_too() -> None:
    lost = "error while loading shared libraries: libopen-rte.so.40"
    assert prefix_for({"n1": node(), "n2": node(PLAIN, trouble=lost, helped=True)}) == "/opt/openmpi"
    assert prefix_for({"n1": node(), "n2": node(PLAIN, trouble=lost)}) is None


def test_open_mpi_5_names_its_folder_by_itself() -> None:
    five = MpiDaemonFacts(program("/opt/o/bin/mpirun", PLAIN, version="5.0.11"), ())
    assert prefix_for({"n1": five, "n2": five}) is None


def test_no_mpi_needs_no_prefix() -> None:
    assert prefix_for({"n1": MpiDaemonFacts(None, ())}) is None
