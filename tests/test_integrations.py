"""What docs/integrations.md shows around a job is run as it is written there: scripts, functions, YAML, snippets."""

from __future__ import annotations

import ast
import json
import os
import re
import resource
import shlex
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import kubernetes_validate
import ncheck
import pytest
import yaml
from ncheck.cli.main import commands
from ncheck.inventory.hostfile import listed_line

from tests.commands import command_of
from tests.ncheck.hook.ranks import job

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "integrations.md").read_text(encoding="utf-8")
HOST = os.uname().nodename
REASON = "ncheck: NC402 ib-port-polling"


def block(text: str) -> str:
    """Return the one code block of the page that has this text."""
    found: str
    (found,) = [body for body in re.findall(r"^```\w+\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE) if text in body]
    return found


# Slurm


@pytest.fixture
def bin_(tmp_path: Path) -> Path:
    """Return a folder of programs: ncheck itself, and a Slurm that writes down what it was asked."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program(folder / "ncheck", f'exec {shlex.join([sys.executable, "-m", "ncheck"])} "$@"')
    program(folder / "sinfo", f'echo "sinfo $*" >> {tmp_path}/asked; cat {tmp_path}/state')
    program(folder / "scontrol", f'printf "%s|" scontrol "$@" >> {tmp_path}/asked')
    (tmp_path / "state").write_text("idle\n")
    return folder


def program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def run_as_slurmd(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script as slurmd does: without PATH and HOME, in its own folder, with one pipe for both streams."""
    here = script.replace("/opt/ncheck/bin", str(folder)).replace("/run/ncheck", str(folder.parent / "run"))
    assert here != script
    path = folder.parent / "script"
    path.write_text(here)
    path.chmod(0o755)
    environ = {
        "SLURMD_NODENAME": "gpu01", "SLURM_JOB_ID": "4711", "SLURM_JOB_UID": "1000", "SLURM_CONF": "/etc/slurm.conf",
        "SLURM_SCRIPT_CONTEXT": "prolog_slurmd",
        "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),  # the tree's, where it is not installed
    }  # fmt: skip
    return subprocess.run(
        [str(path)], env=environ, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, timeout=120, check=False,
    )  # fmt: skip


def report(path: Path, *bad: dict[str, object]) -> None:
    """Write a report of this machine that is a minute old."""
    begun = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(time.time() - 60))
    node = {"name": HOST, "transport": "local", "recorded": False}
    finding = {"code": "NC402", "check": "ib-port-polling", "hardware": True}
    saved = {"schema": "ncheck.report/2", "host": HOST, "time": begun, "interrupted": False, "nodes": [node],
             "findings": [finding], "bad": bad}  # fmt: skip
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(saved))
    path.chmod(0o644)


POLLING: dict[str, object] = {
    "node": HOST, "codes": ["NC402"], "reached": True, "unknown": False, "reason": "NC402 ib-port-polling: mlx5_3",
}  # fmt: skip
PROLOG = block("# /etc/slurm/prolog.d/ncheck")
HEALTH = block("# /etc/slurm/ncheck-health")


def test_the_prolog_fails_on_a_node_with_an_error_and_slurmd_logs_the_reason(bin_: Path) -> None:
    report(bin_.parent / "run" / "local.json", POLLING)
    done = run_as_slurmd(PROLOG, bin_)
    message = rf"ncheck: {HOST}: NC402 ib-port-polling: mlx5_3 \(\d+ s ago\)"
    assert done.returncode == 1
    assert re.fullmatch(rf"{message}\n{REASON}\n", done.stdout)


def test_the_prolog_lets_jobs_start_on_a_healthy_node_and_costs_less_than_a_second(bin_: Path) -> None:
    report(bin_.parent / "run" / "local.json")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = run_as_slurmd(PROLOG, bin_)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0
    assert re.fullmatch(rf"ncheck: {HOST}: no error \(\d+ s ago\)\n", done.stdout)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1


