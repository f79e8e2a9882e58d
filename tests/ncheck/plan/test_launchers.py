"""Each launcher's line, whole, as a shell gets it; the exports for eval; the lines that NCCL reads."""

from __future__ import annotations

import os
import shlex
import subprocess
from dataclasses import replace
from typing import Any

import pytest
from ncheck.facts.mpi import MpiFacts
from ncheck.launchers import LAUNCHER_TABLE, LAUNCHERS
from ncheck.model.plan import LaunchPlan, Setting
from ncheck.network.subnets import SubnetMembers
from ncheck.plan.launch import Launch, LaunchHost, LineMaker, NoLineError, OutOfBand, SshOptions
from ncheck.plan.launchers import FILES, LINES, MPI_LINES, exports, nccl_conf, open_mpi
from ncheck.plan.networks import Network
from ncheck.this_machine.local_host import LocalHost

from .jobs import SUBNET, addresses, launch, line, mpi_line

FRONT = "env NCCL_SOCKET_IFNAME==eth0 GLOO_SOCKET_IFNAME=eth0 "
OMPI = "mpirun -np 4 -H n1:2,n2:2 --bind-to none --map-by slot --mca pml ob1 "
X = "-x NCCL_SOCKET_IFNAME==eth0 -x GLOO_SOCKET_IFNAME=eth0 -x PATH -x LD_LIBRARY_PATH python train.py"
GENV = "-iface eth0 -genv NCCL_SOCKET_IFNAME '=eth0' -genv GLOO_SOCKET_IFNAME eth0 python train.py"


@pytest.mark.parametrize(("implementation", "version", "wanted"), [
    ("Open MPI", "4.1.4",
     f"{OMPI}--mca btl '^openib' --mca btl_tcp_if_include {SUBNET} --mca oob_tcp_if_include {SUBNET} {X}"),
    ("Open MPI", "5.0.11", f"{OMPI}--mca btl_tcp_if_include {SUBNET} --mca oob_tcp_if_include eth0 {X}"),
    ("MPICH", "5.0.2", f"mpiexec -launcher ssh -hosts n1:2,n2:2 -n 4 {GENV}"),
    ("Intel MPI", "2021.18", f"mpiexec -bootstrap ssh -hosts n1,n2 -ppn 2 -n 4 {GENV}"),
])  # fmt: skip
def test_each_mpi_has_its_own_line(implementation: str, version: str, wanted: str) -> None:
    assert mpi_line(implementation, version, launch()) == wanted


def test_library_path_is_passed_on_only_where_it_is_set_for_mpirun_warns_of_it_otherwise() -> None:
    assert " -x PATH python train.py" in mpi_line("Open MPI", "4.1.4", launch(pass_library_path=False))


def test_where_every_node_excludes_interfaces_itself_the_line_includes_none() -> None:
    own = launch(excluding=frozenset({"btl_tcp_if_exclude"}))
    assert f"--mca btl '^openib' --mca oob_tcp_if_include {SUBNET} " in mpi_line("Open MPI", "4.1.4", own)
    reason = "no btl_tcp_if_include: every node has btl_tcp_if_exclude, and Open MPI accepts only one of the two"
    assert open_mpi(replace(own, mpi=MpiFacts("Open MPI", "4.1.4"))).reasons == (reason,)


def test_mpiruns_own_daemons_have_a_network_of_their_own_where_this_machine_is_not_on_the_jobs() -> None:
    other = launch(out_of_band=OutOfBand("10.2.0.0/24", ("eno9", "eth0"), "said why"))
    assert f"btl_tcp_if_include {SUBNET} --mca oob_tcp_if_include 10.2.0.0/24 " in mpi_line("Open MPI", "4.1.4", other)
    assert f"btl_tcp_if_include {SUBNET} --mca oob_tcp_if_include eno9,eth0 " in mpi_line("Open MPI", "5.0.11", other)
    assert "oob" not in mpi_line("Open MPI", "5.0.11", launch(out_of_band=OutOfBand(why="said why")))
    assert "said why" in open_mpi(replace(other, mpi=MpiFacts("Open MPI", "4.1.4"))).reasons


def test_where_the_variables_of_a_slurm_job_are_left_over_open_mpi_starts_without_slurm() -> None:
    left_over = launch(slurm_left_over=True)
    assert " --mca ras '^slurm' --mca plm '^slurm' -x " in mpi_line("Open MPI", "4.1.4", left_over)
    assert open_mpi(replace(left_over, mpi=MpiFacts("Open MPI", "4.1.4"))).reasons == (
        f"pinned to {SUBNET}: otherwise Open MPI tries every interface, including docker0, and may hang",
        "without Slurm: the variables of a Slurm job are set here, and mpirun would start that job's nodes alone",
    )
    assert line("horovodrun", left_over).startswith("env 'OMPI_MCA_ras=^slurm' 'OMPI_MCA_plm=^slurm' ")


