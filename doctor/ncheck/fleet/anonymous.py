"""`ncheck bundle --anonymous`: other names and addresses in a whole archive, the same for the same machine.

Nothing has to be recognised to be removed: a word that ncheck's own source does not have changes no verdict, so each
such word is replaced, whatever it names: a host, a domain, a project, a package. Names of nodes are replaced where they
are made of ordinary words, too: gpu01, and the list gpu[01-16]. Their numbers and their order stay, so that lists fold
alike. A name that is an ordinary word and nothing else ("node") identifies nobody, and stays; that of a user is
replaced where the text says that it is one.
"""

from __future__ import annotations

import builtins
import json
import re
import string
import sys
from base64 import b64encode
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache, cached_property
from importlib.resources import files
from ipaddress import AddressValueError, IPv6Address
from itertools import zip_longest
from random import Random
from typing import TYPE_CHECKING

from ncheck.decode import decoded
from ncheck.fleet.anonymous_addresses import (
    MAPPED,
    Addresses,
    Digits,
    Renumbered,
    expanded,
    is_kept,
    masked,
    nibbles,
    octets,
)
from ncheck.hostlist import is_name
from ncheck.lazy_dataclass import dataclass
from ncheck.model.evidence import too_deep

if TYPE_CHECKING:
    from importlib.abc import Traversable

FORMAT = 1

# What a text is made of: the first that fits. All else (blanks, signs) stays.
_FOUND = re.compile(
    r"""
    (?P<escape>(?:\x1b|\\(?:u001[bB]|x1[bB]|033|e))\[[\d;]*[A-Za-z]          # a colour, also in a quoted text
    |\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[abefnrtvN0]))                        # \n in one that is quoted twice
    |(?P<key>\b(?:SHA256:(?=[A-Za-z0-9+/]{43})|AAAA)[A-Za-z0-9+/]{20,}={0,2})    # of ssh, which names a host
    |(?P<mac>(?<!\w)(?:[0-9a-fA-F]{2}[:-]){5,19}[0-9a-fA-F]{2}(?!\w|[:-]\w)
    |(?<![\w.])(?:[0-9a-fA-F]{4}\.){2}[0-9a-fA-F]{4}(?!\w|\.\w))                 # as switches write it
    |(?P<guid>(?<![\w:])(?:[0-9a-fA-F]{4}:){3}[0-9a-fA-F]{4}(?!\w|:[\w:]))
    |(?P<v6>(?<![\w.])(?:[0-9a-fA-F]{0,4}:){2,7}(?:[0-9a-fA-F]{1,4}|(?<=::))(?!\w|:[\w:]|\.(?!\d{1,5}(?![\w.]))\w))
    |(?P<v4>(?<![\w.])(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?:/[0-9]{1,2}(?!\d))?(?!\w|\.\d))
    |(?P<system>/(?:sys|proc|dev)/[^\s"'`<>,;]+)                               # node0 in it is a NUMA node
    |(?P<hexadecimal>(?<![\w.-])(?:0x[0-9a-fA-F]+|[0-9a-fA-F]{16}|[0-9a-fA-F]{32}|[0-9a-fA-F]{40}|[0-9a-fA-F]{64,})(?!\w))
    |(?P<words>\w(?:[\w.-]|\[[\d,-]+\])*)
    """,
    re.VERBOSE,
)
_ID = (  # a UUID, and i-0a1b2c3d4e5f60718, a machine of Amazon
    r"(?<![0-9a-fA-F])[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}(?![0-9a-fA-F])"
    r"|(?<![\w-])i-(?:[0-9a-f]{17}|[0-9a-f]{8})(?![\w-])"
)
# worker-1.us-central1-a.c.PROJECT.internal, a machine of Google; a project that is one word is replaced as a word
_UNIQUE = re.compile(rf"({_ID}|(?<=\.c\.)[a-z](?=[a-z]*[\d-])[a-z\d-]{{4,28}}[a-z\d](?=\.internal\b))")
_LETTERS = re.compile(r"[^\W\d_]+")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_NUMBER = re.compile(r"\[[\d,-]+\]|\d+")
_PIECES = re.compile(r"(?:[^._\-\[\]]|\[[\d,-]+\])+|[._\-\[\]]")
_PART_OF_NUMBER = re.compile(r"(?:veth|cali|tap|lxc|cni)?(?=[a-fA-F]*\d)[0-9a-fA-F]{6,}")  # veth3f9a1c2
_LEFT, _RIGHT = (
    re.compile(r"[^._\-\[\]]*\Z"),
    re.compile(r"[^._\-\[\]]*"),
)  # the rest of a piece, before and behind a name
_HEXADECIMAL = frozenset("abcdef")  # no new word has these letters alone: beside a digit it would look like a number
_LEAST_ENCODED = 5  # characters of a name whose encodings are looked for
_LEAST_JOINED = 4  # characters of a name that is found where letters or digits are beside it: not the n1 of dn1s
_SHORT = 2  # letters: what is no longer is a part of a number, a unit or an option, or a name that is known to be one

