"""What to type about a broken link: on which node, with which of its addresses."""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote

from doctor.links.faults import Fault, Trouble
from doctor.links.folding import Shape
from doctor.links.matrix import Tried
from doctor.model.facts import Interface, LinkCause, LoginFacts, NicFacts
from doctor.reasoning.login_check import by_ssh

Logins = Mapping[str, LoginFacts]
Nics = Mapping[str, NicFacts]
_HEADERS = {4: 28, 6: 48}  # bytes of IP and ICMP before what ping sends


def cure(fault: Fault, nics: Nics, logins: Logins) -> str:
    """Return the line that mends a fault, or that shows more of it than ncheck could see."""
    first = fault.links[0]
    if fault.trouble is Trouble.LARGE_LOST:
        return _about_mtu(first, nics, logins)
    if fault.trouble is Trouble.CUT:
        return there(first.node, logins, "ip", "neigh", "show", "to", first.link.address)
    if first.link.cause is LinkCause.UNROUTABLE or fault.shape is Shape.NOBODY:
        own = next((tried for tried in fault.links if tried.node in fault.nodes), first)
        return there(own.node, logins, "ip", "route", "get", own.link.address, "from", own.link.source)
    alone = fault.shape in (Shape.CUT_OFF, Shape.UNREACHED, Shape.MUTE)
    return there(fault.left[0] if alone else first.link.target, logins, "sudo", "nft", "list", "ruleset")


def mtus_told(fault: Fault, nics: Nics) -> str:
    """Say which MTUs the two ends of a path have on which large packets are lost; "" of any other fault."""
    if fault.trouble is not Trouble.LARGE_LOST:
        return ""
    near, far = (_interface(nics, *end) for end in _ends(fault.links[0]))
    if not near or not far:
        return ""
    if near.mtu == far.mtu:
        return f" (MTU {near.mtu} at both ends: something between them takes less)"
    names = [node for node, _ in _ends(fault.links[0])]
    return f" (MTU {near.mtu} on {names[0]}, {far.mtu} on {names[1]})"


def there(node: str, logins: Logins, *argv: str) -> str:
    """Return the line that runs this on a node, as the run logged in to it."""
    start = by_ssh(quote(node), logins[node].login) if node in logins else f"ssh {quote(node)}"
    start = start.replace("ssh ", "ssh -t ", 1) if argv[0] == "sudo" else start  # it may ask for a password
    words = " ".join(map(quote, argv))
    return f"{start} {words}" if words == " ".join(argv) else f"{start} {quote(words)}"


def _about_mtu(first: Tried, nics: Nics, logins: Logins) -> str:
    """Return the smaller MTU to set where the ends differ, else a ping of the largest size."""
    (node, source), (other, address) = _ends(first)
    near, far = _interface(nics, node, source), _interface(nics, other, address)
    if near and far and near.mtu > far.mtu:
        return there(node, logins, "sudo", "ip", "link", "set", "dev", near.name, "mtu", str(far.mtu))
    size = (near.mtu if near else 1500) - _HEADERS[6 if ":" in address else 4]
    return there(node, logins, "ping", "-c", "3", "-M", "do", "-s", str(size), "-I", source, address)


def _ends(tried: Tried) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return node and address that large packets come from, and those that they do not come to."""
    link = tried.link
    ends = (tried.node, link.source), (link.target, link.address)
    return (ends[1], ends[0]) if link.cause is LinkCause.LARGE_LOST_BACK else ends


def _interface(nics: Nics, node: str, ip: str) -> Interface | None:
    held = nics[node].interfaces if node in nics else ()
    return next((nic for nic in held if any(address.ip == ip for address in nic.addresses)), None)