@pytest.mark.parametrize("implementation", ["MPICH", "Intel MPI"])
def test_hydra_is_told_no_interface_that_this_machine_has_not(implementation: str) -> None:
    here, elsewhere = (
        launch(local_host=LocalHost({"10.1.0.9": "eth0"})),
        launch(local_host=LocalHost({"10.9.0.9": "eno1"})),
    )
    assert " -iface eth0 " in mpi_line(implementation, "5.0", here)
    assert "-iface" not in mpi_line(implementation, "5.0", elsewhere)
    told = "no -iface eth0: this machine has no such interface, and mpiexec would stop; the ranks choose one"
    assert MPI_LINES[implementation][1](elsewhere).reasons == (told,)


def worker(index: int) -> str:
    workers = '{"cluster": {"worker": ["10.1.0.1:2222", "10.1.0.2:2222"]}'
    return f'TF_CONFIG={workers}, "task": {{"type": "worker", "index": {index}}}}}'


@pytest.mark.parametrize(("launcher", "wanted"), [
    ("horovodrun",
     "env GLOO_SOCKET_IFNAME=eth0 horovodrun -np 4 -H n1:2,n2:2 --network-interfaces eth0 python train.py"),
    ("torchrun",
     (f"# on n1:\n{FRONT}torchrun --nnodes=2 --node_rank=0 --master_addr=10.1.0.1 --master_port=29400 "
     "--nproc_per_node=2 train.py\n"
     f"# on n2:\n{FRONT}torchrun --nnodes=2 --node_rank=1 --master_addr=10.1.0.1 --master_port=29400 "
     "--nproc_per_node=2 train.py")),
    ("srun",
     ("srun -N 2 -w 'n[1-2]' --ntasks-per-node=2 --gpus-per-node=2 "
     "--export=ALL,NCCL_SOCKET_IFNAME==eth0,GLOO_SOCKET_IFNAME=eth0 python train.py")),
    ("deepspeed",
     (r"printf '%s slots=%s\n' n1 2 n2 2 > deepspeed.hosts && "
     f"{FRONT}deepspeed --hostfile deepspeed.hosts --master_addr 10.1.0.1 --master_port 29500 train.py")),
    ("accelerate",
     (f"# on n1:\n{FRONT}accelerate launch --multi_gpu --num_machines 2 --num_processes 4 --machine_rank 0 "
     "--main_process_ip 10.1.0.1 --main_process_port 29500 train.py\n"
     f"# on n2:\n{FRONT}accelerate launch --multi_gpu --num_machines 2 --num_processes 4 --machine_rank 1 "
     "--main_process_ip 10.1.0.1 --main_process_port 29500 train.py")),
    ("paddle",
     (f"# on n1:\n{FRONT}python -m paddle.distributed.launch --master 10.1.0.1:38714 --nnodes 2 --rank 0 "
     "--host 10.1.0.1 --nproc_per_node 2 train.py\n"
     f"# on n2:\n{FRONT}python -m paddle.distributed.launch --master 10.1.0.1:38714 --nnodes 2 --rank 1 "
     "--host 10.1.0.2 --nproc_per_node 2 train.py")),
    ("oneflow",
     (f"# on n1:\n{FRONT}python -m oneflow.distributed.launch --nproc_per_node 2 --nnodes 2 --node_rank 0 "
     "--master_addr 10.1.0.1 --master_port 9988 train.py\n"
     f"# on n2:\n{FRONT}python -m oneflow.distributed.launch --nproc_per_node 2 --nnodes 2 --node_rank 1 "
     "--master_addr 10.1.0.1 --master_port 9988 train.py")),
    ("tensorflow", f"# on n1:\n{FRONT}'{worker(0)}' python train.py\n# on n2:\n{FRONT}'{worker(1)}' python train.py"),
    ("vllm",
     (f"# on n1:\n{FRONT}ray start --head --port=6379 --node-ip-address=10.1.0.1\n"
      f"# on n2:\n{FRONT}ray start --address=10.1.0.1:6379 --node-ip-address=10.1.0.2\n"
      f"# then on n1:\n{FRONT}vllm serve MODEL --tensor-parallel-size 2 --pipeline-parallel-size 2 "
      "--distributed-executor-backend ray")),
    ("sglang",
     (f"# on n1:\n{FRONT}python3 -m sglang.launch_server --model-path MODEL --tp 4 --nnodes 2 --node-rank 0 "
      "--dist-init-addr 10.1.0.1:20000\n"
      f"# on n2:\n{FRONT}python3 -m sglang.launch_server --model-path MODEL --tp 4 --nnodes 2 --node-rank 1 "
      "--dist-init-addr 10.1.0.1:20000")),
    ("ray",
     (f"# on n1:\n{FRONT}ray start --head --port=6379 --node-ip-address=10.1.0.1\n"
      f"# on n2:\n{FRONT}ray start --address=10.1.0.1:6379 --node-ip-address=10.1.0.2\n"
      f"# then on n1:\n{FRONT}RAY_ADDRESS=10.1.0.1:6379 python train.py")),
])  # fmt: skip
def test_each_launcher_has_its_own_line(launcher: str, wanted: str) -> None:
    assert line(launcher, launch()) == wanted