# Capital letters are those of a node (GPU01), but for what tools call the devices of any machine: GPU0, NIC12.
_NUMBERED = re.compile(r"(?:gpu|nic|cpu|node|numa|core|rank)(?:0|[1-9]\d*)", re.IGNORECASE)
# A node with such a name looks like the device: ib0, mlx5_0, eth1.
_DEVICE = re.compile(
    r"(?:ib|eth|en[opsx]|docker|br|bond|lo|mlx|bnxt_re|irdma|hfi|hsn|rdmap|efa|veth|virbr|cuda|cpu|card|nvme|sd|md|dm"
    r"|loop|tty|numa|rank|port|step|round|python|sm|x)#.*"
)
_TOP_LEVEL = frozenset(
    ("com", "net", "org", "edu", "gov", "mil", "int", "io", "ai", "cloud", "local", "internal", "lan")
)
_OF_FILES = frozenset({"py", "c", "cc", "cpp", "cu", "h", "sh", "so", "log", "txt", "json"})  # init.cc:7:9 is no host
_NO_NAMES = frozenset({"root", "nobody", "none", "null", "unknown", "user", "localhost", "any", "all", "local"})

_NAME = r"[A-Za-z_](?:[\w.-]{0,61}\w)?"
_USER_KEYS = ("user", "user_name", "username")
_HOST_KEYS = ("node", "host", "host_name", "hostname", "nodename")
_BEFORE_USER = (  # /home/NAME   USER=NAME   "user": "NAME"   uid=1000(NAME)
    rf"/(?:home|Users|users)/|\b(?:USER|LOGNAME|USERNAME|SUDO_USER|SLURM_JOB_USER|PBS_O_LOGNAME)[=:\"' ]{{1,4}}"
    rf"|\"(?:{'|'.join(_USER_KEYS)})\": ?\"|\b(?:{'|'.join(_USER_KEYS)})=[\"']?|\buid=\d{{1,10}}\("
)
_USERS = re.compile(  # also NAME@gpu01
    rf"(?:{_BEFORE_USER})(?P<name>{_NAME})|(?<![\w.:-])(?P<login>{_NAME})(?=@[A-Za-z]{{2}}[\w-]*[.\d])"
)
_CONTAINER = re.compile(
    r"(?=\d*[a-f])(?:[0-9a-f]{64}|[0-9a-f]{12})"
)  # docker names a container by the first 12 digits of its 64
_SHORT_ID = 12
_HOST = rf"(?:{_CONTAINER.pattern}|{_NAME})\b"
_HOSTS = (
    re.compile(  # gpu01:7:9 [0] NCCL INFO   [gpu01:7] btl   Nov 28 10:00:00 gpu01 kernel:   SLURM_NODELIST=gpu[1-4]
        rf"^(?P<nccl>{_HOST}):\d+:\d+ |\[(?P<mpi>{_HOST}):\d+\] "
        rf"|^[A-Z][a-z]{{2}} [ \d]\d [\d:]{{8}} (?P<log>{_HOST}) \S+:"
        rf"|NODELIST=(?P<list>(?:[\w.,-]|\[[\d,-]+\])+)|\bHOST(?:NAME)?=(?P<variable>{_HOST})"
        rf"|\"(?:{'|'.join(_HOST_KEYS)})\": ?\"(?P<json>{_HOST})\"",
        re.MULTILINE,
    )
)
_LISTED = re.compile(r"(?:[^,\[]|\[[^\]]*\])+")  # gpu[01-02,04],cn7
_SERIALS = re.compile(
    r"(?i)(?<![a-z])(?:serial(?:[ _]?(?:number|no))?|S/N|SN(?=[ \t]{0,20}: ?\d*[a-z]\w{5})|asset[ _]?tag)"
    r"[\"' \t]{0,40}[:=][\"' \t]{0,4}(?P<name>[\w-]{4,40})"
)
# Node GUID: 0x506b4b03000c1a2f   H-506b4b03000c1a2f   Base MAC: 506b4b0c1a2f
_UNSEPARATED = re.compile(
    r"(?i)guid[\"']?[ \t.:=]{0,40}(?:0x)?(?P<guid>[0-9a-f]{12,16})(?!\w)|(?<![\w-])[HSR]-(?P<port>[0-9a-f]{16})(?!\w)"
    r"|\bmac[ \t.:=]{1,40}(?P<mac>[0-9a-f]{12})(?!\w)"
)
_GUID = 16  # digits
_VERSION = re.compile(
    r"(?i)(?:version|release|firmware|==|cu\d\d)[ :=\"'-]{0,4}$"
)  # cublas-cu12: 12.4.5.8 is no address
_SERIAL_KEYS = frozenset({"serial", "serial_number", "board_serial", "chassis_serial", "product_serial"})
_COMMON_WORDS = """
    Mon Tue Wed Thu Fri Sat Sun Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec Corporation Xeon Platinum Gold EPYC GHz
    generic SMP PREEMPT virtualenv genexpr listcomp dictcomp iterator dataset dataloader fetcher batch epoch gradient
"""
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_BEFORE = 24  # characters before an address that may say that it is a version
_BYTE = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"  # no 07 and no 999: run_10_05_07_123 is a time
_PRIVATE = r"10|172(?=.(?:1[6-9]|2[0-9]|3[01])\D)|192(?=.168\D)|100(?=.(?:6[4-9]|[7-9]\d|1[01][0-9]|12[0-7])\D)"
_INNER, _KNOWN_INNER = (
    re.compile(
        rf"(?<!\d)(?P<network>(?:{_PRIVATE}|{public})(?P<between>[._-]){_BYTE}(?P=between){_BYTE})"
        r"(?=(?P=between)(?:\d{1,3}(?!\d)|\[))"
    )
    # ip-10-20-0-11 of a private network, ec2-54-12-3-4; and static-54-12-3-4, where another text has this network
    for public in (rf"(?:(?<=\bip-)|(?<=\bec2-)){_BYTE}(?=-)", rf"(?<![^\W_]){_BYTE}(?=-)")
)
_DEEPEST = 100  # levels of JSON
_WHOLE = 32  # bits of an IPv4 address
_LONGEST_HASH = 64
_MD5 = 32  # digits of a fingerprint that is written as a MAC is
_HASHES = (40, _LONGEST_HASH)  # digits of what names a commit or a file's content
_LONG, _LONGEST_NAME = 32, 64  # digits, letters
_TRIES, _MOST_ORDERED = 300, 40
_COMMON = re.compile(r"[^jqwyzou]#?")  # v2, x86 and others that mean something else


