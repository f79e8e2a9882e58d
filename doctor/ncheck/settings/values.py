"""Valid values: one reader per setting, the same for an option, a variable and a line of ncheck.toml.

A reader takes text, or what TOML or click made of it. It raises ValueError with the valid values.
"""

from __future__ import annotations

import math
import os
import re
import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from ncheck.hostlist import is_name, quoted, unfold
from ncheck.lazy_dataclass import dataclass
from ncheck.model.op import SETS, Op
from ncheck.text import printable

if TYPE_CHECKING:
    from ncheck.facts.expected import ExpectedFacts

# Formats of the report, each a module of this name in report/.
FORMATS = (
    "console", "table", "concise", "json", "html", "markdown", "junit", "openmetrics", "nagios", "github", "slurm",
    "kubernetes",
)  # fmt: skip
# Columns of -o table, each with its cell in report/table.py.
COLUMNS = ("node", "state", "gpus", "driver", "nccl", "nic", "rails", "busbw", "worst")
Read = Callable[[object], object]
_FAIL_ON = ("error", "warning", "info", "unknown")
_NEVER = ("never", "none")
ELEMENT = 4  # bytes of a float
LEAST_SIZE, LARGEST_SIZE = 8, 64 * 2**30
_LONGEST_INTERFACE = 15  # bytes: IFNAMSIZ of the kernel, less one
_FASTEST = 1e6  # GB/s
_SLOWEST_LINK, _FASTEST_LINK = 0.001, 10_000  # Gb/s
_DAY = 86400


def text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected text, not {printable(repr(value), 60)}")  # noqa: TRY004  a wrong value, reported like others
    if not value.strip():
        raise ValueError("it is empty")
    if not value.isprintable():
        raise ValueError("it contains unprintable characters")
    return value


def path(value: object) -> str:
    """Read a path on this machine; in a settings file it is relative to the file's folder."""
    return text(value)


def web_address(value: object) -> str:
    """Read an http or https URL; no message repeats it, because that of a webhook is a secret."""
    from urllib.parse import urlsplit

    address = value if isinstance(value, str) else ""
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.username and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not address.isascii() or not address.isprintable() or " " in address:
        raise ValueError("expected a URL that begins with https:// or http://")
    return address


def site_address(value: object) -> str:
    """Read the URL of a site, behind which the path of a page is written."""
    address = web_address(value)
    if "?" in address or "#" in address:
        raise ValueError("expected the URL of a folder, without ? and #: the path of a page is written behind it")
    return address


def shell_line(value: object) -> str:
    """Read a shell line; it is sent to the node as one line."""
    if isinstance(value, str) and ("\n" in value or "\r" in value):
        raise ValueError(
            "it contains a line break; join the commands with ';', as in 'module load nccl; source env.sh'"
        )
    if value == "":
        return ""
    return text(value)


def argv(value: object) -> str:
    """Read a command that is split into words without a shell."""
    command = shell_line(value)
    try:
        shlex.split(command)
    except ValueError as error:
        raise ValueError(f"it cannot be split into words: {str(error).lower()}") from None
    return command


def user(value: object) -> str:
    name = text(value)
    if name.startswith("-") or any(char in name for char in " '\"`;&<>|(){}$\\"):
        raise ValueError(f"{quoted(name)} is not a user name")
    return name


def flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    words = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    if not isinstance(value, str) or value.lower() not in words:
        raise ValueError(f"expected true or false, not {printable(repr(value), 60)}")
    return words[value.lower()]


def whole(least: int, most: int) -> Read:
    def read(value: object) -> int:
        text = str(value) if isinstance(value, (int, str)) and not isinstance(value, bool) else ""
        if not (text.isascii() and text.isdigit() and len(text) < len(str(most)) + 2 and least <= int(text) <= most):
            raise ValueError(f"expected a whole number from {least} to {most}, not {quoted(str(value))}")
        return int(text)

    return read


PORT = whole(1, 65535)


def time_limit(value: object) -> float:
    seconds = _number(value)
    if not 0 < seconds < math.inf:
        raise ValueError(f"expected a number of seconds above 0, not {quoted(str(value))}")
    return seconds