def test_every_launcher_that_can_be_asked_for_has_a_function_and_a_row() -> None:
    assert set(LAUNCHERS) == {"mpirun", *LINES, *FILES}
    assert set(LAUNCHER_TABLE) == {"mpirun", *LINES}


@pytest.mark.parametrize("launcher", [name for name in LINES if LAUNCHER_TABLE[name].one_command])
def test_one_command_is_the_line_word_for_word_and_runs_the_launcher(launcher: str) -> None:
    for job in (launch(), launch("n1", slots=4)):
        made = LINES[launcher](job)
        shell = ["/bin/sh", "-c", made.text.replace("&& env", "&& exec env")]
        assert list(made.argv) == (shell if "&&" in made.text else shlex.split(made.text))
        assert made.program == launcher


@pytest.mark.parametrize("implementation", MPI_LINES)
def test_so_is_that_of_each_mpi(implementation: str) -> None:
    command, make = MPI_LINES[implementation]
    made = make(launch(mpi=MpiFacts(implementation, "4.1.4"), ssh=SshOptions(2222), program=("a && b", "x;y")))
    assert (list(made.argv), made.program) == (shlex.split(made.text), command)


@pytest.mark.parametrize("launcher", [name for name in LINES if not LAUNCHER_TABLE[name].one_command])
def test_where_each_node_has_a_line_of_its_own_there_is_no_one_command(launcher: str) -> None:
    made = LINES[launcher](launch())
    assert (made.argv, made.text.count("# on n")) == ((), 2)


@pytest.mark.parametrize(("launcher", "wanted"), [
    ("horovodrun", "env NCCL_DEBUG=WARN horovodrun -np 2 -H localhost:2 python train.py"),
    ("torchrun", "env NCCL_DEBUG=WARN torchrun --standalone --nproc_per_node=2 train.py"),
    ("srun",
     "srun -N 1 --ntasks-per-node=2 --gpus-per-node=2 --export=ALL,NCCL_DEBUG=WARN python train.py"),
    ("deepspeed", "env NCCL_DEBUG=WARN deepspeed --num_gpus 2 train.py"),
    ("accelerate", "env NCCL_DEBUG=WARN accelerate launch --multi_gpu --num_machines 1 --num_processes 2 train.py"),
    ("paddle", "env NCCL_DEBUG=WARN python -m paddle.distributed.launch --nproc_per_node 2 train.py"),
    ("oneflow",
     ("env NCCL_DEBUG=WARN python -m oneflow.distributed.launch --nproc_per_node 2 --nnodes 1 --node_rank 0 "
     "--master_addr 127.0.0.1 --master_port 9988 train.py")),
    ("tensorflow", "env NCCL_DEBUG=WARN python train.py"),
    ("vllm", "env NCCL_DEBUG=WARN vllm serve MODEL --tensor-parallel-size 2"),
    ("sglang", "env NCCL_DEBUG=WARN python3 -m sglang.launch_server --model-path MODEL --tp 2"),
    ("ray", "env NCCL_DEBUG=WARN python train.py"),
])  # fmt: skip
def test_one_node_alone_meets_nobody(launcher: str, wanted: str) -> None:
    alone = Launch((LaunchHost("localhost", 2, 2),), None, {"NCCL_DEBUG": "WARN"}, SshOptions(), here=True)
    assert line(launcher, alone) == wanted


def test_one_node_of_an_allocation_is_named_to_srun() -> None:
    assert "srun -N 1 -w n2 --ntasks-per-node=2 " in line("srun", launch("n2"))


@pytest.mark.parametrize(("program", "wanted"), [
    (("python", "train.py", "--lr", "0.1"), "train.py --lr 0.1"),
    (("python3.11", "-u", "train.py"), "train.py"),
    (("train.py",), "train.py"),
    (("python", "-m", "mine.train", "a b"), "-m mine.train 'a b'"),
    (("/opt/conda/bin/python", "train.py"), "--no-python /opt/conda/bin/python train.py"),
    (("python", "-O", "train.py"), "--no-python python -O train.py"),
    (("./train", "$HOME;reboot"), "--no-python ./train '$HOME;reboot'"),
])  # fmt: skip
def test_the_program_is_handed_over_as_a_launcher_takes_it_and_each_word_is_quoted(
    program: tuple[str, ...], wanted: str
) -> None:
    alone = Launch((LaunchHost("localhost", 2),), None, {}, SshOptions(), program=program)
    assert line("torchrun", alone) == f"torchrun --standalone --nproc_per_node=2 {wanted}"


