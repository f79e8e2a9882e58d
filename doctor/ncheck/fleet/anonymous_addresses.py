"""Other addresses in place of real ones: subnets stay subnets, and what an address is for (private, docker's) stays.

Two addresses that share their first bits share as many afterwards, so every prefix length still holds, and the order
of IPv4 addresses stays. Of an IPv4 address the last number stays. Of a MAC, a GUID and the host part of an IPv6 address
that is made of one the maker stays; the rest changes alike in all three, since checks compare them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_network
from itertools import accumulate
from random import Random

Digits = tuple[int, ...]  # an address as numbers of one alphabet: bytes of IPv4, hexadecimal digits of the others
Choose = Callable[[Digits, Sequence[int]], Mapping[int, int]]  # (what is before, the digits that follow it) -> new ones

# Kept whole: they mean the same on every machine. 172.17.0.0/16 is docker's, 192.168.122.0/24 libvirt's.
KEPT = tuple(
    map(ip_network, ("0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "172.17.0.0/16", "192.168.122.0/24", "224.0.0.0/3"))
)
# An address within one of these stays within it, and no other one comes in.
_CLASSES = tuple(
    map(
        ip_network,
        ("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.168.0.0/16",
         "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
    )
)  # fmt: skip
_TRIES, _BITS = 300, 8
MAPPED = (0,) * 20 + (15,) * 4  # the first 24 of the 32 digits of ::ffff:10.20.0.11, as in the GID of RoCE v2


class Renumbered:
    """New digits for old ones, position by position: which ones depends on all digits before.

    `choose` returns different digits for different ones, so that no two addresses become one.
    """

    def __init__(self, addresses: Iterable[Digits], choose: Choose) -> None:
        following: dict[Digits, set[int]] = {}
        for digits in addresses:
            for at, digit in enumerate(digits):
                following.setdefault(digits[:at], set()).add(digit)
        self._new = {before: choose(before, sorted(digits)) for before, digits in following.items()}
        self._old: dict[Digits, dict[int, int]] = {}
        for before, chosen in self._new.items():
            self._old[self.new(before)] = {new: old for old, new in chosen.items()}

    def new(self, digits: Digits) -> Digits:
        """Return the digits in place of these. Those behind a beginning that no address has stay."""
        return tuple(
            self._new.get(before, {}).get(digit, digit)
            for before, digit in zip(accumulate(((d,) for d in digits), initial=()), digits, strict=False)
        )

    def pairs(self) -> dict[Digits, Digits]:
        """Return each new beginning with the old one."""
        return {(*self.new(before), new): (*before, old) for before, chosen in self._new.items()
                for old, new in chosen.items()}  # fmt: skip


def octets(address: str) -> Digits:
    """Return the four bytes of an IPv4 address."""
    return tuple(IPv4Address(address).packed)


def subnets(addresses: Iterable[Digits], random: Random) -> Renumbered:
    """Return new IPv4 subnets: the first three bytes of an address change."""
    fixed: dict[Digits, set[tuple[int, int]]] = {}  # bytes before -> (count of bits, these bits) whose next bit stays
    for network in (*KEPT, *_CLASSES):
        address = tuple(network.network_address.packed)
        for at, within in (divmod(count, 8) for count in range(network.prefixlen)):
            fixed.setdefault(address[:at], set()).add((within, address[at] >> (8 - within)))

    def choose(before: Digits, values: Sequence[int]) -> Mapping[int, int]:
        there = {(count, value >> (8 - count)) for value in values for count in range(9)}
        both = {(count, bits) for count, bits in there if {(count + 1, 2 * bits), (count + 1, 2 * bits + 1)} <= there}
        stay = both | fixed.get(before, set())
        best, best_rank = {value: value for value in values}, (-1, False, False)
        for _ in range(_TRIES if {(count, bits) for count, bits in there if count < _BITS} - stay else 0):
            flips: dict[tuple[int, int], int] = {}
            chosen = {value: _flipped(value, stay, flips, random) for value in values}
            moved = {new for old, new in chosen.items() if new != old}
            alike = all(len(str(old)) == len(str(new)) for old, new in chosen.items())
            rank = (-1, False, False) if moved & _ENDS else (len(moved), moved.isdisjoint(values), alike)
            if rank > best_rank:
                best, best_rank = chosen, rank
            if rank == (len(values), True, True):
                break
        return best

    return Renumbered((address[:3] for address in addresses), choose)


_ENDS = {0, 255}  # they begin and end a network: no other byte becomes one


def _flipped(value: int, stay: set[tuple[int, int]], flips: dict[tuple[int, int], int], random: Random) -> int:
    """Return a byte with bits turned round, but for those that stay: so bytes that begin alike do so afterwards."""
    new = 0
    for count in range(_BITS):
        bits = value >> (8 - count)
        flip = 0 if (count, bits) in stay else flips.setdefault((count, bits), random.getrandbits(1))
        new = new << 1 | value >> (7 - count) & 1 ^ flip
    return new


def _others(values: Sequence[int], least: int, base: int, random: Random) -> dict[int, int]:
    """Return another digit for each, those that are in none of the values if there are enough. Below `least` they stay.

    Zeros stay where a short form leaves them out.
    """
    wanted = [value for value in values if value >= least]
    free = [digit for digit in range(least, base) if digit not in wanted]
    if len(free) >= len(wanted):
        new = sorted(random.sample(free, len(wanted)))
    else:
        turn, count = random.randrange(1, base - least), base - least
        new = [(value - least + turn) % count + least for value in wanted]
    return {**dict(zip(wanted, new, strict=True)), **{digit: digit for digit in range(least)}}


def nibbles(text: str) -> Digits:
    """Return hexadecimal digits as numbers; other characters are left out."""
    return tuple(int(char, 16) for char in text if char in "0123456789abcdefABCDEF")


def expanded(address: str) -> Digits:
    """Return the 32 digits of an IPv6 address."""
    return nibbles(IPv6Address(address).exploded)


class Addresses:
    """The new addresses of all that occur. `v4`: four bytes; `v6`: 32 hexadecimal digits; `macs`: 12; `guids`: 16."""

    def __init__(
        self,
        v4: Iterable[Digits],
        v6: Iterable[Digits],
        macs: Iterable[Digits],
        guids: Iterable[Digits],
        random: Random,
    ) -> None:
        listed = set(v6)
        inner = {_embedded(one) for one in listed if one[:24] == MAPPED}
        self.v4 = subnets((one for one in {*v4, *inner} if not is_kept(one)), random)
        plain = [one for one in listed if one[:24] != MAPPED]
        hosts = [*(one[16:] for one in plain), *guids]
        made = [one for one in hosts if _is_made_of_mac(one)]

        def of_prefix(before: Digits, values: Sequence[int]) -> Mapping[int, int]:
            return {} if len(before) < _fixed(before or values) else _others(values, 1, 16, random)

        def of_mac(before: Digits, values: Sequence[int]) -> Mapping[int, int]:
            return _others(values, 1, 16, random) if before else _others(values, 0, 256, random)

        self._prefix = Renumbered((one[:16] for one in plain), of_prefix)
        self._tail = Renumbered((_tail(one) for one in (*macs, *made)), of_mac)
        self._host = Renumbered(
            (one for one in hosts if not _is_made_of_mac(one)), lambda _, values: _others(values, 1, 16, random)
        )

    def new_v6(self, address: Digits) -> Digits:
        """Return the 32 digits in place of these."""
        if address[:24] == MAPPED:
            inner = _embedded(address)
            new = inner if is_kept(inner) else (*self.v4.new(inner[:3]), inner[3])
            return (*MAPPED, *(digit for byte in new for digit in divmod(byte, 16)))
        return (*self._prefix.new(address[:16]), *self.new_guid(address[16:]))

    def new_guid(self, guid: Digits) -> Digits:
        """Return the 16 digits in place of these."""
        if not any(guid[:-1]):
            return guid  # ::1 and ::
        return (*guid[:10], *self._new_tail(guid)) if _is_made_of_mac(guid) else self._host.new(guid)

    def new_mac(self, mac: Digits) -> Digits:
        """Return the digits in place of these: the last six change."""
        return mac if len(set(mac)) == 1 else (*mac[:-6], *self._new_tail(mac))

    def _new_tail(self, digits: Digits) -> Digits:
        first, *others = self._tail.new(_tail(digits))
        return (*divmod(first, 16), *others)


def _tail(digits: Digits) -> Digits:
    """Return the last six digits, the first two of them as one byte: more of these are free for others."""
    return (16 * digits[-6] + digits[-5], *digits[-4:])


def _embedded(address: Digits) -> Digits:
    """Return the IPv4 address in the last 8 of 32 digits."""
    low = address[24:]
    return tuple(16 * high + digit for high, digit in zip(low[::2], low[1::2], strict=True))


def masked(address: Digits, length: int) -> Digits:
    """Return the address of the network of so many bits."""
    bits = int.from_bytes(bytes(address), "big") >> (32 - length) << (32 - length)
    return tuple(bits.to_bytes(4, "big"))


def is_kept(address: Digits) -> bool:
    """Return whether an IPv4 address means the same on every machine."""
    return any(IPv4Address(bytes(address)) in network for network in KEPT)


def _fixed(first: Sequence[int]) -> int:
    """Return how many digits say what an address is for: fe80 and ff02, fd of a private one, 2 of a public one."""
    return {0xF: 4 if tuple(first[:2]) != (0xF, 0xD) else 2}.get(first[0], 1)


def _is_made_of_mac(host: Digits) -> bool:
    """Return whether the 16 digits are a maker, fffe or 0300, and the number of an adapter."""
    return host[6:10] in ((15, 15, 15, 14), (0, 3, 0, 0))