def percent(value: object) -> float:
    """Read 5 or "5%"."""
    share = _number(value.removesuffix("%") if isinstance(value, str) else value)
    if not 0 < share <= 100:  # noqa: PLR2004  all of it
        raise ValueError(f"expected a share above 0% and up to 100%, not {quoted(str(value))}")
    return share


def at_most_a_day(value: object) -> float:
    seconds = time_limit(value)
    if seconds > _DAY:
        raise ValueError(f"expected at most {_DAY} seconds (a day), not {quoted(str(value))}")
    return seconds


def ops(value: object) -> tuple[Op, ...]:
    """Read operations and sets of them: "all-reduce,all-to-all", "moe"; a list in ncheck.toml and in Python.

    Without the hyphens they are known, too: "alltoall", as programs call them.
    """
    values = value if isinstance(value, (list, tuple)) else (value,)
    words = [word for one in values for word in text(one).split(",")]
    known = {op.value: (op,) for op in Op} | SETS
    plain = {name.replace("-", ""): found for name, found in known.items()}
    ops: list[Op] = []
    for word in map(text, words or [""]):
        found = plain.get(word.strip().replace("-", "").replace("_", ""))
        if found is None:
            raise ValueError(f"expected {', '.join(known)}, not {quoted(word)}")
        ops += found
    return tuple(dict.fromkeys(ops))


def sizes(value: object) -> tuple[int, ...]:
    """Read "8-1G" (powers of two), "1M,64M,1G", or a list of these: bytes per rank, K is 1024."""
    values = value if isinstance(value, (list, tuple)) else (value,)
    parts = [part.strip() for text in values for part in str(text).split(",")]
    if not all(parts):
        raise ValueError(f"{quoted(','.join(map(str, values)))} lacks a size; write 8-1G, or 1M,64M,1G")
    return tuple(sorted({size for part in parts for size in _range_of_sizes(part)}))


def _range_of_sizes(text: str) -> list[int]:
    first, dash, last = text.partition("-")
    if not dash:
        return [_size(text)]
    if not (first.strip() and last.strip()):
        raise ValueError(f"{quoted(text)} lacks one end; write both, as in 8-1G")
    least, most = _size(first), _size(last)
    if least > most:
        raise ValueError(f"{quoted(text)} is reversed; write the smaller size first, as in 8-1G")
    return [size for power in range(most.bit_length()) if least <= (size := least << power) <= most]