def test_mpirun_runs_the_program_word_for_word() -> None:
    job = launch(program=("python", "-c", "print('a b')", "*"), variables={})
    assert mpi_line("Open MPI", "5.0.11", job).endswith(
        """ -x PATH -x LD_LIBRARY_PATH python -c 'print('"'"'a b'"'"')' '*'"""
    )


def test_the_numa_profile_is_the_other_published_recipe() -> None:
    assert " -H n1:2,n2:2 --map-by numa --mca " in mpi_line("Open MPI", "4.1.4", launch(profile="numa"))


def test_a_prefix_is_named_where_a_login_does_not_find_the_daemon() -> None:
    prefixed = mpi_line("Open MPI", "4.1.4", launch(prefix="/opt/open mpi", as_root=True))
    assert prefixed.startswith("mpirun --allow-run-as-root --prefix '/opt/open mpi' -np 4 ")


def test_the_way_in_is_told_to_the_launchers_that_log_in() -> None:
    way = SshOptions(2222, "ada", "~/.ssh/job", None)
    job = launch(ssh=way, variables={})
    assert "--mca plm_rsh_args '-p 2222 -l ada -i ~/.ssh/job' " in mpi_line("Open MPI", "4.1.4", job)
    assert " -p 2222 -i '~/.ssh/job' " in line("horovodrun", job)
    told = "add the ssh options -p 2222 -l ada -i ~/.ssh/job to ~/.ssh/config: the launcher cannot pass them"
    assert told in LINES["horovodrun"](job).reasons
    assert told in LINES["deepspeed"](job).reasons


@pytest.mark.parametrize(("cards", "subnets", "wanted"), [
    (("eth0", "eth0"), ("10.1.0.0/24", "10.2.0.0/24"), " --mca btl_tcp_if_include eth0 "),
    (("eno1", "enp3s0"), ("10.1.0.0/24", "10.2.0.0/24"), " --mca btl_tcp_if_include 10.1.0.0/24,10.2.0.0/24 "),
    (("eno1", "enp3s0"), ("fd00::/64", "fd00::/64"), ""),
])  # fmt: skip
def test_ranks_of_open_mpi_are_never_told_a_name_that_some_node_has_not(
    cards: tuple[str, ...], subnets: tuple[str, ...], wanted: str
) -> None:
    job = launch(cards=cards)
    assert job.network
    own: SubnetMembers = {
        host: (replace(held[0], subnet=subnet),)
        for (host, held), subnet in zip(job.network.members.items(), subnets, strict=True)
    }
    made = mpi_line("Open MPI", "4.1.4", replace(job, network=Network("", own)))
    assert wanted in made if wanted else "btl_tcp" not in made


def test_a_value_with_a_comma_stands_in_front_of_srun() -> None:
    job = launch(cards=("eno1", "enp3s0"), variables={"NCCL_SOCKET_IFNAME": "=eno1,enp3s0", "NCCL_DEBUG": "WARN"})
    assert line("srun", job).startswith("env NCCL_SOCKET_IFNAME==eno1,enp3s0 srun -N 2 ")
    assert " --export=ALL,NCCL_DEBUG=WARN " in line("srun", job)


@pytest.mark.parametrize(("names", "wanted"), [
    (("n01", "n02", "n10"), "'n[01-02,10]'"),
    (("r1n1", "r1n2", "r2n1", "r2n2"), "'r[1-2]n[1-2]'"),
    (("n1.example.org", "n2.example.org"), "n1.example.org,n2.example.org"),
    (("n1-ib", "n2-ib", "m7"), "n1-ib,n2-ib,m7"),
])  # fmt: skip
def test_slurm_is_given_no_list_with_something_behind_its_last_bracket(names: tuple[str, ...], wanted: str) -> None:
    assert f" -w {wanted} --ntasks-per-node=2 " in line("srun", launch(*names))


def test_deepspeed_says_which_variables_it_keeps_to_itself() -> None:
    assert LINES["deepspeed"](launch()).reasons == (
        "it writes deepspeed.hosts here, in deepspeed's format, and needs pdsh here",
        (
            "deepspeed passes GLOO_SOCKET_IFNAME to no other node: "
            r"printf '%s\n' GLOO_SOCKET_IFNAME=eth0 >> ~/.deepspeed_env"
        ),
    )


def six(job: Launch) -> Launch:
    hosts = tuple(replace(host, address=f"fd00::{index}") for index, host in enumerate(job.hosts, 1))
    return replace(job, hosts=hosts)