def _sources(folder: Traversable) -> Iterator[str]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _sources(entry)
        elif entry.name.endswith(".py"):
            yield entry.read_text("utf-8")


@cache
def ordinary_words() -> frozenset[str]:
    """Return the words in the source of ncheck and its checks, and the names of Python itself, in small letters."""
    texts = (_COMMON_WORDS, " ".join((*sys.stdlib_module_names, *dir(builtins))), *_sources(files("ncheck")))
    return frozenset(
        word.lower() for text in (*texts, *_sources(files("ncheck_checks"))) for word in _LETTERS.findall(text)
    )


@cache
def _is_ordinary(word: str) -> bool:
    """Return whether a run of letters says nothing about anybody: ncheck has it, or its parts, or it is too short."""
    if len(word) <= _SHORT and word.isascii():
        return True
    parts = _CAMEL.findall(word)  # ncclCommInitRank
    return _is_known(word.lower()) or (
        "".join(parts) == word and all(len(p) > 1 and _is_known(p.lower()) for p in parts)
    )


def _is_known(word: str) -> bool:
    """Return whether ncheck has a word, also with another ending: preparing, prepare."""
    known = ordinary_words()
    stems = (word.removesuffix(ending) for ending in ("", "s", "d", "es", "ed", "ing"))
    return any(stem in known or (stem != word and f"{stem}e" in known) for stem in stems)


def _shape(name: str) -> str:
    """Return a name with # for each number and for each list of numbers: gpu#."""
    return _NUMBER.sub("#", name)


def _names_node(piece: str, shapes: Collection[str]) -> bool:
    """Return whether a piece of a text has one of these shapes, in small letters or in others."""
    shape = _shape(piece)
    return shape in shapes or (shape.lower() in shapes and not _NUMBERED.fullmatch(piece))


def _joined_of(shapes: Iterable[str]) -> re.Pattern[str] | None:
    """Return what finds names of nodes that have a number, also with letters or digits beside them."""
    joinable = (shape for shape in shapes if "#" in shape and any(len(word) > 1 for word in _LETTERS.findall(shape)))
    any_of = "|".join(
        ("(?<!\\d)" if shape.startswith("#") else "") + re.escape(shape).replace(r"\#", f"(?:{_NUMBER.pattern})")
        for shape in sorted(joinable, key=len, reverse=True)
    )
    return re.compile(f"(?:{any_of})(?!\\d)", re.IGNORECASE) if any_of else None


def _apart(
    text: str, joined: re.Pattern[str] | None, shapes: Collection[str], whole: Collection[str] = ()
) -> list[str]:
    """Return a text apart: at the odd places names of nodes with letters or digits beside them, gpu01x and mlx5gpu01.

    A piece that is one of `whole` stays whole.
    """
    parts, done = [], 0
    for found in joined.finditer(text) if joined else ():
        if _is_joined(found, whole) and _names_node(found[0], shapes):
            parts += [text[done : found.start()], found[0]]
            done = found.end()
    return [*parts, text[done:]]


def _is_joined(found: re.Match[str], whole: Collection[str]) -> bool:
    """Return whether what looks like the name of a node is one in a piece, not part of a number or of a word."""
    name, text = found[0], found.string
    left, right = (_LEFT.search(text, 0, found.start()) or found)[0], (_RIGHT.match(text, found.end()) or found)[0]
    piece = left + name + right
    if len(name) < _LEAST_JOINED or piece in (name, *whole) or _PART_OF_NUMBER.fullmatch(piece):
        return False
    if name[-1].isalpha() and right[:1].isalpha():
        return False
    if not (name[0].isalpha() and left[-1:].isalpha()) or (name[0].isupper() and left[-1].islower()):
        return True
    return not _is_ordinary(_LETTERS.findall(left)[-1] + _LETTERS.findall(name)[0])


def _as(new: str, old: str) -> str:
    """Return a word in the case of another one."""
    return "".join(n.upper() if o.isupper() else n for n, o in zip_longest(new, old[: len(new)], fillvalue=""))


