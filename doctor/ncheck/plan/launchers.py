"""What is no line but a file's worth of them: exports for a shell, and the lines of nccl.conf."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping

from ncheck.hostlist import fold, quoted
from ncheck.model.plan import LaunchPlan, Setting
from ncheck.plan.launch import (
    Host,
    Launch,
    Line,
    NoLineError,
    by_own_name,
    endpoint,
    exported,
    interpreter,
    node_by_node,
    script,
    typed,
    values_in,
)
from ncheck.plan.networks import Network

NOTHING = "# ncheck: nothing need be set"


def exports(plan: LaunchPlan, names: Mapping[str, str]) -> str:
    """Return what a shell takes by eval: one export a line, each value in quotes where it needs them.

    `names` are what the listed nodes call themselves, by which values that are each node's own are told apart.
    """
    lines = [f"export {name}={typed([value])}" for name, value in values_in(plan.env).items()]
    own = by_own_name((names.get(node, node), values_in(settings)) for node, settings in plan.per_node.items())
    return "\n".join([*lines, *([exported(own)] if own else [])]) or NOTHING


def nccl_conf(plan: LaunchPlan, _: Mapping[str, str]) -> str:
    """Return the lines of a file that NCCL reads: its own variables only, with no quotes and no blanks.

    What is each node's own comes last, under a comment that says on which nodes: there the rest is to be left out.
    """
    own: dict[tuple[str, ...], list[str]] = {}
    for node, settings in plan.per_node.items():
        own.setdefault(tuple(_rows(settings)), []).append(node)
    sections = (line for rows, nodes in own.items() if rows for line in (f"# on {fold(nodes)} only:", *rows))
    return "\n".join([*_rows(plan.env), *sections]) or NOTHING


def _rows(settings: Mapping[str, Setting]) -> Iterator[str]:
    return (f"{name}={value}" for name, value in values_in(settings).items() if name.startswith("NCCL_"))


FILES: Mapping[str, Callable[[LaunchPlan, Mapping[str, str]], str]] = {"env": exports, "nccl.conf": nccl_conf}


FIVE = (5,)


# The two published recipes: unbound in the order of the slots, or round the NUMA domains and bound to them.
PROFILES: Mapping[str, tuple[str, ...]] = {
    "slot": ("--bind-to", "none", "--map-by", "slot"),
    "numa": ("--map-by", "numa"),
}


def open_mpi_line(launch: Launch) -> Line:
    """Return the line for the release that was found."""
    words = ["mpirun", *(["--allow-run-as-root"] if launch.as_root else [])]
    words += ["--prefix", launch.prefix] if launch.prefix else []
    words += ["-np", str(launch.ranks), "-H", launch.host_list, *PROFILES[launch.profile]]
    words += _parameter("pml", "ob1")
    if not _is_five(launch):
        words += _parameter("btl", "^openib")
    words += [*_network(launch), *_ssh(launch)]
    for name, value in launch.variables.items():
        words += ["-x", f"{name}={value}"]
    words += ["-x", "PATH", *(["-x", "LD_LIBRARY_PATH"] if launch.libraries else [])]  # unset, it is warned of
    words += launch.program_anywhere
    return Line(typed(words), tuple(_reasons(launch)))


def _reasons(launch: Launch) -> list[str]:
    told = []
    if launch.network:
        told.append(f"held to {launch.network.told}: by itself it tries every interface, docker0 too, and may hang")
    if launch.out_of_band and launch.out_of_band.why:
        told.append(launch.out_of_band.why)
    if launch.prefix:
        told.append(f"its helper is looked for under {launch.prefix}: some node's login does not find it")
    if launch.ssh_arguments:
        told.append(f"its ssh is told {launch.ssh_arguments}, as the list or the options say")
    return told


def _is_five(launch: Launch) -> bool:
    if launch.mpi is None:
        raise NoLineError("no release of Open MPI is known")
    return launch.mpi.release >= FIVE


def _network(launch: Launch) -> list[str]:
    daemons, where = launch.out_of_band, _between_ranks(launch.network) if launch.network else ""
    words = _parameter("btl_tcp_if_include", where) if where else []
    if daemons is not None and daemons.names:
        words += _parameter("oob_tcp_if_include", ",".join(daemons.names) if _is_five(launch) else daemons.where)
    return words


def _between_ranks(network: Network) -> str:
    """Name the subnet, which holds where interface names differ; behind routers the one name, else all subnets.

    Open MPI takes IPv4 subnets only; "" where it can be told nothing that is true of every node.
    """
    if network.subnet and ":" not in network.subnet:
        return network.subnet
    if network.names:
        return network.names[0]
    seats = (seat for held in network.members.values() for seat in held)
    return ",".join(sorted({seat.subnet for seat in seats if ":" not in seat.subnet}))


def _ssh(launch: Launch) -> list[str]:
    return _parameter("plm_rsh_args", launch.ssh_arguments) if launch.ssh_arguments else []


def _parameter(name: str, value: str) -> list[str]:
    return ["--mca", name, value]


def mpich_line(launch: Launch) -> Line:
    """Return MPICH's line: slots stand with the hosts, ssh's options in a variable."""
    words = [
        *_hydra_ssh("HYDRA_LAUNCHER_EXTRA_ARGS", launch),
        "mpiexec",
        "-launcher",
        "ssh",
        "-hosts",
        launch.host_list,
    ]
    return _line(launch, [*words, "-n", str(launch.ranks)])


def intel_mpi_line(launch: Launch) -> Line:
    """Return Intel MPI's line: it takes one number of ranks for all hosts."""
    per_node = launch.alike("Intel MPI", "-ppn")
    words = [*_hydra_ssh("I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", launch), "mpiexec", "-bootstrap", "ssh"]
    words += ["-hosts", ",".join(launch.names), "-ppn", str(per_node)]
    return _line(launch, [*words, "-n", str(launch.ranks)])