@pytest.mark.parametrize(("version", "btl"), [("4.1.4", "--mca btl '^openib,ofi' "), ("5.0.11", "")])
def test_over_ipv6_open_mpi_4_is_kept_from_btl_ofi_which_ends_the_job(version: str, btl: str) -> None:
    members = {host: addresses("eth0", f"fd00::{index}") for index, host in enumerate(("n1", "n2"), 1)}
    made = mpi_line("Open MPI", version, launch(network=Network("fd00::/64", members)))
    assert f"--mca pml ob1 {btl}--mca btl_tcp_if_include eth0 " in made


@pytest.mark.parametrize("launcher", ["horovodrun", "srun", "deepspeed"])
def test_hosts_that_are_listed_by_ipv6_have_no_line_where_colons_mean_slots(launcher: str) -> None:
    with pytest.raises(NoLineError, match="list host names"):
        line(launcher, launch("fd00::1", "fd00::2"))


def test_nodes_may_meet_by_ipv6_where_the_launcher_takes_it() -> None:
    assert "--master_addr=fd00::1 --master_port=29400" in line("torchrun", six(launch()))
    assert '["[fd00::1]:2222", "[fd00::2]:2222"]' in line("tensorflow", six(launch()))
    assert "ray start '--address=[fd00::1]:6379' --node-ip-address=fd00::2" in line("ray", six(launch()))
    assert "--dist-init-addr '[fd00::1]:20000'" in line("sglang", six(launch()))
    assert " --master-addr fd00::1 --headless" in line("vllm", six(launch(releases=frozenset({(1, 0)}))))
    with pytest.raises(NoLineError, match="takes no IPv6 address"):
        line("paddle", six(launch()))


@pytest.mark.parametrize("maker", [LINES[name] for name in ("torchrun", "accelerate", "paddle", "oneflow", "tensorflow",
                                                           "deepspeed", "vllm", "sglang", "ray")])  # fmt: skip
def test_without_an_address_there_is_no_meeting_and_no_line(maker: LineMaker) -> None:
    job = launch()
    nowhere = replace(job, hosts=(replace(job.hosts[0], address=""), job.hosts[1]))
    with pytest.raises(NoLineError, match="the address of n1 in a network of all nodes is unknown"):
        maker(nowhere)


def test_slots_that_differ_have_a_line_where_the_launcher_can_say_so() -> None:
    job = launch()
    uneven = replace(job, hosts=(job.hosts[0], replace(job.hosts[1], slots=4)))
    assert "--nproc_per_node=4" in line("torchrun", uneven)
    for launcher in ("srun", "accelerate", "oneflow", "sglang"):
        with pytest.raises(NoLineError, match="for all nodes, but their slots differ"):
            line(launcher, uneven)


OF_EACH = (
    {"VLLM_HOST_IP": "10.1.0.1", "NCCL_SOCKET_IFNAME": "=eth0"},
    {"VLLM_HOST_IP": "10.1.0.2", "NCCL_SOCKET_IFNAME": "=ib0"},
)


def served(**changed: Any) -> Launch:
    """Return a job of two nodes whose interfaces have different names, so that they have values of their own."""
    job = launch(**{"cards": ("eth0", "ib0"), "variables": {"NCCL_DEBUG": "WARN"}, **changed})
    return replace(job, hosts=tuple(replace(host, own=own) for host, own in zip(job.hosts, OF_EACH, strict=True)))


def test_vllm_needs_no_ray_where_every_node_has_a_release_that_can_do_without() -> None:
    with_port = served(releases=frozenset({(0, 12), (1, 0)}), meeting_port=7000, program=("org/model", "-tp", "1"))
    front = "env NCCL_DEBUG=WARN VLLM_HOST_IP=10.1.0.{0} NCCL_SOCKET_IFNAME={1} vllm serve org/model "
    size = "--pipeline-parallel-size 4 --nnodes 2 --node-rank {} --master-addr 10.1.0.1"
    assert line("vllm", with_port) == (
        f"# on n1:\n{front.format(1, '=eth0')}{size.format(0)} --master-port 7000 -tp 1\n"
        f"# on n2:\n{front.format(2, '=ib0')}{size.format(1)} --master-port 7000 --headless -tp 1"
    )
    assert "--master-port" not in line("vllm", replace(with_port, meeting_port=0))  # vLLM's own default
    for releases in ({(0, 12), (0, 11)}, {(0, 12), ()}):
        assert "ray start" in line("vllm", replace(with_port, releases=frozenset(releases)))


def test_the_server_itself_has_no_value_that_is_right_on_its_own_node_alone_but_for_its_address() -> None:
    front = "env NCCL_DEBUG=WARN VLLM_HOST_IP=10.1.0.{0} NCCL_SOCKET_IFNAME={1} ray start "
    assert line("vllm", served()) == (
        f"# on n1:\n{front.format(1, '=eth0')}--head --port=6379 --node-ip-address=10.1.0.1\n"
        f"# on n2:\n{front.format(2, '=ib0')}--address=10.1.0.1:6379 --node-ip-address=10.1.0.2\n"
        "# then on n1:\nenv NCCL_DEBUG=WARN VLLM_HOST_IP=10.1.0.1 vllm serve MODEL --tensor-parallel-size 2 "
        "--pipeline-parallel-size 2 --distributed-executor-backend ray"
    )