@dataclass(frozen=True)
class Names:
    """What stands for what; `inverse` has the old by the new, as the file that stays with the user.

    exact     whole names and numbers: users, serial numbers, UUIDs, addresses
    words     words, wherever they are
    nodes     the words of names of nodes, in names of these `shapes` alone
    networks  how IPv4 addresses begin: a report also names networks that no answer names
    """

    exact: Mapping[str, str]
    words: Mapping[str, str]
    nodes: Mapping[str, str]
    shapes: tuple[str, ...]
    networks: Mapping[str, str]

    @cached_property
    def _shapes(self) -> tuple[frozenset[str], int]:
        names = (*self.shapes, *(name for name in self.exact if len(name) <= _LONGEST_NAME))
        return frozenset(self.shapes), max((len(_PIECES.findall(name)) for name in names), default=1)

    @cached_property
    def _joined(self) -> re.Pattern[str] | None:
        return _joined_of(self.shapes)

    def inverse(self) -> Names:
        """Return the names in the other direction."""
        exact, words, nodes, networks = (
            {new: old for old, new in one.items() if new != old}
            for one in (self.exact, self.words, self.nodes, self.networks)
        )
        return Names(exact, words, nodes, tuple(sorted(self.of_node(shape) for shape in self.shapes)), networks)

    def document(self) -> str:
        """Return the text of the file."""
        members = {field.name: getattr(self, field.name) for field in fields(self)}
        return json.dumps({"ncheck_names": FORMAT, **members}, indent=1) + "\n"

    def token(self, old: str, *, nodes: bool = True) -> str:
        """Return a name, or names in a row, under the new names: gpu01_rank3.log, GPU-01234567-89ab-..."""
        return "".join(self.exact.get(part) or self._names(part, nodes=nodes) for part in _UNIQUE.split(old))

    def _names(self, old: str, *, nodes: bool) -> str:
        joined = self._joined if nodes else None
        parts = _apart(old, joined, self._shapes[0], self.exact)
        new = (self.of_node(part) if at % 2 else self._of_pieces(part, nodes=nodes) for at, part in enumerate(parts))
        return _KNOWN_INNER.sub(self._network, "".join(new))

    def _of_pieces(self, old: str, *, nodes: bool) -> str:
        (shapes, longest), pieces, new, at = self._shapes, _PIECES.findall(old), "", 0
        while at < len(pieces):
            end = at
            for end in range(min(len(pieces), at + longest), at, -1):
                piece = "".join(pieces[at:end])
                if piece in self.exact or (nodes and _names_node(piece, shapes)):
                    new += self.exact.get(piece) or self.of_node(piece)
                    break
            else:
                new += self._plain(pieces[at])
            at = end
        return new

    def _plain(self, piece: str) -> str:
        """Return a word under the new names, that of no node."""
        return piece if _PART_OF_NUMBER.fullmatch(piece) else _replaced(piece, self.words)

    def of_node(self, name: str) -> str:
        """Return the name of a node, or its shape, under the new names."""
        return _replaced(name, self.nodes)

    def _network(self, found: re.Match[str]) -> str:
        between = found["between"]
        begin = found[0].replace(between, ".")
        return self.networks.get(begin, begin).replace(".", between)

    def v4(self, text: str) -> str:
        """Return an IPv4 address or network under the new names: also one that was computed from an address."""
        address, slash, length = text.partition("/")
        old, bits = octets(address), int(length or _WHOLE)
        if is_kept(old):
            return text
        new = next((new for count in (3, 2, 1) if (new := self._begun(old, count)) != old), old)
        if slash and masked(old, bits) == old:  # a network, perhaps a shorter one than any that is known
            begins = (begin for begin in self.networks if len(begin.split(".")) == len(old) - 1)
            of = (begin for begin in begins if masked(octets(f"{begin}.0"), bits) == old)
            if begin := _dotted(old[:3]) not in self.networks and next(of, ""):
                new = octets(f"{self.networks[begin]}.0")
            new = masked(new, bits)
        return _dotted(new) + slash + length

    def _begun(self, address: Digits, count: int) -> Digits:
        begin = self.networks.get(_dotted(address[:count]))
        return (*map(int, begin.split(".")), *address[count:]) if begin else address


def _replaced(text: str, words: Mapping[str, str]) -> str:
    return _LETTERS.sub(lambda word: _as(words.get(word[0].lower(), word[0]), word[0]), text)


def anonymous(
    parts: Mapping[str, str], notes: Iterable[str], random: Random
) -> tuple[dict[str, str], list[str], Names]:
    """Return the members of an archive and the notes on them under other names, and what stands for what.

    What is no text is left out, and a note says so.
    """
    taken = {name: text for name, text in parts.items() if "\0" not in text}
    seen = _Seen()
    documents = {name for name, text in taken.items() if seen.note(name, text)}
    new = _New(seen, random)
    renamed = {
        new.text(name): new.document(text) if name in documents else new.text(text) for name, text in taken.items()
    }
    left = [f"{name}: left out, because it is no text" for name in parts if name not in taken]
    return renamed, [*map(new.text, (*notes, *left)), *new.kept()], new.done()


