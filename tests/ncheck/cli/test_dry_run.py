"""--dry-run tells all that would be done, and does nothing of it."""

from __future__ import annotations

import os
import pkgutil
from pathlib import Path

import pytest
from ncheck.agent import answers
from ncheck.agent.answers import module_of
from ncheck.cli.dry_run import dry_run
from ncheck.facts.learning import definition_of, sources_for
from ncheck.model.evidence import Answer, Command, File, Tree
from ncheck.settings import JobEnvironment, Settings
from ncheck.triage.live import facts_read

from tests.every_fact import every_fact


def told(**settings: object) -> str:
    return dry_run(Settings(**{"hosts": "node1,node2,node3", **settings}), os.environ)  # type: ignore[arg-type]


def test_every_command_and_file_of_every_reader_is_there() -> None:
    text = told()
    for definition in filter(None, map(definition_of, every_fact())):
        for source in definition.sources:
            if isinstance(source, Command):
                assert source.argv[0] in text
            elif isinstance(source, File):
                assert source.path in text
            elif isinstance(source, Tree):
                assert all(pattern in text for pattern in source.patterns)


def test_every_answer_says_what_it_reads() -> None:
    text = told(
        probe_launcher="mpirun",
        storage_probe=True,
        data=("/data/train",),
        workdir="/code",
        packages="all",
        program=("/code/run",),
    )
    of_triage = {source.name for source in sources_for(facts_read()) if isinstance(source, Answer)}
    names = {found.name.replace("_", "-") for found in pkgutil.iter_modules(answers.__path__)}
    for name in {name for name in names if hasattr(module_of(name), "answer")} - {"ssh-peers"} - of_triage:
        assert f"  {name}: " in text
    assert "Then each node reads /data/train:" in text
    unasked = ("sweep", "storage-probe", "code", "packages")
    assert [name for name in unasked if f"  {name}: " in told(data=("/data/train",))] == []


def test_the_means_that_a_probe_may_take_say_what_they_read() -> None:
    assert _means(told()) == ["nccl", "gloo", "tcp", "rdma", "diagnostics", "nics", "loopback"]
    assert _means(told(probe="nccl-tests")) == ["nccl-tests", "rdma", "diagnostics", "nics", "loopback"]
    assert _means(told(probe="tcp")) == ["tcp", "rdma"]
    assert _means(told(probe="none")) == []


def test_where_ranks_of_nccl_meet_is_told_where_there_are_such_ranks() -> None:
    met = {probe: "  meeting: ncclGetUniqueId" in told(probe=probe) for probe in ("auto", "nccl", "gloo", "tcp")}
    assert met == {"auto": True, "nccl": True, "gloo": False, "tcp": False}
    assert "with tcp, between pairs of nodes:" in told(probe="tcp")
    assert "with nccl, inside each node, between pairs of nodes, and between all:" in told(probe="nccl")
    assert "each node, and the other by every address" in told(hosts="node1,node2")


def test_the_question_for_the_groups_of_slurm_is_told_where_it_may_be_asked() -> None:
    asked = [
        "scontrol show topology" in told(**more) for more in ({}, {"probe": "none"}, {"groups": "a=node1;b=node2"})
    ]
    assert asked == [True, False, False]


def _means(text: str) -> list[str]:
    lines = [line for line in text.splitlines() if line.startswith("  turn by ")]
    return list(dict.fromkeys(line.removeprefix("  turn by ").partition(":")[0] for line in lines))


def test_one_check_alone_brings_along_what_its_questions_are_made_of() -> None:
    text = told(select=("link-refused",))
    assert [name for name in ("interfaces", "interpreter", "listen", "connect") if f"  {name}: " not in text] == []


def test_each_node_has_its_own_line_and_each_its_peers() -> None:
    text = told(port=10001, user="me", identity="/keys/id")
    for name in ("node1", "node2", "node3"):
        assert f"  {name}: ssh -T -i /keys/id -p 10001 -l me -- {name} 'exec /bin/sh" in text
    assert text.count("-p 10001 -l me -- node2 'echo NONCE'") == 2


def test_no_peer_and_no_python_appear_where_none_is_asked() -> None:
    text = told(mesh="none", select=("NC1",))
    assert "python3" not in text
    assert text.count("NONCE") == 1  # this machine's own ssh


def test_what_is_listened_on_and_connected_to_is_told() -> None:
    text = told(need_ports=(4000,))
    assert "Then, if the login succeeded, each node, and the 2 others by every address in the subnets" in text
    assert "  listen: on port 4000 of each node" in text
    assert "  listen: on port 4000 of the first reachable node" in told(master_port=4000)
    assert "  listen: on port 4000 of each node" in told(master_port=4000, launcher="oneflow")
    assert "  connect: connects to where the others listen, from each of its own addresses" in text
    assert text.endswith("only to this machine, and between the nodes as listed above.")


def test_without_others_or_without_a_mesh_only_the_jobs_ports_are_listened_on() -> None:
    cases = {told(hosts="node1"): "the first node", told(mesh="none", master_port=4000): "the first node",
             told(mesh="none", need_ports=(4000,)): "each node"}  # fmt: skip
    for alone, which in cases.items():
        assert f"only {which}, for the ports of the job:\n  listen: " in alone
        assert "  connect: " not in alone
    assert "  listen: " not in told(mesh="none")


def test_how_the_jobs_environment_is_entered_is_told() -> None:
    text = told(environment=JobEnvironment(setup="module load nccl", enter="docker exec -i train", python="/opt/py"))
    assert "bash -l -c 'module load nccl'" in text
    assert "docker exec -i train /bin/sh -c" in text
    assert "/opt/py" in text


def test_root_is_asked_for_only_with_sudo() -> None:
    assert "sudo" not in told()
    assert "sudo -n dmesg" in told(sudo=True)


def test_nothing_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ssh").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    told()
    assert not (tmp_path / "ran").exists()


def test_a_dry_run_by_srun_shows_the_one_step() -> None:
    environ = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-2]"}
    text = dry_run(Settings(via="srun", probe="none", mesh="none"), environ)
    lines = text.splitlines()
    assert "One Slurm step, with one task per node:" in lines
    (step,) = (line for line in lines if line.startswith("  srun "))
    assert step.startswith("  srun --label --verbose ")
    assert step.endswith("--nodes=2 --ntasks=2 '--nodelist=n[1-2]' --immediate=15")
    assert not any("ssh -T" in line for line in lines)