def _line(launch: Launch, words: list[str]) -> Line:
    name = _interface(launch)
    given = ["-iface", name] if name and _is_here(launch, name) else []
    told = [f"its ssh is told {launch.ssh_arguments}, as the list or the options say"] if launch.ssh_arguments else []
    if name and not given:
        told.append(f"no -iface {name}: this machine has none, and mpiexec would stop; ranks find a way themselves")
    return Line(typed([*words, *given, *_variables(launch), *launch.program_anywhere]), tuple(told))


def _hydra_ssh(variable: str, launch: Launch) -> list[str]:
    return ["env", f"{variable}={launch.ssh_arguments}"] if launch.ssh_arguments else []


def _interface(launch: Launch) -> str:
    """Return the name for Hydra's own interface, "" for none: it takes one for all nodes and no subnet."""
    return launch.network.names[0] if launch.network and launch.network.names else ""


def _is_here(launch: Launch, name: str) -> bool:
    """Tell whether the machine has it on which the line is typed: Hydra itself listens there first."""
    return launch.head is None or name in launch.head.interfaces.values()


def _variables(launch: Launch) -> list[str]:
    return [word for name, value in launch.variables.items() for word in ("-genv", name, value)]


IFNAME = "NCCL_SOCKET_IFNAME"


_START = 30  # seconds that it waits by default


_HOSTS_IN_THAT_TIME = 16  # each is a login and an import of Horovod, often from one file server


def horovodrun_line(launch: Launch) -> Line:
    """Return the line, to be typed on the head node."""
    name, subnet = _name(launch), _subnet(launch)
    spoken_for = launch.several and bool(name or subnet)
    variables = {key: value for key, value in launch.variables.items() if not (spoken_for and key == IFNAME)}
    words = ["env", *(f"{key}={value}" for key, value in variables.items())] if variables else []
    words += ["horovodrun", "-np", str(launch.ranks), "-H", launch.host_list]
    words += ["-p", str(launch.way.port)] if launch.way.port not in (None, 22) else []
    words += ["-i", launch.way.identity] if launch.way.identity else []
    words += _start_timeout(launch)
    if launch.several:
        words += ["--network-interfaces", name or subnet] if spoken_for else ["--disable-cache"]
        words += _nccls_own(launch) if spoken_for and not name else []
    return Line(typed([*words, *launch.program_anywhere]), tuple(_horovodrun_reasons(launch, name, subnet)))


def _name(launch: Launch) -> str:
    """Return the one interface of the job's network, where by its beginning it means no other anywhere, else ""."""
    if launch.network is None or not launch.network.names:
        return ""
    name = launch.network.names[0]
    meant = {other for own in launch.interfaces for other in own if other.startswith(name)}
    return name if meant == {name} else ""


def _subnet(launch: Launch) -> str:
    """Return the job's subnet; Open MPI takes IPv4 subnets only."""
    subnet = launch.network.subnet if launch.network else ""
    return "" if ":" in subnet else subnet


def _nccls_own(launch: Launch) -> list[str]:
    """Return the words that set NCCL's variable for the program, or free it of the subnet."""
    value = launch.variables.get(IFNAME)
    return ["env", f"{IFNAME}={value}"] if value else ["env", "-u", IFNAME]


