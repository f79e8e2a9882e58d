"""Gloo: its pairs tell who could not be reached; its devices, which address it was given."""

from __future__ import annotations

import re

from doctor.triage.signature import Grade, Reading, Signature, row

_MESH = frozenset({"gloo"})
_OWN_NAME = Reading("hostname_loopback", Grade.CERTAIN, ("gloo_bad_address", "wrong_nic"), explains=_MESH,
                    fix='getent hosts "$(hostname)"')  # fmt: skip
_NO_MESH = Reading("gloo_bad_address", Grade.POSSIBLE, ("hostname_loopback", "wrong_nic", "firewall"), "gloo",
                   meaning="gloo's ranks cannot reach each other's addresses", fix="ip -br address")  # fmt: skip
_FILTERED = Reading("firewall", Grade.LIKELY, ("gloo_bad_address", "routing", "wrong_nic"), "gloo")


def _peer(found: re.Match[str]) -> Reading:
    """Return what the address and the error of a pair that was not made say."""
    if found["address"].startswith(("127.", "::1", "::ffff:127.")):
        return _OWN_NAME
    return _FILTERED if re.search(r"No route|timed out", found["why"]) else _NO_MESH


SIGNATURES = (
    # timed out connecting: SO_ERROR: Connection refused, remote=[127.0.0.1]:14215
    Signature(re.compile(r"SO_ERROR: (?P<why>[^,]{0,80}),? remote=\[(?P<address>[^\]]{0,80})\]"), _peer),
    # [.../gloo/transport/tcp/pair.cc:799] connect [127.0.1.1]:19033: Connection refused
    Signature(re.compile(r"pair\.cc:\d+\] connect \[(?P<address>[^\]]*)\]:\d+: (?P<why>.*)"), _peer),
    # remote=[127.0.0.1]:14215
    row(r"^\s*remote=\[127\.", "hostname_loopback", Grade.CERTAIN, "gloo_bad_address", "wrong_nic", context=True,
        explains=_MESH),
    # RuntimeError: Gloo connectFullMesh failed with [.../pair.cc:144] no error
    row(r"Gloo connectFullMesh failed", "gloo_bad_address", Grade.POSSIBLE, "hostname_loopback", "wrong_nic",
        "firewall", tag="gloo", fix="ip -br address"),
    # [W ProcessGroupGloo.cpp:721] Warning: Unable to resolve hostname to a (local) address. Using the loopback address
    row(r"Unable to resolve hostname to a \(local\) address", "hostname_loopback", Grade.LIKELY, "gloo_bad_address",
        "wrong_nic", context=True, explains=_MESH),
    # RuntimeError: [enforce fail at gloo/transport/tcp/device.cc:83] ifa != nullptr. Unable to find address for: eth9
    row(r"Unable to find address for:", "no_interface", Grade.CERTAIN, "gloo_bad_address", "wrong_nic"),
    # [enforce fail at gloo/transport/tcp/device.cc:84] ifa != nullptr. Unable to find interface for: [10.1.0.9]
    row(r"Unable to find interface for:|makeDeviceForHostname\(\)|gloo/transport/tcp/device\.cc.*(?:bind|rv != -1)",
        "gloo_bad_address", Grade.CERTAIN, "hostname_loopback", "wrong_nic"),
    # [enforce fail at gloo/transport/tcp/pair.cc:446] op.preamble.length <= op.nbytes. 256000 vs 128000
    row(r"op\.preamble\.length <= op\.nbytes|op\.getOpcode\(\) ==", "collective_mismatch", Grade.CERTAIN),
    # [enforce fail at gloo/transport/tcp/pair.cc:211] ss1.ss_family == ss2.ss_family. 2 vs 10
    row(r"ss1\.ss_family == ss2\.ss_family", "gloo_bad_address", Grade.LIKELY, "wrong_nic",
        meaning="one rank has an IPv4 address and another one an IPv6 address"),
    # [.../pair.cc:589] Read error [10.1.0.3]:3977: Connection reset by peer
    row(r"(?:Read|Write) error \[.*(?:reset by peer|Broken pipe)|Connection closed by peer \[", "rank_crashed",
        Grade.ECHO, "firewall", tag="gone"),
    # RuntimeError: [.../unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation to complete
    row(r"Timed out waiting \d+ms for (?:recv|send) operation|Application timeout caused pair closure",
        "slow_rank_timeout", Grade.ECHO, "rank_crashed", "collective_mismatch", tag="waits"),
    # RuntimeError: Every node should have a unique IP address. Got 2 nodes with 1 unique IP addresses
    row(r"Every node should have a unique IP address", "wrong_nic", Grade.LIKELY, "gloo_bad_address", "same_hostname"),
)  # fmt: skip