class _Seen:
    """What occurs in an archive, of each kind."""

    def __init__(self) -> None:
        self.of: dict[str, set[str]] = {kind: set() for kind in _FOUND.groupindex}
        self.users: set[str] = set()
        self.hosts: set[str] = set()  # with the nodes
        self.serials: set[str] = set()
        self.guids: set[str] = set()  # without colons
        self._strings: set[str] = set()  # of JSON: most nodes say the same

    def note(self, name: str, text: str) -> bool:
        """Note what a member holds; return whether it is JSON."""
        self._text(name)
        document = _parsed(text) if name.endswith(".json") else None
        if document is None:
            self._text(text)
            return False
        strings = {found[0] for found in _STRING.finditer(text)} - self._strings
        self._strings |= strings
        for one in strings:
            self._text(json.loads(one))
        self._walk(document)
        return True

    def _text(self, text: str) -> None:
        for found in _FOUND.finditer(text):
            kind = found.lastgroup or ""
            if kind == "system":
                self._text(found[0][1:].replace("/", " "))
            else:
                self.of[kind].add(found[0])
        self.users.update(found[found.lastgroup or 0] for found in _USERS.finditer(text))
        self.serials.update(found["name"] for found in _SERIALS.finditer(text))
        for found in _UNSEPARATED.finditer(text):
            (self.of["mac"] if found["mac"] else self.guids).add(found[found.lastgroup or 0])
        for found in _HOSTS.finditer(text):
            self.hosts.update(_LISTED.findall(found[found.lastgroup or 0]))

    def _walk(self, value: object) -> None:
        if isinstance(value, list):
            for item in value:
                self._walk(item)
        elif isinstance(value, dict):
            for key, inner in value.items():
                if isinstance(inner, str) and inner:
                    if key in _USER_KEYS:
                        self.users.add(inner)
                    elif key in _HOST_KEYS:
                        self.hosts.add(inner)
                    elif key.lower() in _SERIAL_KEYS:
                        self.serials.add(inner)
                self._walk(inner)


