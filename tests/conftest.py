"""What all tests share: real libraries of NCCL and headers, fetched once into a cache folder, some 200 MB a wheel."""

from __future__ import annotations

import fcntl
import gc
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from _pytest.assertion.rewrite import AssertionRewritingHook
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from . import flake_rule
from .compiled import CACHE, compiled
from .skips import cannot

LAB = Path(__file__).parent / "lab"
# Markers of tests by what they use.
MARKED_BY_FIXTURE = {"ssh": {"keys", "sshd", "empty_agent"}, "network": {"nccl_folder", "from_wheel"}}
FIRST = ("lab", "ssh", "slow")
# In tests/lab: those of one file share hosts.
SHARING_HOSTS = (
    "amd", "fast_network", "launch_lines", "limits", "links", "mesh", "nccl_pick", "network", "no_plan",
    "preflight", "sick", "slurm", "triage_sockets", "unreached",
)  # fmt: skip
_PIP_DOWNLOAD = (sys.executable, "-m", "pip", "download", "-qq", "--retries", "1", "--no-deps", "--only-binary=:all:")
ENVIRON = dict(os.environ)  # as it was found: pip's settings may lie in a home
IN_WHEEL = "nvidia/nccl/lib/libnccl.so.2"

# jsonschema would import it to check a format that no schema here has: 38 grammars, a third of each worker's start.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # None: its import fails


def pytest_addoption(pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.register(flake_rule)


def pytest_configure() -> None:
    """Let ^C be heard, here and in what tests start: whoever is started in the background of a script ignores it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class ByFile(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives each worker whole files of tests: what the tests of one file share is made once. The lab's wait for long,
    and are given one at a time, but for those that share hosts.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        shared = not file.startswith("tests/lab/") or Path(file).stem.removeprefix("test_") in SHARING_HOSTS
        return file if shared else nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    """Give out the tests in the order of collection; xdist's own would begin with the largest file."""
    config.option.loadscopereorder = False
    return ByFile(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Let each worker compile its share of the test files; in a fresh clone all would compile all, for 9 s each.

    The tests and their modules stay until the end: no garbage is looked for among them, neither meanwhile, where it
    would take a quarter of the time, nor afterwards.
    """
    worker = getattr(session.config, "workerinput", None)
    if worker and not sys.dont_write_bytecode:
        files = sorted(file for name in session.config.args for file in Path(name).rglob("test_*.py"))
        for file in files[int(worker["workerid"].removeprefix("gw")) :: worker["workercount"]]:
            _compile(file)
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def _compile(file: Path) -> None:
    """Let pytest rewrite the assertions of a file and keep what it compiled; nothing of the file runs."""
    hook = next(finder for finder in sys.meta_path if isinstance(finder, AssertionRewritingHook))
    spec = importlib.util.spec_from_file_location(file.stem, file, loader=hook)
    assert spec
    module = importlib.util.module_from_spec(spec)
    vars(module)["__builtins__"] = {}  # without __import__, the first statement of the file fails
    with suppress(Exception):  # what is wrong with a file is said when it is collected
        hook.exec_module(module)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by what they use, and begin with those that wait: at the end the others would wait for them."""
    within = {path: LAB in path.parents for path in {item.path for item in items}}
    for item in items:
        if within[item.path]:
            item.add_marker("lab")
        used = getattr(item, "fixturenames", ())
        for marker, fixtures in MARKED_BY_FIXTURE.items():
            if not fixtures.isdisjoint(used):
                item.add_marker(marker)
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    """Return 0 for tests of the first kind that begins, and more for each later kind."""
    marked = {mark.name for mark in item.iter_markers()}
    return next((number for number, marker in enumerate(FIRST) if marker in marked), len(FIRST))


@pytest.fixture(scope="session", autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let no start-up file, key or setting in the home of who runs the tests have a say in them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(scope="session", autouse=True)
def own_python() -> Iterator[None]:
    """Let python3 be a program: a script of pyenv's that looks for one costs more at each start than python3 itself."""
    with pytest.MonkeyPatch.context() as patch:
        found = shutil.which("python3")
        if found and Path(found).read_bytes()[:2] == b"#!":
            patch.setenv("PATH", str(Path(sys.base_prefix, "bin")), prepend=os.pathsep)
        yield


@pytest.fixture(scope="session")
def nccl_folder(from_wheel: Callable[[str, str, str], Path]) -> Callable[[str], Path]:
    """Return a function from a release to the folder that holds its libnccl.so.2."""
    return lambda release: from_wheel(f"nvidia-nccl-cu12=={release}", IN_WHEEL, f"nccl/{release}").parent


@pytest.fixture(scope="session")
def from_wheel() -> Callable[[str, str, str], Path]:
    """Return a function from a requirement, a file in its wheel and a folder of the cache to that file."""

    def file(wanted: str, inside: str, folder: str) -> Path:
        found = CACHE / folder / Path(inside).name
        if not found.exists() and (why := _fetch_once(wanted, inside, found)):
            words = (
                f"{wanted} cannot be fetched here, so what a real one has is not tested: {why} "
                f"(pip download --no-deps {wanted}; its {inside} belongs into {found.parent})"
            )
            cannot(words)
        return found

    return file


@pytest.fixture
def alone_in_shm() -> Iterator[None]:
    """Let no neighbour run an agent's ranks meanwhile: whoever cleans up takes what nobody holds for its own."""
    with Path(tempfile.gettempdir(), f"ncheck-tests-{os.geteuid()}-shm").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def standins(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function from flags for the compiler to a folder with stand-ins for NCCL and the drivers of GPUs."""
    if not shutil.which("cc"):
        cannot("there is no C compiler to make stand-ins for NCCL with: apt-get install gcc")
    sources, made = Path(__file__).parent / "standins" / "nccl", dict[tuple[str, ...], Path]()

    def built(*flags: str) -> Path:
        if flags not in made:
            folder = tmp_path_factory.mktemp("standins")
            libraries = {"cuda": "libcuda.so.1", "nccl": "libnccl.so.2", "hip": "libamdhip64.so.6"}
            if "-DRCCL" in flags:
                libraries = {"nccl": "librccl.so.1", "hip": libraries["hip"]}
            for name, called in libraries.items():
                argv = ["cc", "-std=gnu11", "-O2", "-shared", "-fPIC", "-pthread", *flags]
                shutil.copy(compiled(argv, (str(sources / f"{name}.c"), "-ldl")), folder / called)
            made[flags] = folder
        return made[flags]

    return built


def _fetch_once(wanted: str, inside: str, found: Path) -> str:
    """Fetch it where no neighbour does; return why it cannot be. One try a run: with no network, pip takes a minute."""
    found.parent.mkdir(parents=True, exist_ok=True)
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    with (found.parent / "failed").open("a+") as failed:
        fcntl.flock(failed, fcntl.LOCK_EX)
        failed.seek(0)
        of_run, _, why = failed.read().partition("\n")
        if of_run == run or found.exists():
            return why if of_run == run else ""
        why = _fetch(wanted, inside, found)
        failed.truncate(0)
        failed.write(f"{run}\n{why}" if why else "")
        return why


def _fetch(wanted: str, inside: str, found: Path) -> str:
    """Download the wheel, keep the file alone; whoever looks sees a whole one or none. Return what pip says else."""
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        done = subprocess.run(
            [*_PIP_DOWNLOAD, "-d", folder, wanted], env=ENVIRON, check=False, capture_output=True, text=True
        )
        if done.returncode:
            return (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            unpacked = archive.extract(inside, folder)
        Path(unpacked).replace(found)
    return ""