@pytest.mark.parametrize(
    ("launcher", "releases"), [("vllm", {(0, 12)}), ("vllm", {()}), ("sglang", {()}), ("ray", {()})]
)
def test_a_server_has_no_line_where_the_address_of_any_node_is_unknown(
    launcher: str, releases: set[tuple[int, ...]]
) -> None:
    job = launch(releases=frozenset(releases))
    lost = replace(job, hosts=(job.hosts[0], replace(job.hosts[1], address="")))
    with pytest.raises(NoLineError, match="the address of n2 in a network of all nodes is unknown"):
        line(launcher, lost)


def test_vllm_divides_what_differs_and_ray_is_told_of_fewer_slots_than_gpus() -> None:
    job = launch(releases=frozenset({(0, 12)}))
    uneven = replace(job, hosts=(replace(job.hosts[0], slots=8, gpus=8), replace(job.hosts[1], slots=4, gpus=8)))
    text = line("vllm", uneven)
    assert "--tensor-parallel-size 4 --pipeline-parallel-size 3 --distributed-executor-backend ray" in text
    assert "--address=10.1.0.1:6379 --node-ip-address=10.1.0.2 --num-gpus=4" in text
    assert LINES["vllm"](replace(uneven, meeting_port=6379)).reasons == (
        "type each line on its own node, n1 first; ray status shows whether all are there",
        "4 is the greatest number of GPUs that divides those of every node",
    )


@pytest.mark.parametrize(("launcher", "program", "wanted"), [
    ("vllm", ("vllm", "serve", "m", "--port", "80"), "vllm serve m --tensor-parallel-size 2 --port 80"),
    ("vllm", ("/opt/vllm", "serve", "--config", "c"), "/opt/vllm serve --tensor-parallel-size 2 --config c"),
    ("vllm", ("python3", "-m", "vllm.entrypoints.openai.api_server", "--model", "m"),
     "python3 -m vllm.entrypoints.openai.api_server --tensor-parallel-size 2 --model m"),
    ("sglang", ("python", "-m", "sglang.launch_server", "--model-path", "m"),
     "python -m sglang.launch_server --tp 2 --model-path m"),
    ("sglang", ("/models/a b", "--port", "80"),
     "python3 -m sglang.launch_server --model-path '/models/a b' --tp 2 --port 80"),
])  # fmt: skip
def test_a_server_takes_its_whole_command_or_its_model(launcher: str, program: tuple[str, ...], wanted: str) -> None:
    assert line(launcher, Launch((LaunchHost("localhost", 2, 2),), None, {}, SshOptions(), program=program)) == wanted


@pytest.mark.parametrize(("launcher", "own", "sizes"), [
    ("vllm", "-tp 16", "--pipeline-parallel-size 2 --distributed-executor-backend ray -tp 16"),
    ("vllm", "--pipeline_parallel_size=8", "--tensor-parallel-size 4 --distributed"),
    ("vllm", "-dp 2", "--tensor-parallel-size 8 --pipeline-parallel-size 2 --distributed"),
    ("vllm", "--tensor-parallel-size 8 -pp 2", "serve m --distributed"),
    ("vllm", "-tp 5", "serve m --distributed"),
    ("vllm", "-tp all", "serve m --distributed"),
    ("vllm", f"-tp {'9' * 5000}", "serve m --distributed"),
    ("vllm", "-tp", "serve m --distributed"),
    ("sglang", "--pp-size 2", "--model-path m --tp 16 --nnodes 4"),
    ("sglang", "--tp-size=8 --pp-size 4", "--model-path m --nnodes 4"),
    ("sglang", "--dp 8 --enable-dp-attention", "--model-path m --tp 32 --nnodes 4"),  # these share the ranks of --tp
])  # fmt: skip
def test_a_size_that_the_server_names_itself_leaves_only_the_rest_to_the_plan(
    launcher: str, own: str, sizes: str
) -> None:
    first = launch().hosts[0]
    four = tuple(replace(first, name=f"n{number}", slots=8, gpus=8) for number in range(4))
    assert f" {sizes}" in line(launcher, launch(hosts=four, program=("m", *own.split())))


@pytest.mark.parametrize(
    "program", [("python", "serve.py"), ("vllm", "bench"), ("python", "-m", "sglang.x"), ("s.sh",)]
)
def test_another_program_is_no_model(program: tuple[str, ...]) -> None:
    with pytest.raises(NoLineError, match="after -- write the model and its options, or the whole command"):
        line("vllm", launch(program=program))
    with pytest.raises(NoLineError, match="--for vllm prints its lines"):
        line("ray", launch(program=("vllm", "serve", "m")))


