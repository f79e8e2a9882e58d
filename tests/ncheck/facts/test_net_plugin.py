"""The plug-in that NCCL loads is the first that is there, and what is not known is not called absent."""

from __future__ import annotations

from ncheck.facts.net_plugin import NET_PLUGIN, EfaFacts, Libfabric, NetPlugin, NetPluginFacts, efa, net_plugin
from ncheck.model.evidence import Evidence, JsonValue, Login, Reply, Status
from ncheck.model.fact import Absent, Read, Unread

OFI: dict[str, JsonValue] = {
    "name": "libnccl-net.so", "path": "/opt/amazon/ofi-nccl/lib/libnccl-net.so", "kind": "aws-ofi-nccl",
    "version": "1.16.3", "build": "5c0f", "net": [9, 10], "tuner": [3], "missing": [],
    "libfabric": {"path": "/opt/amazon/efa/lib/libfabric.so.1.25.0", "version": "1.22.0amzn4.0"},
}  # fmt: skip
LOST: dict[str, JsonValue] = {"name": "libnccl-net.so", "path": None, "sure": True}
NONE: dict[str, JsonValue] = {
    "named": [], "off": False, "plugins": [LOST], "tuner": {**LOST, "name": "libnccl-tuner.so"}, "elsewhere": [],
    "efa": [], "efa_driver": None,
}  # fmt: skip


def evidence(**changed: JsonValue) -> Evidence:
    reply = Reply(Status.OK, value={**NONE, **changed})
    return Evidence("n1", Login(reached=True), replies={NET_PLUGIN.key: reply})


def found(**changed: JsonValue) -> Read[NetPluginFacts]:
    return net_plugin(evidence(**changed))


def test_what_the_installer_of_efa_brings() -> None:
    facts = found(plugins=[OFI], efa=["rdmap0s6"], efa_driver="2.13.0g")
    plugin = NetPlugin(
        "libnccl-net.so", "/opt/amazon/ofi-nccl/lib/libnccl-net.so", "aws-ofi-nccl", "1.16.3", "5c0f", (9, 10), (3,),
        libfabric=Libfabric("/opt/amazon/efa/lib/libfabric.so.1.25.0", "1.22.0amzn4.0"),
    )  # fmt: skip
    assert facts == NetPluginFacts(plugin)
    assert isinstance(facts, NetPluginFacts)
    assert (plugin.described, facts.tunes) == ("aws-ofi-nccl 1.16.3", "that of aws-ofi-nccl 1.16.3")
    assert efa(evidence(efa=["rdmap0s6"], efa_driver="2.13.0g")) == EfaFacts(("rdmap0s6",), "2.13.0g")


def test_of_a_list_the_first_that_is_there_counts() -> None:
    broken: JsonValue = {"name": "libnccl-net-x.so", "error": "/x/libnccl-net-x.so: not a 64-bit ELF library"}
    facts = found(named=["gib", "x", "ofi"], plugins=[{**LOST, "name": "libnccl-net-gib.so"}, broken, OFI])
    assert isinstance(facts, NetPluginFacts)
    assert (facts.plugin and facts.plugin.version, facts.not_found, facts.broken) == (
        "1.16.3", ("libnccl-net-gib.so",), ("/x/libnccl-net-x.so: not a 64-bit ELF library",),
    )  # fmt: skip


def test_none_is_absent_unless_something_asks_for_one() -> None:
    assert found() == Absent("no network plug-in of NCCL")
    assert efa(evidence()) == Absent("no EFA device")
    assert found(efa=["rdmap0s6"]) == NetPluginFacts(None, not_found=("libnccl-net.so",))
    assert found(off=True, plugins=[]) == NetPluginFacts(None, off=True)


def test_without_the_loaders_cache_none_is_known() -> None:
    unsure: JsonValue = [{**LOST, "sure": False}]
    assert found(plugins=unsure) == Unread(
        "libnccl-net.so may be in the loader's cache, which could not be read", fix="ldconfig -p"
    )


def test_a_path_that_is_none_is_refused() -> None:
    assert isinstance(found(plugins=[{**OFI, "path": "--help"}]), Unread)