def _parsed(text: str) -> dict[str, object] | None:
    """Return an object of JSON; None of what is none, or too deep: a log may be called trace.json."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) and not too_deep(document, _DEEPEST) else None


class _New:
    """What stands in place of what occurs."""

    def __init__(self, seen: _Seen, random: Random) -> None:
        self._seen, self._random = seen, random
        self._ends: tuple[str, ...] = ()  # new words of nodes: behind others they would look like the name of one
        self._cache: dict[tuple[str, str], str] = {}  # by kind and old text
        self._strings: dict[tuple[str, str], str] = {}  # of JSON, by their key and the old one
        containers = {name[:_SHORT_ID] for name in seen.hosts if _CONTAINER.fullmatch(name)}
        hosts = {name for name in seen.hosts if _is_host(name) and name[:_SHORT_ID] not in containers}
        shapes = {shape for name in hosts for shape in _shapes_of(name)}
        self._ordinary = {name for name in hosts if not _shapes_of(name)}
        users = {name for name in seen.users if _is_name_of_user(name) and _shape(name) not in shapes}
        words, nodes = self._new_words(users, shapes)
        exact, self._users = self._new_users(users)
        exact |= {one: self._scrambled(one) for one in sorted(seen.serials) if any(map(str.isdigit, one))}
        for one in sorted({one for token in seen.of["words"] for one in _UNIQUE.findall(token)}):
            exact[one] = self._number(one) if re.fullmatch(_ID, one) else self._scrambled(one)
        ids = [one for kind in ("words", "hexadecimal") for token in seen.of[kind] for one in _PIECES.findall(token)]
        exact |= _new_ids({one for one in ids if _CONTAINER.fullmatch(one) and one[:_SHORT_ID] in containers}, random)
        known = {part for name in (hosts - self._ordinary) | users for part in (name, name.partition(".")[0])}
        exact |= {one: self._of_encoded(one) for one in sorted(_with_any_of(ids, _encodings(known)))}
        self._said = _said_of(self._users)
        of = seen.of
        v4 = {octets(text.partition("/")[0]) for text in of["v4"] if _is_v4(text)}
        v4 |= {
            octets(re.sub("[_-]", ".", f"{one['network']}.1")) for text in of["words"] for one in _INNER.finditer(text)
        }
        v6 = self._seen_v6 = {expanded(text) for text in of["v6"] if _is_v6(text)}
        v6 |= {address for text in of["hexadecimal"] if (address := _address_in(nibbles(text))[1])}
        self._guids = {*map(nibbles, of["guid"]), *map(_guid, seen.guids), *(address[16:] for address in v6)}
        self._addresses = Addresses(v4, v6, map(nibbles, of["mac"]), self._guids, random)
        networks = {_dotted(old): _dotted(new) for new, old in self._addresses.v4.pairs().items()}
        exact |= {one: self._unseparated(one) for one in seen.guids}
        for mac in map(nibbles, of["mac"]):  # enx025e10000102, an interface
            text = "".join(f"{digit:x}" for digit in mac)
            exact |= {begin + text: begin + _written(text, self._addresses.new_mac(mac)) for begin in ("", "enx")}
        self.names = Names(exact, words, nodes, tuple(sorted(shapes)), networks)

    def _new_words(self, users: Iterable[str], shapes: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
        """Return the new words that are put wherever the old ones are, and those of the names of nodes."""
        joined, known = _joined_of(shapes), frozenset(shapes)
        names = {name for token in self._seen.of["words"] for name in _UNIQUE.split(token)[::2]}
        pieces = {
            piece for name in names for part in _apart(name, joined, known)[::2] for piece in _PIECES.findall(part)
        }
        letters = {word for piece in pieces if not _PART_OF_NUMBER.fullmatch(piece) for word in _LETTERS.findall(piece)}
        letters.update(word for name in users for word in _LETTERS.findall(name))
        unknown = {word.lower() for word in letters if not _is_ordinary(word)}
        of_nodes = {word.lower() for shape in shapes for word in _words_of(shape)}
        self._used = {*unknown, *of_nodes}
        nodes = self._ordered(of_nodes, shapes, {_shape(piece).lower() for piece in pieces}, names)
        self._used.update(nodes.values())
        self._ends = tuple(new for new in nodes.values() if len(new) > 1)
        return {word: nodes.get(word) or self._unused(len(word)) for word in sorted(unknown)}, nodes

    def _ordered(self, words: set[str], shapes: Iterable[str], seen: set[str], texts: Iterable[str]) -> dict[str, str]:
        """Return new words of the same lengths in the same order, since a report lists nodes by name; of many in any.

        The names of `shapes` that they make have no shape that was seen in the archive, nor is one within `texts`.
        """
        text = "\n".join({_shape(one).lower() for one in texts})
        for _ in range(_TRIES if len(words) <= _MOST_ORDERED else 0):
            letters = Renumbered([tuple(map(ord, word)) for word in words], self._letters)
            new = {word: "".join(map(chr, letters.new(tuple(map(ord, word))))) for word in words}
            names = {_replaced(shape, new) for shape in shapes}
            fresh = all(
                self._is_unused(word) if len(word) > _SHORT else len(word) == 1 or not _HEXADECIMAL.issuperset(word)
                for word in new.values()
            )
            apart = names.isdisjoint(seen) and not any(one in text and _joined_of([one]) for one in names)
            if fresh and apart and not any(map(_COMMON.fullmatch, names)):
                return new
        return {word: self._unused(len(word)) for word in sorted(words)}

    def _letters(self, _: Digits, old: Sequence[int]) -> Mapping[int, int]:
        """Return other letters in the same order; where more than half of the alphabet occurs, in any order."""
        free = [ord(letter) for letter in string.ascii_lowercase if ord(letter) not in old]
        if len(free) >= len(old):
            return dict(zip(old, sorted(self._random.sample(free, len(old))), strict=True))
        return dict(zip(old, self._random.sample([*free, *old], len(old)), strict=True))

    def _is_unused(self, word: str) -> bool:
        used = word in self._used or word.endswith(self._ends) or _is_ordinary(word)
        return not used and not _HEXADECIMAL.issuperset(word)

    def _unused(self, length: int) -> str:
        """Return a word that nothing else has; a longer one where no such word is found."""
        for _ in range(_TRIES):
            word = "".join(self._random.choices(string.ascii_lowercase, k=max(length, _SHORT + 1)))
            if self._is_unused(word):
                self._used.add(word)
                return word
        return self._unused(length + 1)

    def _new_users(self, users: set[str]) -> tuple[dict[str, str], dict[str, str]]:
        """Return new names of users that no word of them makes unknown, and of those that are an ordinary word."""
        ordinary = {name for name in users if name.isalpha() and _is_ordinary(name)}
        others = {name for name in users - ordinary if not name.isalpha()}
        return (
            {name: self._scrambled(name) for name in sorted(others)},
            {name: self._unused(len(name)) for name in sorted(ordinary)},
        )

    def _scrambled(self, text: str) -> str:
        """Return other letters and other digits, in the same places."""
        kinds = (
            (str.isdigit, string.digits),
            (str.isupper, string.ascii_uppercase),
            (str.isalpha, string.ascii_lowercase),
        )
        new = "".join(next((self._random.choice(of) for is_one, of in kinds if is_one(char)), char) for char in text)
        if new == text or new in self._used:
            return self._scrambled(text)
        self._used.add(new)
        return new

    def document(self, text: str) -> str:
        """Return JSON under the new names."""
        key = ""

        def string(found: re.Match[str]) -> str:
            nonlocal key
            if text.startswith(":", found.end()):
                key = found[0]
            if (key, found[0]) not in self._strings:
                self._strings[key, found[0]] = self._string(key, found[0])
            return self._strings[key, found[0]]

        return _STRING.sub(string, text)

    def _string(self, key: str, old: str) -> str:
        """Return a string of JSON under the new names. `key`: what names it."""
        text, name = json.loads(old), json.loads(key or '""')
        new = (name in _USER_KEYS and self._users.get(text)) or self.text(text, f"{name}: ")
        return old if new == text else json.dumps(new)

    def text(self, text: str, before: str = "") -> str:
        """Return a text under the new names. `before`: what it is behind."""
        if self._said:
            text = self._said.sub(
                lambda found: (found["before"] or "") + self._users[found["name"] or found["login"]], text
            )
        return _FOUND.sub(lambda found: self._token(found, before), text)

    def _token(self, found: re.Match[str], before: str = "") -> str:
        kind, old = found.lastgroup or "", found[0]
        if kind == "v4" and _VERSION.search(before + found.string[max(0, found.start() - _BEFORE) : found.start()]):
            return old
        if (kind, old) not in self._cache:
            self._cache[kind, old] = self.names.exact.get(old) or getattr(self, f"_{kind}")(old)
        return self._cache[kind, old]

    def _escape(self, old: str) -> str:
        return old

    def _number(self, old: str) -> str:
        """Return other digits; zeros stay."""
        return _written(old, [digit and self._random.randrange(1, 16) for digit in nibbles(old)])

    def _of_encoded(self, old: str) -> str:
        """Return another text in hexadecimal or base64."""
        begin = "0x" * old.startswith("0x")
        is_hexadecimal = all(char in string.hexdigits for char in old[len(begin) :])
        return begin + self._number(old[len(begin) :]) if is_hexadecimal else self._scrambled(old)

    def _key(self, old: str) -> str:
        begin = "SHA256:" if old.startswith("SHA256:") else "AAAA"
        return begin + self._scrambled(old.removeprefix(begin))

    def _mac(self, old: str) -> str:
        digits = nibbles(old)
        return _written(old, self._addresses.new_mac(digits)) if len(digits) != _MD5 else self._number(old)

    def _guid(self, old: str) -> str:
        return _written(old, self._addresses.new_guid(nibbles(old)))

    def _unseparated(self, old: str) -> str:
        """Return another GUID for one without colons, perhaps without the zeros at its beginning."""
        return _written(old, self._addresses.new_guid(_guid(old))[-len(old) :])

    def _v4(self, old: str) -> str:
        return self.names.v4(old) if _is_v4(old) else old

    def _v6(self, old: str) -> str:
        if not _is_v6(old):
            return _FOUND.sub(self._token, old.replace(":", " ")).replace(" ", ":")
        moved = self._addresses.new_v6(expanded(old))
        groups = ["".join(f"{digit:x}" for digit in moved[at : at + 4]) for at in range(0, len(moved), 4)]
        begin, _, end = old.partition("::")
        new = iter([*groups[: begin.count(":") + 1 if begin else 0], *(groups[-end.count(":") - 1 :] if end else [])])
        text = re.sub(r"\w+", lambda group: next(new).lstrip("0").rjust(len(group[0]), "0"), old)
        if expanded(text) != moved:  # a group that was left out is no longer zero
            text = str(IPv6Address(int("".join(groups), 16)))
        return text if old == old.lower() else text.upper()

    def _hexadecimal(self, old: str) -> str:
        begin = "0x" * old.startswith("0x")
        digits = nibbles(old[len(begin) :])
        if _guid(old[len(begin) :]) in self._guids:
            return begin + self._unseparated(old[len(begin) :])
        if begin or len(old) < _LONG or len(old) in _HASHES:
            return old
        new, (place, address) = self._number(old), _address_in(digits)
        if address:
            moved = self._addresses.new_v6(address)[place.start - place.stop :]
            new = new[:16] + old[16 : place.start] + _written(old[place], moved) + new[place.stop :]
        return new

    def _system(self, old: str) -> str:
        """Return a path beneath /sys, /proc or /dev, in which no part names a node."""
        return "/".join(_FOUND.sub(self._part_of_path, part) for part in old.split("/"))

    def _part_of_path(self, found: re.Match[str]) -> str:
        return self.names.token(found[0], nodes=False) if found.lastgroup == "words" else self._token(found)

    def _words(self, old: str) -> str:
        return self.names.token(old)

    def done(self) -> Names:
        """Return all that was replaced, by what is there now."""
        exact = {
            old: new for (kind, old), new in self._cache.items() if kind in ("key", "mac", "guid", "v6", "hexadecimal")
        }
        for address in self._seen_v6:  # a report writes it as it likes, and its network
            exact |= dict(zip(_forms(address), _forms(self._addresses.new_v6(address)), strict=True))
        return replace(self.names, exact={**exact, **self.names.exact, **self._users}).inverse()

    def kept(self) -> list[str]:
        """Return what could not be replaced."""
        stay = {text for (kind, text), new in self._cache.items() if kind == "v4" and text == new and _is_v4(text)}
        return [
            *(f"{name} is an ordinary word, and stays" for name in sorted(self._ordinary)),
            *(f"{text} stays" for text in sorted(stay) if not is_kept(octets(text.partition("/")[0]))),
        ]


def _new_ids(ids: Iterable[str], random: Random) -> dict[str, str]:
    """Return other numbers of containers, which begin alike where the old ones do, and have the same order."""

    def choose(_: Digits, old: Sequence[int]) -> Mapping[int, int]:
        new: dict[int, int] = {}
        for of in (string.digits, "abcdef"):
            wanted = [char for char in old if chr(char) in of]
            new |= dict(zip(wanted, sorted(random.sample([*map(ord, of)], len(wanted))), strict=True))
        return new

    pairs = {one: tuple(map(ord, one)) for one in sorted(ids)}
    numbers = Renumbered(pairs.values(), choose)
    return {one: "".join(map(chr, numbers.new(chars))) for one, chars in pairs.items()}


def _encodings(names: Iterable[str]) -> set[str]:
    """Return what is in each text in hexadecimal or base64 that has one of these names; of no short ones, by chance."""
    found = set()
    for raw in (name.encode() for name in names if len(name) >= _LEAST_ENCODED):
        found |= {raw.hex(), raw.hex().upper()}
        for before in range(3):  # bytes: of the name's first and last character a digit of base64 may have a part only
            coded = b64encode(bytes(before) + raw).decode()
            found.add(coded[-(-8 * before // 6) : 8 * (before + len(raw)) // 6])
    return found


def _with_any_of(texts: Iterable[str], wanted: Collection[str]) -> set[str]:
    """Return the texts in which one of these is."""
    if not wanted:
        return set()
    begins = re.compile("|".join(f"(?={begin})" for begin in sorted({re.escape(one[:4]) for one in wanted})))
    lengths = {len(one) for one in wanted}
    return {
        text for text in texts for found in begins.finditer(text)
        if any(text[found.start() : found.start() + length] in wanted for length in lengths)
    }  # fmt: skip


def _is_host(name: str) -> bool:
    plain = _shape(name).replace("#", "0")
    ending = plain.rpartition(".")[2]
    return (
        is_name(plain) and any(map(str.isalpha, plain)) and plain.lower() not in _NO_NAMES and ending not in _OF_FILES
    )


def _is_name_of_user(name: str) -> bool:
    return name.lower() not in _NO_NAMES and sum(map(str.isalnum, name)) > 1


def _shapes_of(name: str) -> list[str]:
    """Return the shapes of what names a node: of gpu01.hpc.example.org also gpu#, hpc.example.org and example.org.

    None of a name that is an ordinary word, or that of a device.
    """
    labels = _shape(name).split(".")
    shapes = [".".join(labels[at:]) for at in range(len(labels) - 1)]
    first = labels[0]
    if not _DEVICE.fullmatch(first) and ("#" in first or not all(map(_is_ordinary, _LETTERS.findall(first)))):
        shapes.append(first)
    return [*shapes, *(shape.lower() for shape in shapes if not shape.islower())]


def _words_of(shape: str) -> list[str]:
    """Return the words of a name, without its top-level domain."""
    before, dot, last = shape.rpartition(".")
    top = dot and (last in _TOP_LEVEL or len(last) == _SHORT)
    return _LETTERS.findall(before if top else shape)


def _said_of(names: Iterable[str]) -> re.Pattern[str] | None:
    """Return what finds these names where they are those of users."""
    any_of = "|".join(map(re.escape, names))
    before = rf"{_BEFORE_USER}|USER=| of | user | for |\d\("
    return (
        re.compile(rf"(?P<before>{before})(?P<name>{any_of})(?![\w.\[-])|(?<![\w.-])(?P<login>{any_of})(?=@)")
        if any_of
        else None
    )


def _is_v4(text: str) -> bool:
    address, _, length = text.partition("/")
    numbers = [int(number) for number in address.split(".") if number == "0" or number[0] != "0"]
    return len(numbers) == 4 and max(numbers) <= 255 and int(length or 0) <= _WHOLE  # noqa: PLR2004


def _is_v6(text: str) -> bool:
    """Return whether this is an address of at least two groups: "c10::" is none."""
    try:
        IPv6Address(text)
    except AddressValueError:
        return False
    return len(re.findall(r"\w+", text)) > 1


def _forms(digits: Digits) -> tuple[str, ...]:
    """Return how an IPv6 address and its network may be written."""
    address = IPv6Address(int("".join(f"{digit:x}" for digit in digits), 16))
    network = IPv6Address(int(address) >> 64 << 64)
    return str(address), address.exploded, str(network), network.exploded


def _address_in(identifier: Digits) -> tuple[slice, Digits]:
    """Return where an identifier of NCCL has the address at which it listens, and the 32 digits of that one as of IPv6.

    Eight bytes at random, the family, the port, and the address.
    """
    family = identifier[16:20] if len(identifier) > _LONGEST_HASH else ()
    if family == (0, 2, 0, 0):
        return slice(24, 32), (*MAPPED, *identifier[24:32])
    return slice(32, 64), identifier[32:64] if family == (0, 10, 0, 0) else ()


def _guid(text: str) -> Digits:
    """Return the 16 digits of a GUID without colons; more, of what is none."""
    return nibbles(text.rjust(_GUID, "0"))


def _dotted(numbers: Iterable[int]) -> str:
    return ".".join(map(str, numbers))


def _written(old: str, digits: Iterable[int]) -> str:
    """Return a number in hexadecimal as the old one is written."""
    new = iter(digits)
    text = "".join([f"{next(new):x}" if char in string.hexdigits else char for char in old])
    return text if old == old.lower() else text.upper()


def restored(text: str, document: str) -> str:
    """Return a text, an answer to the bundle, under the old names. Raises ValueError if it is no file of names."""
    known = json.loads(document)
    if not isinstance(known, dict) or known.pop("ncheck_names", None) != FORMAT:
        raise ValueError("is no file of names that ncheck bundle wrote")
    names: Names = decoded(known, Names)

    def token(found: re.Match[str]) -> str:
        kind, new = found.lastgroup, found[0]
        if new in names.exact:
            return names.exact[new]
        if kind == "v4" and _is_v4(new):
            return names.v4(new)
        if kind == "system":
            return "/".join(_FOUND.sub(token, part) for part in new.split("/"))
        return names.token(new) if kind == "words" else new

    return _FOUND.sub(token, text)