def _start_timeout(launch: Launch) -> list[str]:
    rounds = math.ceil(len(launch.hosts) / _HOSTS_IN_THAT_TIME)
    return ["--start-timeout", str(_START * rounds)] if rounds > 1 else []


def _horovodrun_reasons(launch: Launch, name: str, subnet: str) -> list[str]:
    told = []
    if launch.several and not name:
        told += _without_a_name(subnet)
    elif name and launch.head and name not in launch.head.interfaces.values():
        told.append(f"a Horovod without MPI (gloo) looks for {name} on this machine too: type it on a node then")
    if launch.way.user or launch.way.config:
        told.append(f"its ssh must be told {launch.ssh_arguments} by ~/.ssh/config")
    return told


def _without_a_name(subnet: str) -> list[str]:
    if not subnet:
        return ["it looks for interfaces itself; --disable-cache makes it look anew, not at what it found before"]
    return [
        f"no one name means {subnet} alone everywhere: MPI is given the subnet, NCCL its own in front of the program",
        "a Horovod without MPI (gloo) takes one name for all nodes, and cannot start so",
    ]


def torchrun_line(launch: Launch) -> Line:
    """Return the line of each node; for one node alone it needs no meeting."""
    program = script(launch.program, module="-m", bare="--no-python")

    def words(rank: int, host: Host) -> list[str]:
        meeting = ["--standalone"]
        if launch.several:
            meeting = [f"--nnodes={len(launch.hosts)}", f"--node-rank={rank}"]
            meeting += [f"--master-addr={launch.meeting}", f"--master-port={launch.meeting_port}"]
        return [*launch.environment_of(host), "torchrun", *meeting, f"--nproc-per-node={host.slots}", *program]

    return node_by_node(launch, words)


# n[1-2].example.org, which Slurm calls an invalid hostlist; r[1-2]n[1-4] it takes
_SUFFIX = re.compile(r"\][^][,]+(?:,|$)")


def srun_line(launch: Launch) -> Line:
    """Return the line. A value with a comma would end there in --export, so such a one is set in front of it."""
    per_node = launch.alike("srun", "--ntasks-per-node")
    plain = [f"{name}={value}" for name, value in launch.variables.items() if "," not in value]
    others = [f"{name}={value}" for name, value in launch.variables.items() if "," in value]
    words = [*(["env", *others] if others else []), "srun", "-N", str(len(launch.hosts))]
    words += ["-w", _listed(launch.names)] if launch.several else []
    words += [f"--ntasks-per-node={per_node}"]
    told = ["a program that uses MPI may need --mpi as well: srun --mpi=list shows what there is"]
    gpus = {host.gpus for host in launch.hosts}
    if len(gpus) == 1 and 0 not in gpus:
        words += [f"--gpus-per-node={gpus.pop()}"]
        told.append("where sinfo -o %G shows (null), Slurm does not count GPUs: leave out --gpus-per-node")
    words += [f"--export={','.join(['ALL', *plain])}", *launch.program_anywhere]
    return Line(typed(words), tuple(told))


def _listed(names: tuple[str, ...]) -> str:
    """Return the nodes as Slurm reads them: its lists have nothing behind their last bracket."""
    folded = fold(names)
    return ",".join(names) if _SUFFIX.search(folded) else folded


PASSED_ON = ("NCCL", "PYTHON", "UCX", "MV2", "MLFLOW")


HOSTS = "deepspeed.hosts"


# --lr=0.1  a b  (pdsh puts a number in for %n; 0.9 leaves alone what begins with a dash, and quotes all else)
_ARRIVES = re.compile(r"[\w@+=:,./-]+|(?!-)[\w@+=:,./ -]+")


def deepspeed_line(launch: Launch) -> Line:
    """Return one line, to be typed on the first node; for several nodes it writes their file first.

    Raises NoLineError for values that are each node's own: its words reach the nodes' shells unquoted, so that none can
    be told there to choose; and for words of the program that would not arrive as they are.
    """
    if own := sorted({name for host in launch.hosts for name in host.own}):
        told = f"deepspeed sets the same values on all nodes, and {', '.join(own)} is each node's own"
        raise NoLineError(f"{told}; torchrun starts such a program, too: --for torchrun")
    program = script(launch.program, module="--module", bare="--no_python")
    if not launch.several:
        slots = str(launch.ranks)
        return Line(typed([*launch.environment, "deepspeed", "--num_gpus", slots, *program]))
    if lost := [word for word in program if not _ARRIVES.fullmatch(word)]:
        raise NoLineError(f"deepspeed gives {quoted(lost[0])} to the nodes' shells unquoted: put it into a script")
    written = typed(["printf", "%s slots=%s\\n", *_deepspeed_rows(launch)]) + f" > {HOSTS}"
    meeting = ["--master_addr", launch.meeting, "--master_port", str(launch.meeting_port)]
    started = typed([*launch.environment, "deepspeed", "--hostfile", HOSTS, *meeting, *program])
    return Line(f"{written} && {started}", tuple(_deepspeed_reasons(launch)))


