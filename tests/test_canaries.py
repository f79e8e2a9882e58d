"""docs/examples/canary: its own parser reads each file, and what a shell runs of it is run as it is written there."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from ncheck.cli.main import commands
from ncheck.history.past import past_of
from ncheck.history.store import History

from tests.commands import command_of
from tests.skips import cannot

CANARY = Path(__file__).parents[1] / "docs" / "examples" / "canary"
FOLDERS = {"/var/lib/ncheck": "state", "/etc/ncheck/nodes.txt": "nodes.txt", "/usr/local/bin": "bin", "/opt/ncheck": ""}


@pytest.fixture
def head(tmp_path: Path) -> Path:
    """Return a folder with what lies on an operator's machine. Each node is a process of this machine."""
    (tmp_path / "state").mkdir()
    (tmp_path / "bin").mkdir()
    ncheck = shlex.join([sys.executable, "-m", "ncheck"])
    program(
        tmp_path / "bin" / "ncheck",
        f"""[ "$1" = history ] || set -- "$@" --rsh 'env NODE={{node}}'; exec {ncheck} "$@\"""",
    )
    for name in ("ncheck-canary", "slurm-canary"):
        program(tmp_path / "bin" / name, here(name, tmp_path))
    return tmp_path


def program(path: Path, script: str) -> None:
    path.write_text(script if script.startswith("#!") else f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def here(name: str, folder: Path) -> str:
    """Return an example with the folders of this test in place of its own."""
    text = (CANARY / name).read_text(encoding="utf-8")
    for theirs, ours in FOLDERS.items():
        text = text.replace(theirs, str(folder / ours))
    return text


def run(folder: Path, *argv: str, path: str = "/usr/bin:/bin") -> tuple[int, str]:
    """Run a command as cron and systemd do: with hardly any environment, in another folder."""
    environ = {"PATH": path, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry), "HOME": str(folder)}
    done = subprocess.run(
        argv, env=environ, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, timeout=300, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


def states(folder: Path) -> dict[str, str]:
    history = History(str(folder / "state" / "cluster.db"))
    return {one.node: one.state for one in past_of(history.runs(), ()).nodes}


@pytest.mark.parametrize("name", ["ncheck-canary", "slurm-canary"])
def test_a_shell_reads_the_scripts(name: str) -> None:
    done = subprocess.run(["sh", "-n", str(CANARY / name)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert os.access(CANARY / name, os.X_OK)


def test_systemd_reads_the_timer_and_the_service(head: Path) -> None:
    if not shutil.which("systemd-analyze"):
        cannot("needs systemd-analyze: apt-get install systemd")
    units = [head / f"ncheck-canary.{kind}" for kind in ("timer", "service")]
    for unit in units:
        unit.write_text(here(unit.name, head))
    code, said = run(head, "systemd-analyze", "verify", "--man=no", *map(str, units))
    about_ours = [line for line in said.splitlines() if "ncheck" in line]
    assert (code, about_ours) == (0, [])
    (when,) = re.findall(r"^OnCalendar=(.*)$", units[0].read_text(), re.MULTILINE)
    code, said = run(head, "systemd-analyze", "calendar", "--base-time=2026-11-26 10:01:00 UTC", when)
    assert (code, "2026-11-26 10:15:00 UTC" in said) == (0, True)


@pytest.mark.slow
def test_the_service_is_silent_where_all_is_well_and_keeps_what_it_found(head: Path) -> None:
    (head / "nodes.txt").write_text("gpu01  # the only one\n")
    unit = dict(line.split("=", 1) for line in here("ncheck-canary.service", head).splitlines() if "=" in line)
    path = unit["Environment"].removeprefix("PATH=")
    assert path.startswith(f"{head}/bin:")
    assert run(head, unit["ExecStart"], path=path) == (0, "")
    assert states(head) == {"gpu01": "good"}
    assert (head / "state" / "drain.sh").read_text().startswith("# Ready")


FIELD = re.compile(r"(?:\*|\d+(?:-\d+)?)(?:/\d+)?(?:,\d+)*")


@pytest.mark.slow
def test_cron_starts_one_canary_at_a_time_and_mails_what_is_wrong(head: Path) -> None:
    """Both names are one machine, which is an error."""
    (head / "nodes.txt").write_text("gpu01\ngpu02\n")
    lines = [line for line in here("ncheck-canary.cron", head).splitlines() if not line.startswith("#")]
    *settings, job = lines
    variables = dict(line.split("=", 1) for line in settings)
    assert set(variables) == {"SHELL", "PATH", "MAILTO"}
    *fields, user, command = job.split(maxsplit=6)
    assert all(FIELD.fullmatch(field) for field in fields)
    assert user == "ncheck"
    assert "%" not in command  # cron would read it as the end of the line
    code, mail = run(head, variables["SHELL"], "-c", command, path=variables["PATH"])
    assert code == 1
    assert "NC102" in mail
    assert states(head) == {"gpu01": "bad", "gpu02": "bad"}
    with (head / "state" / "canary.lock").open() as lock:
        subprocess.run(["flock", "-n", str(lock.fileno())], pass_fds=[lock.fileno()], check=True)
        assert run(head, variables["SHELL"], "-c", command, path=variables["PATH"]) == (1, "")


# Slurm; tests/lab/test_slurm.py starts it on a real one


@pytest.mark.parametrize(
    ("says", "printed"),
    [
        ("salloc: error: Unable to allocate resources: Requested nodes are busy", False),
        ("salloc: error: Unable to allocate resources: Invalid account or account/partition combination", True),
    ],
)
def test_the_canary_of_slurm_asks_for_the_idle_nodes_and_is_silent_where_a_job_was_faster(
    head: Path,
    says: str,
    printed: bool,  # noqa: FBT001
) -> None:
    rows = "gpu03 idle\ngpu03 idle\ngpu01 idle~\ngpu02 mixed\ngpu04 planned\ngpu05 idle\n"
    program(head / "bin" / "sinfo", f"printf %s {shlex.quote(rows)}")
    program(head / "bin" / "salloc", f'printf "%s\\n" "$@" > {head}/asked; echo {shlex.quote(says)} >&2; exit 1')
    path = f"{head}/bin:/usr/bin:/bin"
    assert run(head, str(head / "bin" / "slurm-canary"), path=path) == ((1, f"{says}\n") if printed else (0, ""))
    asked = (head / "asked").read_text().split("\n")
    assert "--nodelist=gpu03,gpu05" in asked
    (head / "asked").unlink()
    program(head / "bin" / "sinfo", "echo gpu02 allocated")
    assert run(head, str(head / "bin" / "slurm-canary"), path=path) == (0, "")
    assert not (head / "asked").exists()


def test_every_option_that_a_canary_gives_ncheck_is_there() -> None:
    parent = commands.make_context("ncheck", [], resilient_parsing=True)
    (container,) = pod()["containers"]
    texts = [(CANARY / name).read_text(encoding="utf-8") for name in ("ncheck-canary", "slurm-canary")]
    found = []
    for text in (*texts, *container["args"]):
        for line in re.findall(r"(?<![\w/-])ncheck (?:history|local|-|-H).*", text.replace("\\\n", " ")):
            words = shlex.split(re.split(r"\)$| [|>] | \d?>", line.replace("'", ""))[0], comments=True)[1:]
            name = words.pop(0) if words[0] in ("history", "local") else "check"
            command_of(name).make_context(name, words, parent=parent)
            found.append(name)
    assert found == ["history", "check", "history", "check", "local"]


# Kubernetes


def pod() -> dict[str, Any]:
    _, job = yaml.safe_load_all((CANARY / "kubernetes-canary.yaml").read_text(encoding="utf-8"))
    spec: dict[str, Any] = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return spec


def test_the_cron_job_is_what_kubernetes_takes() -> None:
    documents = list(yaml.safe_load_all((CANARY / "kubernetes-canary.yaml").read_text(encoding="utf-8")))
    for document in documents:
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
    priority, cron = documents
    template = cron["spec"]["jobTemplate"]["spec"]["template"]
    assert template["spec"]["priorityClassName"] == priority["metadata"]["name"]
    assert all(FIELD.fullmatch(field) for field in cron["spec"]["schedule"].split())
    (apart,) = template["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert apart["labelSelector"]["matchLabels"] == template["metadata"]["labels"]
    mounted = {mount["name"] for mount in template["spec"]["containers"][0]["volumeMounts"]}
    assert mounted == {volume["name"] for volume in template["spec"]["volumes"]}


@pytest.mark.slow
def test_the_pod_examines_its_node_and_prints_what_takes_it_away(tmp_path: Path) -> None:
    program(tmp_path / "ncheck", f'exec {shlex.join([sys.executable, "-m", "ncheck"])} "$@" -o json={tmp_path}/r.json')
    (container,) = pod()["containers"]
    (script,) = container["args"]
    script = script.replace("/var/lib/ncheck", str(tmp_path)).replace("/tmp/drain.sh", str(tmp_path / "drain.sh"))  # noqa: S108
    code, log = run(tmp_path, *container["command"], script, path=f"{tmp_path}:/usr/bin:/bin")
    node = os.uname().nodename
    assert (code, log.count("exit code 0")) == (0, 1), log
    assert log.splitlines()[-1].endswith(f" {node}")  # give_back 'NC401 ...' NODE
    saved = json.loads((tmp_path / "r.json").read_text())
    assert [one["name"] for one in saved["nodes"]] == [node]
    assert [run.of("good") for run in History(str(tmp_path / "local.db")).runs()] == [(node,)]
