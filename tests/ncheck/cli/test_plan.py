"""ncheck plan on recorded clusters, over real SSH on loopback: what stands on standard output, and what does not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import ncheck
import ncheck_checks
import pytest
from ncheck.cli.main import main
from ncheck.demo import recorded_cluster
from ncheck.demo.server import lay_out

PACKAGES = (
    *(str(Path(str(one.__file__)).parents[1]) for one in (ncheck, ncheck_checks)),
    sysconfig.get_path("purelib"),
)
NCHECK = f"import sys; sys.path[:0] = {PACKAGES!r}; from ncheck.__main__ import main; sys.exit(main())"

FIXTURES = Path(__file__).parents[3] / "fixtures"
PATIENT = ("--connect-timeout", "60", "--command-timeout", "60", "--deadline", "240")  # servers and head in one process
ROOT = "--allow-run-as-root " if os.geteuid() == 0 else ""  # who types the line


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[str]]]:
    """Serve a healthy cluster, one whose bridges NCCL would pick and one with a node down; map each to its words."""
    with ExitStack() as stack:
        words = {}
        for name in ("healthy-4x8-h100", "docker0-and-veth", "one-node-down"):
            nodes, config = lay_out(recorded_cluster(name), tmp_path_factory.mktemp(name), stack)
            words[name] = ["plan", str(nodes), "-F", str(config), "--transport", "paramiko", *PATIENT]
        yield words


def told(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    code = main(args)
    out, err = capsys.readouterr()
    return code, out, err


def eval_in_a_shell(*args: str) -> subprocess.CompletedProcess[str]:
    """Do what a job script does: eval "$(ncheck plan ... --for env)", and go on where it worked."""
    script = 'eval "$("$@")" || exit 7; echo "$NCCL_SOCKET_IFNAME"'
    words = ["sh", "-c", script, "sh", sys.executable, "-c", NCHECK, *args]
    return subprocess.run(
        words, capture_output=True, text=True, check=False, timeout=120, env={**os.environ, "NCHECK_CONFIG": "none"}
    )


def test_the_line_stands_alone_on_standard_output(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, clusters: dict[str, list[str]]
) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    words = clusters["healthy-4x8-h100"]
    code, out, err = told(capsys, *words, "--for", "mpirun", "--", "python", "train.py", "--lr", "0.1", "a b")
    hosts = ",".join(f"gpu{number:02}:8" for number in range(1, 5))
    assert (code, out) == (
        0,
        (
            f"mpirun {ROOT}-np 32 -H {hosts} --bind-to none --map-by slot --mca pml ob1 --mca btl '^openib' "
            "--mca btl_tcp_if_include 10.20.0.0/24 "
            f"--mca plm_rsh_args '-F {words[3]}' -x NCCL_DEBUG=WARN -x PATH "
            "python train.py --lr 0.1 'a b'\n"
        ),
    )
    assert "ncheck: plan for mpirun\nncheck: for Open MPI 4.1.6; 32 ranks (4 nodes x 8 GPUs)\n" in err
    assert "this machine has no address in 10.20.0.0/24: mpirun and its daemons choose a network themselves" in err


def test_without_for_it_is_for_the_mpirun_that_was_found_and_says_so(
    capsys: pytest.CaptureFixture[str], clusters: dict[str, list[str]]
) -> None:
    code, out, err = told(capsys, *clusters["healthy-4x8-h100"])
    assert (code, out.split()[0], out.count("\n")) == (0, "mpirun", 1)
    assert "ncheck: plan for mpirun (choose another with --for)\n" in err


def test_the_whole_plan_as_json_is_the_reports(
    capsys: pytest.CaptureFixture[str], clusters: dict[str, list[str]]
) -> None:
    code, out, _ = told(capsys, *clusters["docker0-and-veth"], "--for", "torchrun", "-o", "json")
    plan = json.loads(out)
    assert (code, list(plan["lines"]), plan["env"]["NCCL_SOCKET_IFNAME"]["value"]) == (0, ["torchrun"], "=eno1")


@pytest.mark.slow
def test_eval_of_the_exports_sets_them(clusters: dict[str, list[str]]) -> None:
    ran = eval_in_a_shell(*clusters["docker0-and-veth"], "--for", "env")
    assert (ran.returncode, ran.stdout) == (0, "=eno1\n")


def test_what_the_plan_itself_mends_does_not_keep_it_back(
    capsys: pytest.CaptureFixture[str], clusters: dict[str, list[str]]
) -> None:
    assert told(capsys, *clusters["docker0-and-veth"], "--for", "nccl.conf")[:2] == (0, "NCCL_SOCKET_IFNAME==eno1\n")


def test_where_a_node_is_down_nothing_is_printed_but_why(
    capsys: pytest.CaptureFixture[str], clusters: dict[str, list[str]]
) -> None:
    code, out, err = told(capsys, *clusters["one-node-down"], "--for", "torchrun")
    assert (code, out) == (1, "")
    assert "ncheck: NC111 connection-refused on gpu03: nothing listens on port" in err
    assert "NC001" not in err
    assert err.endswith("ncheck: no plan printed; --force prints it anyway\n")


@pytest.mark.slow
def test_eval_of_what_was_kept_back_fails_and_the_script_stops(clusters: dict[str, list[str]]) -> None:
    ran = eval_in_a_shell(*clusters["one-node-down"], "--for", "env")
    assert (ran.returncode, ran.stdout) == (7, "")


def test_force_prints_it_all_the_same_and_says_so(
    capsys: pytest.CaptureFixture[str], clusters: dict[str, list[str]]
) -> None:
    code, out, err = told(capsys, *clusters["one-node-down"], "--for", "mpirun", "--force")
    assert (code, out.split(" -H ")[0]) == (0, f"mpirun {ROOT}-np 32")
    assert err.endswith("ncheck: printed because of --force\n")


@pytest.mark.parametrize("args", [
    ["no-such-file", "--for", "env"], ["--for=env", "--slots", "0"], ["--for", "env", "--prot", "1"],
    ["--for", "env", "--ignore", "NC999"],
])  # fmt: skip
def test_eval_fails_for_what_was_mistyped_too(capsys: pytest.CaptureFixture[str], args: list[str]) -> None:
    code, out, err = told(capsys, "plan", *args)
    assert (code, out, err.count("\n")) == (2, "false\n", 1)


@pytest.mark.parametrize(("args", "words"), [
    (["--for", "bogus"], "'bogus' is not one of 'mpirun', "),
    (["--profile", "core"], "'core' is not one of 'slot', 'numa'"),
    (["nodes.txt", "--"], "a program must follow --, as in: ncheck plan -- python train.py"),
    (["nodes.txt", "--", ""], "a program must follow --, as in: ncheck plan -- python train.py"),
    (["nodes.txt", "--", "-x"], "a program must follow --, as in: ncheck plan -- python train.py"),
    (["no-such-file", "--", "env"], "no such file or command: 'no-such-file'"),
    (["--master-port", "70000"], "--master-port: expected a whole number from 1 to 65535"),
])  # fmt: skip
def test_what_cannot_be_meant_is_refused_in_one_line(
    capsys: pytest.CaptureFixture[str], args: list[str], words: str
) -> None:
    code, out, err = told(capsys, "plan", *args)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err


def test_a_prediction_asks_the_nodes_the_same_as_a_recording_of_them(
    capsys: pytest.CaptureFixture[str], clusters: dict[str, list[str]]
) -> None:
    """It is of the same facts as a plan, without a check and without a measurement."""
    _, *words = clusters["one-node-down"]
    code, out, err = told(capsys, "predict", *words, "--sizes", "1M,8G")
    recorded = told(capsys, "predict", "--from", str(FIXTURES / "one-node-down"), "--sizes", "1M,8G")
    assert (code, out) == recorded[:2]
    assert code == 1
    assert "3 of 4 nodes answered" in err