def _deepspeed_rows(launch: Launch) -> list[str]:
    rows = zip(launch.names, launch.hosts, strict=True)
    return [word for name, host in rows for word in (name, str(host.slots))]


def _deepspeed_reasons(launch: Launch) -> list[str]:
    told = [f"it writes {HOSTS} here, in the form that deepspeed reads, and needs pdsh here"]
    kept = [name for name in launch.variables if not name.startswith(PASSED_ON)]
    if kept:
        rows = " ".join(typed([f"{name}={launch.variables[name]}"]) for name in kept)
        told.append(f"deepspeed passes {', '.join(kept)} to no other node: printf '%s\\n' {rows} >> ~/.deepspeed_env")
    if launch.ssh_arguments:
        told.append(f"its ssh must be told {launch.ssh_arguments} by ~/.ssh/config")
    return told


def accelerate_line(launch: Launch) -> Line:
    """Return the line of each node. Only with --multi_gpu it starts more than one process, on CPUs too."""
    launch.alike("accelerate", "--num_processes")
    gpus = ["--multi_gpu"] if launch.ranks > 1 else []
    program = script(launch.program, module="--module", bare="--no_python")

    def words(rank: int, host: Host) -> list[str]:
        size = ["--num_machines", str(len(launch.hosts)), "--num_processes", str(launch.ranks)]
        meeting = []
        if launch.several:
            meeting = ["--machine_rank", str(rank), "--main_process_ip", launch.meeting]
            meeting += ["--main_process_port", str(launch.meeting_port)]
        return [*launch.environment_of(host), "accelerate", "launch", *gpus, *size, *meeting, *program]

    return node_by_node(launch, words)


def paddle_line(launch: Launch) -> Line:
    """Return the line of each node. Raises NoLineError for IPv6: Paddle parts address and port at the first colon."""
    if launch.several and any(":" in address for address in launch.addresses):
        raise NoLineError("Paddle's --master takes no IPv6 address, and the nodes meet by IPv6 only")
    program = script(launch.program, module="", bare="")

    def words(rank: int, host: Host) -> list[str]:
        start = [*launch.environment_of(host), interpreter(launch.program), "-m", "paddle.distributed.launch"]
        meeting = []
        if launch.several:
            meeting = ["--master", f"{launch.meeting}:{launch.meeting_port}", "--nnodes", str(len(launch.hosts))]
            meeting += ["--rank", str(rank), "--host", host.address]
        return [*start, *meeting, "--nproc_per_node", str(host.slots), *program]

    return node_by_node(launch, words)


def oneflow_line(launch: Launch) -> Line:
    """Return the line of each node."""
    per_node = launch.alike("OneFlow", "--nproc_per_node")
    program = script(launch.program, module="--module", bare="--no_python")

    def words(rank: int, host: Host) -> list[str]:
        start = [*launch.environment_of(host), interpreter(launch.program), "-m", "oneflow.distributed.launch"]
        size = ["--nproc_per_node", str(per_node), "--nnodes", str(len(launch.hosts)), "--node_rank", str(rank)]
        address = launch.meeting if launch.several else "127.0.0.1"
        return [*start, *size, "--master_addr", address, "--master_port", str(launch.meeting_port), *program]

    return node_by_node(launch, words)


def tensorflow_line(launch: Launch) -> Line:
    """Return the line of each node: one worker a node, which takes all of its GPUs."""
    endpoints = [endpoint(address, launch.meeting_port) for address in launch.addresses] if launch.several else []

    def words(rank: int, host: Host) -> list[str]:
        config = {"cluster": {"worker": endpoints}, "task": {"type": "worker", "index": rank}}
        named = [f"TF_CONFIG={json.dumps(config)}"] if endpoints else []
        front = [*launch.environment_of(host), *named] if launch.environment_of(host) or not named else ["env", *named]
        return [*front, *launch.program]

    line = node_by_node(launch, words)
    workers = "1 worker" if len(launch.hosts) == 1 else f"{len(launch.hosts)} workers"
    return Line(line.text, line.reasons, f"{workers}, one a node, which takes all of its GPUs")