def _size(text: str) -> int:
    # 8   |   64K   |   1M   |   1GiB   |   8GB
    found = re.fullmatch(r"(\d{1,12})([KMG]?)(?:i?B)?", text.strip(), re.ASCII | re.IGNORECASE)
    if not found:
        raise ValueError(f"{quoted(text)} is not a size; write bytes per rank, as in 8, 64K, 1M, 1G, 8-1G or 1M,64M,1G")
    size = int(found[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[found[2].upper()]
    if not LEAST_SIZE <= size <= LARGEST_SIZE or size % ELEMENT:
        raise ValueError(
            f"{quoted(text)}: expected a size from 8 bytes to 64G, a multiple of {ELEMENT} bytes (a float)"
        )
    return size


def _bandwidth(value: object) -> float:
    number = _number(value)
    if not 0 < number < _FASTEST:
        raise ValueError(f"expected a bus bandwidth in GB/s, as in 380, not {quoted(str(value))}")
    return number


def link_speed(value: object) -> float:
    """Read the speed of one NIC."""
    number = _number(value)
    if not _SLOWEST_LINK <= number <= _FASTEST_LINK:
        raise ValueError(f"expected the Gb/s of one NIC, from {_SLOWEST_LINK:g} to {_FASTEST_LINK}, as in 25, not "
                         f"{quoted(str(value))}")  # fmt: skip
    return number


def _number(value: object) -> float:
    """Read a number of a file, or as people write it: Python would take 1_0 and the digits of any script, too."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return math.nan
    if isinstance(value, str) and not re.fullmatch(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*", value):
        return math.nan
    try:
        return float(value)
    except OverflowError:  # a whole number of a file with more than 308 digits
        return math.inf


_VERSIONS = ("driver", "cuda", "nccl", "mpi", "horovod", "python")
FRAMEWORKS = (
    "torch", "tensorflow", "jax", "oneflow", "paddlepaddle", "paddlepaddle-gpu", "mxnet", "deepspeed", "mpi4py",
    "accelerate", "lightning", "pytorch-lightning", "transformers", "megatron-core", "vllm", "sglang", "ray",
)  # fmt: skip
_MOST_OF_ONE = 1024  # GPUs or HCAs of a node


def expected(value: object) -> tuple[float | None, ExpectedFacts | None]:
    """Read "gpus=8,nccl=2.21.5", a table of these, or a bus bandwidth alone."""
    if isinstance(value, (int, float)) or (isinstance(value, str) and "=" not in value):
        return _bandwidth(value), None
    if isinstance(value, str):
        value = dict(_named(part) for part in value.split(",") if part.strip())
    if not isinstance(value, Mapping):
        raise ValueError("expected NAME=VALUE, as in gpus=8,nccl=2.21.5,hcas=8,rate=400,driver=550")  # noqa: TRY004  a wrong value, reported like others
    from ncheck.facts.expected import ExpectedFacts

    read = {str(name): _expectation(str(name), one) for name, one in value.items()}
    busbw = cast("float | None", read.pop("busbw", None))
    own = {name: read.pop(name) for name in ("gpus", "gpu", "hcas", "rate", "commit") if name in read}
    return busbw, ExpectedFacts(**own, versions=read) if own or read else None  # type: ignore[arg-type]  # each read by name


def _named(part: str) -> tuple[str, str]:
    """Part "driver=550", and "driver>=550" too."""
    name, is_, value = part.partition("=")
    if not (is_ and name.strip() and value.strip()):
        raise ValueError(f"{quoted(part.strip())} is not NAME=VALUE, as in nccl=2.21.5")
    least = name.endswith(">")
    return name.removesuffix(">").strip(), (">=" if least else "") + value.strip()


def _expectation(name: str, value: object) -> object:
    text = "" if isinstance(value, bool) else str(value).strip()
    patterns = {
        "gpu": r"[\w .+-]{1,80}",
        "commit": r"[0-9a-f]{7,64}",
        **dict.fromkeys((*_VERSIONS, *FRAMEWORKS), r"(?:>=)?\d[\w.+-]{0,60}"),
    }
    numbers: dict[str, Read] = {
        **dict.fromkeys(("gpus", "hcas"), whole(0, _MOST_OF_ONE)), **dict.fromkeys(("busbw", "rate"), _bandwidth),
    }  # fmt: skip
    if name in numbers:
        try:
            return numbers[name](text)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    if name not in patterns:
        raise ValueError(f"{quoted(name)} cannot be expected; known: gpus, hcas, rate, busbw, {', '.join(patterns)}")
    if not re.fullmatch(patterns[name], text, re.ASCII):
        examples = {"gpu": "words of its name, as in H100", "commit": "7 to 64 digits of a commit, as in 97ff6cf"}
        example = examples.get(name, "a version, as in 2.21.5 or >=2.19")
        raise ValueError(f"{name}: expected {example}, not {quoted(text)}")
    return text


@dataclass(frozen=True)
class OneOf:
    choices: tuple[str, ...]

    def __call__(self, value: object) -> str:
        if value not in self.choices:
            raise ValueError(f"expected one of {', '.join(self.choices)}, not {quoted(str(value))}")
        return str(value)


def names(value: object) -> tuple[str, ...]:
    """Read "a,b", or a list of such texts."""
    if isinstance(value, str):
        value = (value,)
    if not isinstance(value, (list, tuple)) or not all(isinstance(word, str) for word in value):
        raise ValueError("expected text or a list of text")
    words = tuple(part.strip() for word in value for part in word.split(","))
    if not all(is_name(word) for word in words):
        raise ValueError(f"{quoted(','.join(words))} is not a list of names, as in a,b")
    return words


def columns(value: object) -> tuple[str, ...]:
    """Read "node,state", or a list of these, also as the table writes them; the order counts."""
    words = tuple(map(str.lower, names(value)))
    for word in words:
        if word not in COLUMNS:
            raise ValueError(f"{quoted(word)} is not one of {', '.join(COLUMNS)}")
    return words


def fail_on(value: object) -> tuple[str, ...]:
    words = names(value)
    known = (*_FAIL_ON, *_NEVER)
    for word in words:
        if word not in known:
            raise ValueError(f"{quoted(word)} is not one of {', '.join((*_FAIL_ON, _NEVER[0]))}")
    if any(word in _NEVER for word in words):
        if len(words) > 1:
            raise ValueError(f"{_NEVER[0]} cannot be combined with other values")
        return _NEVER[:1]
    return tuple(dict.fromkeys(words))


def ignores(value: object) -> tuple[tuple[str, str | None], ...]:
    """Read CHECK, CHECK=nodes, a,b or a,b=nodes, or a list of these: what follows = are the nodes of each check."""
    values = (value,) if isinstance(value, str) else value
    if not isinstance(values, (list, tuple)):
        raise ValueError("expected CHECK or CHECK=nodes, or a list of these")  # noqa: TRY004  a wrong value, reported like others
    return tuple(ignored for one in values for ignored in _ignored(one))


def _ignored(value: object) -> list[tuple[str, str | None]]:
    if not isinstance(value, str):
        raise ValueError("expected CHECK or CHECK=nodes")  # noqa: TRY004  a wrong value, reported like others
    before, equals, nodes = (part.strip() for part in value.partition("="))
    checks = [check.strip() for check in before.split(",")]
    for check in checks:
        if not is_name(check):
            raise ValueError(f"{quoted(check)} is not a check; write its code or name, as in NC305 or NC305=node07")
    if equals and not nodes:
        raise ValueError(f"{quoted(value)} names no node; write {before}=node07, or {before} alone for all nodes")
    if equals:
        unfold(nodes)
    return [(check, nodes or None) for check in checks]


def ports(value: object) -> tuple[int, ...]:
    """Read one port, "29500,9988", or a list of these."""
    values = value if isinstance(value, (list, tuple)) else (value,)
    parts = [part.strip() if isinstance(part, str) else part for one in values for part in _parts(one)]
    return tuple(dict.fromkeys(cast("int", PORT(part)) for part in parts))


def _parts(value: object) -> list[object]:
    return list(value.split(",")) if isinstance(value, str) else [value]


_MOST_PATHS, _LONGEST_PATH = 16, 4096


def paths(value: object) -> tuple[str, ...]:
    """Read one absolute path, or a list of these: they are looked for on the nodes."""
    values = value if isinstance(value, (list, tuple)) else (value,)
    paths = tuple(dict.fromkeys(os.path.normpath(text(one)) for one in values))
    for path in paths:
        if not path.startswith("/") or len(path) > _LONGEST_PATH:
            raise ValueError(f"{quoted(path)} is not an absolute path, as in /data/imagenet")
    if len(paths) > _MOST_PATHS:
        raise ValueError(f"expected at most {_MOST_PATHS} paths")
    return paths


def interface(value: object) -> str:
    """Read the name of a network interface: at most 15 bytes, no slash, no space."""
    name = text(value)
    if len(name.encode()) > _LONGEST_INTERFACE or not is_name(name):
        raise ValueError(f"{quoted(name)} is not an interface name, as in eth0; to list the names: ip -br link")
    return name


@dataclass(frozen=True)
class Output:
    """One -o: a format, and the file to write it to. None is standard output."""

    form: str
    path: str | None = None


def outputs(value: object) -> tuple[Output, ...]:
    """Read FORMAT or FORMAT=PATH, or a list of these; standard output takes one."""
    values = value if isinstance(value, (list, tuple)) else (value,)
    outputs = tuple(_output(one) for one in values)
    printed = [one.form for one in outputs if one.path is None]
    if len(printed) > 1:
        raise ValueError(
            f"standard output takes one format, not {' and '.join(printed)}: write the other to a file, as in "
            f"-o {printed[-1]}=FILE"
        )
    return outputs


def _output(value: object) -> Output:
    form, equals, path = text(value).partition("=")
    if form not in FORMATS:
        raise ValueError(f"expected one of {', '.join(FORMATS)}, or FORMAT=FILE, not {quoted(str(value))}")
    return Output(form, os.path.expanduser(text(path)) if equals else None)  # noqa: PTH111  a shell leaves ~ after =


def program(value: object) -> tuple[str, ...]:
    """Read the words of a command line; they are quoted where they appear in a line to type."""
    if not isinstance(value, (list, tuple)) or not all(isinstance(word, str) for word in value):
        raise ValueError("expected a list of words")
    return tuple(value)