def test_nodes_without_a_gpu_have_no_word_of_gpus() -> None:
    job = launch()
    bare = replace(job, hosts=tuple(replace(host, gpus=0) for host in job.hosts))
    assert "gpu" not in line("srun", bare)


@pytest.mark.parametrize(("name", "code", "out"), [(os.uname().nodename, 0, "=eth1"), ("elsewhere", 1, "")])
def test_one_line_for_all_sets_each_nodes_own_where_it_runs_and_stops_elsewhere(name: str, code: int, out: str) -> None:
    job = launch(program=("printenv", "NCCL_SOCKET_IFNAME"), variables={})
    here = replace(job.hosts[0], own={"NCCL_SOCKET_IFNAME": "=eth1"}, host_name=name)
    words = replace(job, hosts=(here, job.hosts[1])).program_anywhere
    ran = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, ran.stdout.strip()) == (code, out)


@pytest.mark.parametrize("word", ["$HOME", "it's", "a;b", "*", "%n", "a\nb", "", "--name=a b", "\\", "`x`", "(1)"])
def test_deepspeed_has_no_line_for_words_that_the_nodes_shells_would_change(word: str) -> None:
    with pytest.raises(NoLineError, match="to the nodes' shells unquoted: put it into a script"):
        line("deepspeed", launch(program=("python", "train.py", word)))
    alone = Launch((LaunchHost("localhost", 2),), None, {}, SshOptions(), program=("python", "train.py", word))
    assert shlex.split(line("deepspeed", alone))[-1] == word


def test_deepspeed_takes_words_with_blanks() -> None:
    made = line("deepspeed", launch(program=("python", "train.py", "a b", "--lr=0.1", "né")))
    assert made.endswith(" train.py 'a b' --lr=0.1 'né'")


def test_deepspeed_has_no_line_for_values_that_are_each_nodes_own() -> None:
    job = launch()
    own = replace(job.hosts[0], own={"NCCL_SOCKET_IFNAME": "=eth1"})
    with pytest.raises(NoLineError, match="NCCL_SOCKET_IFNAME must differ; torchrun can start the same program"):
        line("deepspeed", replace(job, hosts=(own, job.hosts[1])))


def test_a_line_that_is_typed_on_each_node_has_its_own_value() -> None:
    job = launch(variables={})
    hosts = tuple(replace(host, own={"NCCL_SOCKET_IFNAME": f"=eth{n}"}) for n, host in enumerate(job.hosts))
    first, second = line("torchrun", replace(job, hosts=hosts)).splitlines()[1::2]
    assert first.startswith("env NCCL_SOCKET_IFNAME==eth0 torchrun ")
    assert second.startswith("env NCCL_SOCKET_IFNAME==eth1 torchrun ")


def test_horovodrun_waits_longer_for_many_nodes() -> None:
    def timeout(count: int) -> str:
        words = line("horovodrun", launch(*(f"n{index}" for index in range(1, count + 1)))).split()
        return words[words.index("--start-timeout") + 1] if "--start-timeout" in words else ""

    assert [timeout(count) for count in (16, 17, 64)] == ["", "60", "120"]


@pytest.mark.parametrize(("cards", "interfaces", "wanted"), [
    (("eth0", "eth0"), ({"eth0"}, {"eth0", "eno1"}), "--network-interfaces eth0 python"),
    (("eth1", "eth1"), ({"eth1", "eth10"}, {"eth1"}),
     f"--network-interfaces {SUBNET} env NCCL_SOCKET_IFNAME==eth1 python"),
    (("eno1", "enp3s0"), ({"lo", "eno1"}, {"lo", "enp3s0"}),
     f"--network-interfaces {SUBNET} env NCCL_SOCKET_IFNAME==eno1,enp3s0 python"),
])  # fmt: skip
def test_horovodrun_is_given_a_name_only_where_it_is_right_for_mpi_and_as_a_beginning_for_nccl(
    cards: tuple[str, ...], interfaces: tuple[set[str], ...], wanted: str
) -> None:
    job = launch(cards=cards, interfaces=tuple(frozenset(names) for names in interfaces))
    assert line("horovodrun", job).startswith("env GLOO_SOCKET_IFNAME=eth0 horovodrun ")
    assert wanted in line("horovodrun", job)


def test_horovodruns_subnet_does_not_reach_nccl_where_nothing_is_set_for_it() -> None:
    apart = launch(cards=("eno1", "enp3s0"), variables={})
    assert line("horovodrun", apart).endswith(
        f" --network-interfaces {SUBNET} env -u NCCL_SOCKET_IFNAME python train.py"
    )