@pytest.mark.parametrize(("bad", "why"), [
    ({**POLLING, "unknown": True, "reason": "NC505 nvidia-smi-hangs unknown: no answer"}, "NC505 nvidia-smi-hangs unk"),
    ({**POLLING, "reached": False, "codes": [], "reason": "not reached: no-python"}, "not reached: no-python"),
])  # fmt: skip
def test_the_prolog_holds_no_node_for_what_could_not_be_checked(bin_: Path, bad: dict[str, object], why: str) -> None:
    report(bin_.parent / "run" / "local.json", bad)
    done = run_as_slurmd(PROLOG, bin_)
    assert (done.returncode, done.stdout.count("\n")) == (0, 1)
    assert why in done.stdout


def test_the_prolog_holds_no_node_without_a_report(bin_: Path) -> None:
    done = run_as_slurmd(PROLOG, bin_)
    assert done.returncode == 0
    assert "local.json: it does not exist" in done.stdout


@pytest.mark.parametrize("broken", ["echo Traceback >&2; exit 1", "exit 3", "kill -SEGV $$", "nowhere"])
def test_a_broken_ncheck_holds_no_node(bin_: Path, broken: str) -> None:
    report(bin_.parent / "run" / "local.json", POLLING)
    program(bin_ / "ncheck", broken)
    assert run_as_slurmd(PROLOG, bin_).returncode == 0
    (bin_ / "ncheck").unlink()
    assert run_as_slurmd(PROLOG, bin_).returncode == 0


@pytest.mark.slow
def test_an_ncheck_that_hangs_delays_a_job_by_seconds_only(bin_: Path) -> None:
    program(bin_ / "ncheck", "exec sleep 600")
    begun = time.monotonic()
    assert run_as_slurmd(PROLOG, bin_).returncode == 0
    assert time.monotonic() - begun < 60


@pytest.mark.slow
def test_the_health_check_saves_a_report_that_the_prolog_reads(bin_: Path) -> None:
    done = run_as_slurmd(HEALTH, bin_)
    saved = bin_.parent / "run" / "local.json"
    assert (done.returncode, saved.stat().st_mode & 0o777, saved.parent.stat().st_mode & 0o777) == (0, 0o644, 0o755)
    assert {verdict["code"][:3] for verdict in json.loads(saved.read_text())["verdicts"]} == {"NC4", "NC5", "NC6"}
    assert not (bin_.parent / "asked").exists()
    prolog = run_as_slurmd(PROLOG, bin_)
    assert (prolog.returncode, f"ncheck: {HOST}: no error, only NC4, NC5, NC609, NC610 checked (" in prolog.stdout) == (
        0,
        True,
    )


@pytest.fixture
def faulty(bin_: Path) -> Path:
    """Return the programs on a node whose check finds an error."""
    report(bin_.parent / "found.json", POLLING)
    real = shlex.join([sys.executable, "-m", "ncheck"])
    save = f"cp -p {bin_.parent}/found.json ${{report#json=}}"
    last = 'for report in "$@"; do :; done'
    program(bin_ / "ncheck", f'[ "$1" = local ] || exec {real} "$@"\n{last}\n{save}')
    return bin_


def test_the_health_check_drains_a_node_with_an_error(faulty: Path) -> None:
    assert run_as_slurmd(HEALTH, faulty).returncode == 0
    assert (faulty.parent / "asked").read_text() == (
        f"sinfo -h -n gpu01 -o %T\nscontrol|update|nodename=gpu01|state=drain|reason={REASON}|"
    )


@pytest.mark.parametrize("state", ["drained", "draining\ndraining", "drained*"])
def test_the_health_check_keeps_the_reason_of_a_node_that_is_drained(faulty: Path, state: str) -> None:
    (faulty.parent / "state").write_text(f"{state}\n")
    assert run_as_slurmd(HEALTH, faulty).returncode == 0
    assert (faulty.parent / "asked").read_text() == "sinfo -h -n gpu01 -o %T\n"


def test_slurm_conf_names_the_scripts_that_are_shown() -> None:
    settings = dict(line.split("=") for line in block("HealthCheckProgram=").splitlines())
    assert f"# {settings['HealthCheckProgram']}\n" in HEALTH
    assert f"# {settings['Prolog']}\n" in PROLOG


