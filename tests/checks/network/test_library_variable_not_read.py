"""NC345: names of variables that gloo, PyTorch, Horovod and UCX do not read."""

from __future__ import annotations

import pytest
from ncheck.facts.environment import EnvironmentFacts
from ncheck.model.finding import Finding, Severity
from ncheck.nccl.variables import is_one_apart, not_read
from ncheck.steps.judge import judge
from ncheck_checks.network.library_variable_not_read import library_variable_not_read

from tests.logins import line_removed, logins


def findings(**variables: str) -> list[Finding]:
    return judge([library_variable_not_read], {"n1": {EnvironmentFacts: logins(variables)}}).findings


def test_a_slip_is_renamed_where_it_is_set_and_beside_the_right_name_removed() -> None:
    edit = r"'s/^(export +)?UCX_NET_DEVICE=/\1UCX_NET_DEVICES=/'"
    assert findings(UCX_NET_DEVICE="mlx5_0:1") == [
        Finding("NC345", "library-variable-not-read", Severity.WARNING, ("n1",),
                "UCX_NET_DEVICE has no effect: UCX has no such variable, but UCX_NET_DEVICES",
                (), f"sed -i --follow-symlinks -E {edit} ~/.bashrc", summary="UCX_NET_DEVICE has no effect"),
    ]  # fmt: skip
    (found,) = findings(UCX_NET_DEVICE="mlx5_0:1", UCX_NET_DEVICES="mlx5_0:1")
    assert found.fix == line_removed("UCX_NET_DEVICE")


@pytest.mark.parametrize(("name", "meant"), [
    ("TORCH_NCCL_HEARTBEAT_TIMEOUT_SECS", "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC"),
    ("GLOO_SOCKET_IFNAMES", "GLOO_SOCKET_IFNAME"),
    ("HOROVOD_FUSION_TRESHOLD", "HOROVOD_FUSION_THRESHOLD"),
    ("UCX_TSL", "UCX_TLS"), ("UCX_TL", "UCX_TLS"),
    ("UCX_IB_GID_INDX", "UCX_IB_GID_INDEX"), ("UCX_NETDEVICES", "UCX_NET_DEVICES"),
    ("UCX_RC_MLX5_TIMEOUTS", "UCX_RC_MLX5_TIMEOUT"), ("UCX_CUDA_IPC_CAHCE", "UCX_CUDA_IPC_CACHE"),
])  # fmt: skip
def test_slips_of_each_library_are_found(name: str, meant: str) -> None:
    (found,) = not_read([name], "")
    assert (found.nearest, found.mistaken) == (meant, True)


READ = (
    "UCX_TLS", "UCX_NET_DEVICES", "UCX_IB_TX_QUEUE_LEN", "UCX_GDR_COPY_RCACHE_MAX_SIZE", "UCX_MAX_RMA_LANES",
    "UCX_RC_TX_INLINE",  # there is RX_INLINE: another release may have both
    "UCX_RC_MLX6_SL", "UCX_HOME", "UCX_DIR", "UCX_VERSION", "UCX_PY_OWN", "UCX_OUR_SCHEDULER", "UCXPY_LOG_LEVEL",
    "GLOO_OUR_OWN", "NCCL_IB_HCAS", "HOROVOD_RANK",
)  # fmt: skip


def test_it_is_silent_about_names_that_something_may_read() -> None:
    assert findings(**dict.fromkeys(READ, "1")) == []


@pytest.mark.parametrize(("one", "other", "apart"), [
    ("abc", "abc", False), ("abc", "abcd", True), ("abc", "ac", True), ("abc", "axc", True), ("abc", "acb", True),
    ("abc", "cba", False), ("aab", "ab", True), ("abc", "abxd", False), ("", "a", True),
])  # fmt: skip
def test_one_letter_apart(one: str, other: str, *, apart: bool) -> None:
    assert (is_one_apart(one, other), is_one_apart(other, one)) == (apart, apart)