def test_horovodrun_looks_itself_where_nothing_can_be_named() -> None:
    job = launch(cards=("eno1", "enp3s0"))
    assert job.network
    routed = replace(job, network=replace(job.network, subnet=""))
    assert line("horovodrun", routed).endswith(" -H n1:2,n2:2 --disable-cache python train.py")


def test_horovodrun_says_where_only_a_horovod_with_mpi_gets_along() -> None:
    apart = launch(cards=("eno1", "enp3s0"))
    assert LINES["horovodrun"](apart).reasons == (
        f"the interface in {SUBNET} has no common name on all nodes: MPI gets the subnet, NCCL its own variable",
        "a Horovod without MPI (gloo) needs one name for all nodes and cannot start with this line",
    )
    elsewhere = launch(local_host=LocalHost({"10.9.0.9": "eno1"}))
    told = "a Horovod without MPI (gloo) needs eth0 on this machine too, which has none: type the line on a node"
    assert LINES["horovodrun"](elsewhere).reasons == (told,)
    assert LINES["horovodrun"](launch(local_host=LocalHost({"10.1.0.9": "eth0"}))).reasons == ()


PLAN = LaunchPlan(
    {
        "NCCL_SOCKET_IFNAME": Setting("=eth0", "why"),
        "NCCL_IB_HCA": Setting(None, "why not"),
        "GLOO_SOCKET_IFNAME": Setting("eth0", "why"),
    }
)


def test_the_exports_are_what_eval_sets() -> None:
    assert exports(PLAN, {}) == "export NCCL_SOCKET_IFNAME='=eth0'\nexport GLOO_SOCKET_IFNAME=eth0"
    script = 'eval "$1" && printf "%s %s" "$NCCL_SOCKET_IFNAME" "$GLOO_SOCKET_IFNAME"'
    ran = subprocess.run(
        ["sh", "-c", script, "sh", exports(PLAN, {})], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout == "=eth0 eth0"


def test_the_file_of_nccl_has_its_own_variables_only_with_no_quotes() -> None:
    assert nccl_conf(PLAN, {}) == "NCCL_SOCKET_IFNAME==eth0"


def test_where_nothing_need_be_set_a_comment_says_so() -> None:
    assert (exports(LaunchPlan(), {}), nccl_conf(LaunchPlan(), {})) == ("# ncheck: nothing need be set",) * 2


OWN = {
    "n1": {"NCCL_SOCKET_IFNAME": Setting("=eth1", "why")},
    "n2": {"NCCL_SOCKET_IFNAME": Setting("=eth2", "why")},
    "n3": {"NCCL_SOCKET_IFNAME": Setting("=eth1", "why")},
}


def test_values_that_are_each_nodes_own_are_told_apart_by_what_it_calls_itself() -> None:
    plan = LaunchPlan({"NCCL_SOCKET_IFNAME": Setting(None, "see there"), "A": Setting("b", "why")}, per_node=OWN)
    assert exports(plan, {"n2": "second.example"}) == (
        "export A=b\n"
        'case "$(uname -n)" in\n'
        "  n1|n3) export NCCL_SOCKET_IFNAME='=eth1' ;;\n"
        "  second.example) export NCCL_SOCKET_IFNAME='=eth2' ;;\n"
        '  *) echo "ncheck: nothing is known to be right for $(uname -n)" >&2; false ;;\n'
        "esac"
    )
    assert nccl_conf(plan, {}) == (
        "# on n[1,3] only:\nNCCL_SOCKET_IFNAME==eth1\n# on n2 only:\nNCCL_SOCKET_IFNAME==eth2"
    )


@pytest.mark.parametrize("value", ["eth0;reboot", "$(reboot)", "eth0\nA=b", "eth 0", "a'b"])
def test_what_a_node_made_up_reaches_no_line(value: str) -> None:
    hostile = {"NCCL_SOCKET_IFNAME": Setting(value, "why")}
    for plan in (LaunchPlan(hostile), LaunchPlan(per_node={"n1": hostile})):
        for made in (exports, nccl_conf):
            with pytest.raises(NoLineError, match="is not a safe value for NCCL_SOCKET_IFNAME"):
                made(plan, {})


def test_nodes_that_call_themselves_alike_get_no_values_that_may_be_the_others() -> None:
    def own(value: str) -> dict[str, Setting]:
        return {"GLOO_SOCKET_IFNAME": Setting(value, "its own")}

    names = {"n1": "localhost", "n2": "localhost"}
    with pytest.raises(NoLineError, match="several nodes have the hostname localhost but need different values"):
        exports(LaunchPlan(per_node={"n1": own("eth0"), "n2": own("eth1")}), names)
    assert "localhost) export GLOO_SOCKET_IFNAME=eth0 ;;" in exports(
        LaunchPlan(per_node={"n1": own("eth0"), "n2": own("eth0")}), names
    )