@pytest.mark.parametrize(("code", "started"), [(0, True), (1, False), (2, False)])
def test_the_job_script_starts_the_job_only_if_the_check_is_good(tmp_path: Path, code: int, started: bool) -> None:  # noqa: FBT001
    script = block("#SBATCH --nodes=4")
    program(tmp_path / "ncheck", f'printf "%s|" "$@" > checked; exit {code}')
    program(tmp_path / "srun", "echo started > started")
    environ = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_JOB_ID": "4711"}
    done = subprocess.run(["bash", "-c", script], env=environ, cwd=tmp_path, check=False, timeout=60)
    assert (done.returncode, (tmp_path / "started").exists()) == (int(not started), started)
    assert (tmp_path / "checked").read_text().endswith("--bad-nodes|bad-nodes.4711|")


# NHC


@pytest.mark.parametrize("bad", [(), (POLLING,)])
def test_the_function_for_nhc_marks_a_node_with_an_error(bin_: Path, bad: tuple[dict[str, object], ...]) -> None:
    report(bin_.parent / "run" / "local.json", *bad)
    (check,) = re.findall(r"nhc\.conf: `\* \|\| (.*)`", PAGE)
    function = block("# /etc/nhc/scripts/ncheck.nhc")
    script = f'die() {{ printf "%s|" "$@"; exit "$1"; }}\n{function}\n{check}'  # NHC's own die ends the run like this
    done = run_as_slurmd(f"#!/bin/bash\n{script}\n", bin_)
    assert (done.returncode, done.stdout) == ((1, f"1|{REASON}|") if bad else (0, ""))


@pytest.mark.slow
def test_cron_writes_the_report_without_a_word(bin_: Path) -> None:
    (line,) = re.findall(r"^\*/10 \* \* \* \* root (.*)$", block("# /etc/cron.d/ncheck"), re.MULTILINE)
    assert "%" not in line  # cron would read it as the end of the line
    done = run_as_slurmd(f"#!/bin/sh\n{line}\n", bin_)
    assert (done.returncode, done.stdout) == (0, "")
    assert run_as_slurmd(PROLOG, bin_).stdout.startswith(
        f"ncheck: {HOST}: no error, only NC4, NC5, NC609, NC610 checked ("
    )


# Kubernetes

VERSION = kubernetes_validate.latest_version()


def documents(name: str) -> list[Any]:
    return list(yaml.safe_load_all((DOCS / "examples" / name).read_text(encoding="utf-8")))


def typed(command: list[str]) -> list[str]:
    """Return a command of ncheck, after click has read it."""
    first, name, *words = command
    assert first == "ncheck"
    parent = commands.make_context("ncheck", [], resilient_parsing=True)
    command_of(name).make_context(name, list(words), parent=parent)
    return command


def test_the_indexed_job_is_what_kubernetes_takes() -> None:
    service, job = documents("kubernetes-indexed-job.yaml")
    for document in (service, job):
        kubernetes_validate.validate(document, VERSION, strict=True)
    spec = job["spec"]["template"]["spec"]
    assert spec["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["selector"] == {"job-name": job["metadata"]["name"]}
    assert typed(spec["initContainers"][0]["command"])[1] == "local"
    (rule,) = job["spec"]["podFailurePolicy"]["rules"]
    assert rule["onExitCodes"]["containerName"] == spec["initContainers"][0]["name"]
    torchrun = shlex.split(spec["containers"][0]["args"][0])
    assert f"--nnodes={job['spec']['completions']}" in torchrun
    assert f"--master-addr={job['metadata']['name']}-0.{spec['subdomain']}" in torchrun
    assert f"--nproc-per-node={spec['containers'][0]['resources']['limits']['nvidia.com/gpu']}" in torchrun


def test_the_init_container_of_the_page_is_the_one_of_the_job() -> None:
    shown = yaml.safe_load(block("initContainers:"))
    pod = {"containers": [{"name": "train", "image": "YOUR-TRAINING-IMAGE"}], **shown}
    document = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "train"}, "spec": pod}
    kubernetes_validate.validate(document, VERSION, strict=True)
    (container,) = documents("kubernetes-indexed-job.yaml")[1]["spec"]["template"]["spec"]["initContainers"]
    assert shown["initContainers"] == [{key: value for key, value in container.items() if key != "volumeMounts"}]


