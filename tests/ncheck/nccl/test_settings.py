"""NCCL's settings in force: by precedence of environment and files, and by release."""

from __future__ import annotations

import pytest
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.login_variables import where_set
from ncheck.model.check import Fix
from ncheck.model.fact import Absent
from ncheck.nccl.settings import PlacedSetting, is_on, lasting, release_of, releases_of, settings_in_force, settings_of

OLD, NEW = (2, 21, 5), (2, 32, 3)
BOTH = (OLD, NEW)


def test_the_environment_outweighs_the_files_and_the_users_file_the_machines() -> None:
    environment = EnvironmentFacts(
        {"NCCL_DEBUG": "WARN", "PATH": "/usr/bin"},
        {
            "/etc/nccl.conf": ("NCCL_SOCKET_IFNAME=eth0", "NCCL_IB_TC=106"),
            "/home/ada/.nccl.conf": ("# mine", "NCCL_DEBUG=INFO", "NCCL_SOCKET_IFNAME==eth1", "NCCL_ALGO = Ring"),
        },
    )
    assert settings_in_force(environment, NEW) == {
        "NCCL_DEBUG": "WARN", "NCCL_SOCKET_IFNAME": "=eth1", "NCCL_IB_TC": "106",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["NCCL_IB_TC;touch /tmp/x", "NCCL_A$(id)", "NCCL_\u2028A", "NCCL_ALGO ", "é", "1A"])
def test_what_no_variable_can_be_called_sets_nothing(name: str) -> None:
    environment = EnvironmentFacts({}, {"/etc/nccl.conf": (f"{name}=1", "NCCL_ALGO=Ring")})
    assert settings_in_force(environment, NEW) == {"NCCL_ALGO": "Ring"}


def test_the_named_file_replaces_the_users_since_2_23_4() -> None:
    environment = EnvironmentFacts(
        {"NCCL_CONF_FILE": "/opt/job.conf"},
        {
            "/opt/job.conf": ("NCCL_DEBUG=INFO",),
            "/root/.nccl.conf": ("NCCL_DEBUG=WARN",),
            "/etc/nccl.conf": Absent("not there"),
        },
    )
    assert [settings_in_force(environment, release)["NCCL_DEBUG"] for release in BOTH] == ["WARN", "INFO"]


@pytest.mark.parametrize(("value", "on"), [
    ("1", True), ("0x1", True), ("-1", True), (" 2", True), ("0", False), ("0x0", False), ("", False), ("yes", False),
])  # fmt: skip
def test_a_switch_is_on_for_numbers_other_than_0(value: str, *, on: bool) -> None:
    assert is_on({"NCCL_IB_DISABLE": PlacedSetting("NCCL_IB_DISABLE", value)}, "NCCL_IB_DISABLE") is on
    assert not is_on({}, "NCCL_IB_DISABLE")


def test_a_release_is_read_from_the_version_and_without_one_both_kinds_of_rules_count() -> None:
    assert [release_of(version) for version in ("2.21.5", "2.21.5+cuda12.4", "unknown", "")] == [OLD, OLD, (), ()]
    assert releases_of(LoadedNcclFacts("2.21.5", "/opt/libnccl.so.2")) == (OLD,)
    assert releases_of(Absent("no NCCL")) == ((2, 27, 7), (2, 28, 3))


def test_a_value_that_should_last_goes_to_the_file_that_nccl_reads() -> None:
    named = "/opt/job/nccl.conf"
    environment = EnvironmentFacts({"NCCL_CONF_FILE": named}, {named: Absent("not found")})
    assert lasting("NCCL_IB_TC", "106", environment, NEW) == Fix(f"echo NCCL_IB_TC=106 | tee -a {named}")
    assert lasting("NCCL_IB_TC", "106", environment, OLD) == Fix("echo NCCL_IB_TC=106 >> ~/.nccl.conf")


def test_on_gpus_of_amd_the_files_are_those_of_rccl() -> None:
    files = {"/root/.rccl.conf": ("RCCL_MSCCL_ENABLE=0",), "/etc/rccl.conf": ("NCCL_IB_TC=106", "RCCL_MSCCL_ENABLE=1")}
    environment = EnvironmentFacts({"NCCL_ALGO": "Tree"}, files)
    assert settings_in_force(environment, NEW) == {
        "NCCL_ALGO": "Tree", "RCCL_MSCCL_ENABLE": "0", "NCCL_IB_TC": "106",
    }  # fmt: skip
    line = "echo NCCL_IB_SL=1 "
    assert lasting("NCCL_IB_SL", "1", environment, NEW) == Fix(f"{line}>> ~/.rccl.conf")
    own = lasting("NCCL_IB_SL", "1", environment, NEW, everywhere=False)
    assert own == Fix(f"{line}| sudo tee -a /etc/rccl.conf")
    assert lasting("NCCL_IB_TC", "1", environment, NEW).line.endswith(" /etc/rccl.conf")


def test_a_setting_knows_its_place_and_the_command_that_changes_it() -> None:
    environment = EnvironmentFacts({"NCCL_ALGO": "Tree"}, {"/etc/nccl.conf": ("NCCL_PROTO=LL",)})
    algorithm, protocol = settings_of(environment, Absent("no NCCL")).values()
    assert (algorithm.described, protocol.described) == (
        "NCCL_ALGO=Tree in the environment", "NCCL_PROTO=LL in /etc/nccl.conf",
    )  # fmt: skip
    assert protocol.set_to("") == Fix("sudo sed -i '/^NCCL_PROTO=/d' /etc/nccl.conf")
    assert protocol.set_to("LL128") == Fix("sudo sed -i 's/^NCCL_PROTO=.*/NCCL_PROTO=LL128/' /etc/nccl.conf")
    assert algorithm.set_to("") == where_set("NCCL_ALGO"), "nobody knows which file sets it"