# What the operator's v2beta1 takes beside the templates, whose schema is Kubernetes' own.
MPIJOB_SPEC = {
    "slotsPerWorker", "runLauncherAsWorker", "runPolicy", "mpiReplicaSpecs", "sshAuthMountPath",
    "launcherCreationPolicy", "mpiImplementation",
}  # fmt: skip
RUN_POLICY = {
    "cleanPodPolicy", "ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit", "schedulingPolicy", "suspend",
    "managedBy",
}  # fmt: skip


def test_the_mpijob_is_what_the_operator_takes() -> None:
    (job,) = documents("kubernetes-mpijob.yaml")
    assert (job["apiVersion"], job["kind"], set(job)) == (
        "kubeflow.org/v2beta1", "MPIJob", {"apiVersion", "kind", "metadata", "spec"},
    )  # fmt: skip
    spec = job["spec"]
    assert set(spec) <= MPIJOB_SPEC
    assert set(spec["runPolicy"]) <= RUN_POLICY
    assert spec["launcherCreationPolicy"] in ("AtStartup", "WaitForWorkersReady")
    assert spec["runPolicy"]["cleanPodPolicy"] in ("None", "Running", "All")
    assert set(spec["mpiReplicaSpecs"]) == {"Launcher", "Worker"}
    for replicas in spec["mpiReplicaSpecs"].values():
        assert set(replicas) <= {"replicas", "restartPolicy", "template"}
        template = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "train"}}
        kubernetes_validate.validate({**template, "template": replicas["template"]}, VERSION, strict=True)
    worker = spec["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    assert worker["resources"]["limits"]["nvidia.com/gpu"] == spec["slotsPerWorker"]
    launcher = spec["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    assert typed(launcher["command"])[:3] == ["ncheck", "launch", "/etc/mpi/hostfile"]
    listed = listed_line("train-worker-0.train.default.svc slots=8", "hostfile:1")  # as the operator writes it
    assert listed


# The container of docs/containers.md; tests/lab/test_containers.py starts it as far as that can be done without Docker


CONTAINER = DOCS / "examples" / "container"


@pytest.mark.skipif(not Path("/usr/sbin/sshd").exists(), reason="needs /usr/sbin/sshd (openssh-server)")
def test_sshd_takes_the_containers_configuration_and_lets_root_in_by_key_alone(tmp_path: Path) -> None:
    key, config = tmp_path / "key", tmp_path / "sshd_config"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    text = (CONTAINER / "sshd_config").read_text(encoding="utf-8")
    config.write_text(text.replace("/etc/ssh/keys/ssh_host_ed25519_key", str(key)))
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    tested, shown = (
        subprocess.run(["/usr/sbin/sshd", option, "-f", str(config)], capture_output=True, text=True, check=False)
        for option in ("-t", "-T")
    )
    assert (tested.returncode, tested.stderr) == (0, "")
    used = dict(line.split(" ", 1) for line in shown.stdout.splitlines())
    wanted = {
        "port": "10001", "hostkey": str(key), "permitrootlogin": "without-password", "passwordauthentication": "no",
        "kbdinteractiveauthentication": "no", "usepam": "no",
    }  # fmt: skip
    assert {name: used[name] for name in wanted} == wanted


def test_the_dockerfile_copies_what_lies_beside_it_and_bakes_no_key_in() -> None:
    text = (CONTAINER / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", "")
    steps = [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]
    assert [name for name, _ in steps] == ["ARG", "FROM", "RUN", "COPY", "RUN", "COPY", "RUN", "COPY", "ENTRYPOINT"]
    copied = dict(words.split() for name, words in steps if name == "COPY")
    assert copied.pop("cluster_ncheck-*.whl") == "/tmp/"  # noqa: S108  inside the image
    assert copied == {"sshd_config": "/etc/ssh/sshd_config", "entrypoint.sh": "/entrypoint.sh"}
    assert {*copied, "Dockerfile"} == {path.name for path in CONTAINER.iterdir()}
    assert json.loads(steps[-1][1]) == ["/bin/sh", copied["entrypoint.sh"]]
    runs = [words for name, words in steps if name == "RUN"]
    for script in (*runs, (CONTAINER / "entrypoint.sh").read_text(encoding="utf-8")):
        subprocess.run(["sh", "-n", "-c", script], check=True)
    for makes_keys, keys in (("openssh-server", "/etc/ssh/ssh_host_*"), ("ssh-keygen", "/etc/ssh/keys/*")):
        (run,) = [run for run in runs if makes_keys in run]
        assert (" rm " in run, run.split()[-1]) == (True, keys)


# Frameworks: two ranks on CPUs run the snippet, then sum up by the process group that the framework made. Without the
# collector of garbage their imports take a sixth less.

BEFORE = """
import gc
gc.disable()
import pathlib, ncheck, torch.distributed as dist
real = ncheck.preflight
def preflight():
    assert not dist.is_initialized()
    return real()
ncheck.preflight = preflight
"""
AFTER = """
import torch
total = torch.ones(1)
dist.all_reduce(total)
pathlib.Path(f"rank{dist.get_rank()}").write_text(f"{dist.get_backend()} {total.item()}")
dist.destroy_process_group()
"""
TRAINED = """
import pytorch_lightning, torch
class Model(pytorch_lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)
    def train_dataloader(self):
        return torch.utils.data.DataLoader(torch.ones(4, 2))
    def training_step(self, batch, index):
        return self.layer(batch).sum()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)
trainer.fit(Model())
"""
SMALL = 'accelerator="cpu", devices=2, max_steps=1, logger=False, enable_checkpointing=False, enable_progress_bar=False'
SNIPPETS = {
    "accelerate": "# Accelerate\n",
    "deepspeed": "# DeepSpeed\n",
    "pytorch_lightning": "# Lightning, started by",
}

TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("framework", "launcher", "started"),
    [("accelerate", (), 2), ("pytorch_lightning", TORCHRUN, 1), ("pytorch_lightning", (), 1)],
)  # DeepSpeed would compile
def test_the_ranks_of_a_framework_pass_the_preflight_and_then_make_their_group(
    tmp_path: Path, framework: str, launcher: tuple[str, ...], started: int
) -> None:
    """Two ranks are started as srun does it, or one process: torchrun, or Lightning, which starts the second rank
    itself, after the preflight of the first.
    """
    if not find_spec("torch") or not find_spec(framework):
        pytest.skip(f"{framework} is not installed beside the tests: make test TORCH=1")
    snippet = block(SNIPPETS[framework]).replace("devices=8, num_nodes=4", SMALL)
    after = (TRAINED if framework == "pytorch_lightning" else "") + AFTER
    (tmp_path / "train.py").write_text(BEFORE + snippet + after)
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith("NCHECK")},
        "ACCELERATE_USE_CPU": "true", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
    }  # fmt: skip
    common = job(2) if started > 1 else {}
    own = [{**common, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(2)] if common else [{}]
    processes = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", *launcher, "train.py"], cwd=tmp_path, env={**environ, **variables},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for variables in own
    ]  # fmt: skip
    said = [process.communicate(timeout=600)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * started, said
    assert [(tmp_path / f"rank{rank}").read_text() for rank in (0, 1)] == ["gloo 2.0", "gloo 2.0"]


@pytest.mark.parametrize("framework", SNIPPETS)
def test_a_snippet_calls_preflight_before_the_framework(framework: str) -> None:
    called = [
        ast.unparse(node.func) for node in ast.walk(ast.parse(block(SNIPPETS[framework]))) if isinstance(node, ast.Call)
    ]
    group = {"accelerate": "Accelerator", "deepspeed": "deepspeed.init_distributed", "pytorch_lightning": "Trainer"}
    assert called == ["ncheck.preflight", group[framework]]
    assert callable(ncheck.preflight)
