"""Each launcher's command line, one function per launcher, and the two text formats: exports and nccl.conf.

To add a launcher: a function here with @launcher, and its row in ncheck.launchers.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping

from ncheck.facts.environment import IFNAME
from ncheck.hostlist import fold, quoted, slurm_list
from ncheck.launchers import MEETING_PORTS
from ncheck.model.plan import LaunchPlan, Setting
from ncheck.plan.launch import (
    PROGRAM,
    Launch,
    LaunchHost,
    LaunchLine,
    LineMaker,
    NoLineError,
    by_host_name,
    endpoint,
    env_words,
    exported,
    interpreter,
    is_interpreter,
    line_per_node,
    one_command,
    script,
    typed,
    values_in,
)
from ncheck.text import printable

# The line of each launcher by its name, and mpirun's by MPI implementation with the command's own name.
LINES: dict[str, LineMaker] = {}
MPI_LINES: dict[str, tuple[str, LineMaker]] = {}


def launcher(name: str) -> Callable[[LineMaker], LineMaker]:
    """Register a launcher's function under the name of the launcher."""

    def register(make: LineMaker) -> LineMaker:
        LINES[name] = make
        return make

    return register


def mpi_launcher(implementation: str, command: str) -> Callable[[LineMaker], LineMaker]:
    """Register the function for an MPI implementation."""

    def register(make: LineMaker) -> LineMaker:
        MPI_LINES[implementation] = (command, make)
        return make

    return register


# The two published recipes: not bound, in the order of the slots; or spread over the NUMA domains and bound to them.
PROFILES: Mapping[str, tuple[str, ...]] = {
    "slot": ("--bind-to", "none", "--map-by", "slot"),
    "numa": ("--map-by", "numa"),
}


# Both are needed (4.1.4): without the first mpirun takes the nodes of the Slurm job, without the second it calls srun.
_OUTSIDE_SLURM = {"ras": "^slurm", "plm": "^slurm"}


@mpi_launcher("Open MPI", "mpirun")
def open_mpi(launch: Launch) -> LaunchLine:
    """Return the line for the installed release of Open MPI.

    3.1, 4.x and 5.0 differ in two options. 5.0 has no openib. And 5.0 (observed with 5.0.11) takes no subnet for its
    daemons: it warns "Did not find interface matching this subnet" and uses any; it takes names, also of other nodes.
    For the ranks' traffic it is the reverse: a name that a node lacks crashes them (4.1.4: segmentation fault in
    pml_ob1), and a subnet that it lacks only gives a warning.
    """
    if launch.mpi is None:
        raise NoLineError("the release of Open MPI is unknown")
    words = ["mpirun", *(["--allow-run-as-root"] if launch.as_root else [])]
    words += ["--prefix", launch.prefix] if launch.prefix else []
    words += ["-np", str(launch.ranks), "-H", launch.host_list, *PROFILES[launch.profile]]
    left_out = {name.replace("exclude", "include"): name for name in sorted(launch.excluding)}
    parameters = _mca_parameters(launch, five=launch.mpi.release >= (5,))
    for name, value in parameters.items():
        words += ["--mca", name, value] if name not in left_out else []
    for name, value in launch.variables.items():
        words += ["-x", f"{name}={value}"]
    words += ["-x", "PATH", *(["-x", "LD_LIBRARY_PATH"] if launch.pass_library_path else [])]  # unset, mpirun warns
    reasons = [
        f"no {name}: every node has {left_out[name]}, and Open MPI accepts only one of the two"
        for name in parameters if name in left_out
    ]  # fmt: skip
    if launch.network and "btl_tcp_if_include" not in left_out:
        reasons.append(
            f"pinned to {launch.network.label}: otherwise Open MPI tries every interface, including docker0, "
            "and may hang"
        )
    if launch.out_of_band and launch.out_of_band.why:
        reasons.append(launch.out_of_band.why)
    if launch.slurm_left_over:
        reasons.append(
            "without Slurm: the variables of a Slurm job are set here, and mpirun would start that job's nodes alone"
        )
    if launch.prefix:
        reasons.append(f"--prefix {launch.prefix}: on some node a plain login does not find Open MPI's daemon")
    return one_command("mpirun", [*words, *launch.program_anywhere], [*reasons, *_ssh_reason(launch)])


def _mca_parameters(launch: Launch, *, five: bool) -> dict[str, str]:
    daemons, ranks_in = launch.out_of_band, _open_mpi_subnets(launch)
    parameters = {"pml": "ob1"}
    if not five:
        parameters["btl"] = "^openib,ofi" if _by_ipv6(launch) else "^openib"
    if ranks_in:
        parameters["btl_tcp_if_include"] = ranks_in
    if daemons is not None and daemons.names:
        parameters["oob_tcp_if_include"] = ",".join(daemons.names) if five else daemons.where
    if launch.slurm_left_over:
        parameters |= _OUTSIDE_SLURM
    if launch.ssh_arguments:
        parameters["plm_rsh_args"] = launch.ssh_arguments
    return parameters


def _by_ipv6(launch: Launch) -> bool:
    """Tell whether the ranks connect over IPv6.

    Some node may have no IPv4 address then, and btl ofi of Open MPI 4 ends the job ("BTL OFI will now abort": 4.1.4).
    """
    addresses = launch.network.members.values() if launch.network else ()
    return any(":" in address.ip for own in addresses for address in own)


def _open_mpi_subnets(launch: Launch) -> str:
    """Return where the ranks connect: the subnet, which is right even if interface names differ.

    Behind routers it is the common name, else all subnets. Open MPI takes IPv4 subnets only: "" if nothing is right on
    every node.
    """
    network = launch.network
    if network is None:
        return ""
    if network.subnet and ":" not in network.subnet:
        return network.subnet
    if network.names:
        return network.names[0]
    addresses = (address for own in network.members.values() for address in own)
    return ",".join(sorted({address.subnet for address in addresses if ":" not in address.subnet}))


def _ssh_reason(launch: Launch) -> list[str]:
    return [f"ssh options {launch.ssh_arguments}: from the node list or the options"] if launch.ssh_arguments else []


@mpi_launcher("MPICH", "mpiexec")
def mpich(launch: Launch) -> LaunchLine:
    """Return MPICH's line: the slots are in the host list, ssh's options in a variable."""
    words = [*_ssh_variable("HYDRA_LAUNCHER_EXTRA_ARGS", launch), "mpiexec", "-launcher", "ssh"]
    return _hydra(launch, [*words, "-hosts", launch.host_list])


@mpi_launcher("Intel MPI", "mpiexec")
def intel_mpi(launch: Launch) -> LaunchLine:
    """Return Intel MPI's line: it takes one number of ranks for all hosts."""
    per_node = launch.equal_slots("Intel MPI", "-ppn")
    words = [*_ssh_variable("I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", launch), "mpiexec", "-bootstrap", "ssh"]
    return _hydra(launch, [*words, "-hosts", ",".join(launch.names), "-ppn", str(per_node)])


def _ssh_variable(variable: str, launch: Launch) -> list[str]:
    return env_words({variable: launch.ssh_arguments}) if launch.ssh_arguments else []


def _hydra(launch: Launch, words: list[str]) -> LaunchLine:
    """Return the line of an MPI with the Hydra launcher: it takes one interface for all nodes and no subnet.

    Hydra itself listens on that interface first, so the machine where the line is typed must have it.
    """
    name = launch.network.names[0] if launch.network and launch.network.names else ""
    here = launch.local_host is None or name in launch.local_host.interfaces.values()
    words = [*words, "-n", str(launch.ranks), *(["-iface", name] if name and here else [])]
    for variable, value in launch.variables.items():
        words += ["-genv", variable, value]
    reasons = _ssh_reason(launch)
    if name and not here:
        reasons.append(
            f"no -iface {name}: this machine has no such interface, and mpiexec would stop; the ranks choose one"
        )
    return one_command("mpiexec", [*words, *launch.program_anywhere], reasons)


_START_TIMEOUT = 30  # seconds that horovodrun waits by default
_HOSTS_IN_THAT_TIME = 16  # each is a login and an import of Horovod, often from one file server


@launcher("horovodrun")
def horovodrun(launch: Launch) -> LaunchLine:
    """Return the line, to be typed on one of the nodes or a machine in their network.

    Without --network-interfaces, horovodrun searches for common interface names itself. It passes the value unchanged
    to Open MPI's btl_tcp_if_include and to NCCL_SOCKET_IFNAME (Horovod source, runner/mpi_run.py and runner/driver).
    For NCCL a name is a prefix, and Open MPI 4.1.4 was seen to crash if a node lacks one of several names. So if no
    single name is right for both, Open MPI gets the subnet, and NCCL its own value before the program. horovodrun
    passes on all variables of its own environment.
    """
    name, subnet = _unambiguous_name(launch), launch.network.subnet if launch.network else ""
    subnet = "" if ":" in subnet else subnet  # Open MPI takes IPv4 subnets only
    selected = launch.several and bool(name or subnet)
    outside = {f"OMPI_MCA_{name}": value for name, value in _OUTSIDE_SLURM.items() if launch.slurm_left_over}
    variables = {key: value for key, value in launch.variables.items() if not (selected and key == IFNAME)}
    words = [*env_words(outside | variables), "horovodrun", "-np", str(launch.ranks), "-H", launch.host_list]
    words += ["-p", str(launch.ssh.port)] if launch.ssh.port not in (None, 22) else []
    words += ["-i", launch.ssh.identity] if launch.ssh.identity else []
    rounds = math.ceil(len(launch.hosts) / _HOSTS_IN_THAT_TIME)
    words += ["--start-timeout", str(_START_TIMEOUT * rounds)] if rounds > 1 else []
    if selected:
        words += ["--network-interfaces", name or subnet]
        if not name:  # the subnet is for MPI only
            value = launch.variables.get(IFNAME)
            words += ["env", f"{IFNAME}={value}"] if value else ["env", "-u", IFNAME]
    elif launch.several:
        words += ["--disable-cache"]
    reasons = []
    if launch.several and not name:
        reasons += _horovodrun_without_a_name(subnet)
    elif name and launch.local_host and name not in launch.local_host.interfaces.values():
        reasons.append(
            f"a Horovod without MPI (gloo) needs {name} on this machine too, which has none: type the line on a node"
        )
    if launch.ssh.user or launch.ssh.config:
        reasons.append(_ssh_configuration(launch))
    return one_command("horovodrun", [*words, *launch.program_anywhere], reasons)


def _unambiguous_name(launch: Launch) -> str:
    """Return the interface name of the job's network if it is no prefix of another name on any node, else ""."""
    if launch.network is None or not launch.network.names:
        return ""
    name = launch.network.names[0]
    matched = {other for own in launch.interfaces for other in own if other.startswith(name)}
    return name if matched == {name} else ""


def _horovodrun_without_a_name(subnet: str) -> list[str]:
    if not subnet:
        return ["horovodrun finds the interfaces itself; --disable-cache keeps it from using an older result"]
    return [
        f"the interface in {subnet} has no common name on all nodes: MPI gets the subnet, NCCL its own variable",
        "a Horovod without MPI (gloo) needs one name for all nodes and cannot start with this line",
    ]


def _ssh_configuration(launch: Launch) -> str:
    return f"add the ssh options {launch.ssh_arguments} to ~/.ssh/config: the launcher cannot pass them"


@launcher("torchrun")
def torchrun(launch: Launch) -> LaunchLine:
    """Return the line of each node; a single node needs no meeting point. All releases take options with underscores,
    those before torch 2.0 no others.

    With the c10d rendezvous there would be one line for all nodes. But with it a node only becomes the host of the
    rendezvous if its own hostname resolves to that address (never with 127.0.1.1 in /etc/hosts, nor on a second card),
    and the ranks get the host's name, which all others must resolve (torch source, distributed/elastic/rendezvous;
    with torch 2.13 and 127.0.1.1 on both of two hosts, c10d timed out where these lines worked).
    """
    program = script(launch.program, module="-m", bare="--no-python")

    def words(rank: int, host: LaunchHost) -> list[str]:
        meeting = ["--standalone"]
        if launch.several:
            meeting = [f"--nnodes={len(launch.hosts)}", f"--node_rank={rank}"]
            meeting += [f"--master_addr={launch.meeting}", f"--master_port={launch.meeting_port}"]
        return [*launch.environment_of(host), "torchrun", *meeting, f"--nproc_per_node={host.slots}", *program]

    return line_per_node(launch, words)


@launcher("srun")
def srun(launch: Launch) -> LaunchLine:
    """Return the line. The listed names are assumed to be Slurm's node names.

    --export separates variables by commas: a value with a comma is set before srun instead.
    """
    per_node = launch.equal_slots("srun", "--ntasks-per-node")
    plain = [f"{name}={value}" for name, value in launch.variables.items() if "," not in value]
    words = env_words({name: value for name, value in launch.variables.items() if "," in value})
    words += ["srun", "-N", str(len(launch.hosts))]
    words += [] if launch.here else ["-w", slurm_list(launch.names)]  # one of several that an allocation has, too
    words += [f"--ntasks-per-node={per_node}"]
    reasons = ["an MPI program may also need --mpi: srun --mpi=list shows the types"]
    gpus = {host.gpus for host in launch.hosts}
    if len(gpus) == 1 and 0 not in gpus:
        words += [f"--gpus-per-node={gpus.pop()}"]
        reasons.append("if sinfo -o %G prints (null), Slurm does not manage GPUs: leave out --gpus-per-node")
    words += [f"--export={','.join(['ALL', *plain])}", *launch.program_anywhere]
    return one_command("srun", words, reasons)


# The prefixes of the variables that deepspeed passes to the other nodes.
PASSED_ON = ("NCCL", "PYTHON", "UCX", "MV2", "MLFLOW")

HOSTS_FILE = "deepspeed.hosts"

# --lr=0.1  a b  (pdsh replaces %n by a number; deepspeed 0.9 leaves words with a leading dash alone, and quotes others)
_ARRIVES = re.compile(r"[\w@+=:,./-]+|(?!-)[\w@+=:,./ -]+")


@launcher("deepspeed")
def deepspeed(launch: Launch) -> LaunchLine:
    """Return one line, to be typed on the first node; for several nodes it writes their host file first.

    deepspeed starts all nodes itself with pdsh. Of its environment it passes on variables with the prefixes PASSED_ON,
    and the lines of .deepspeed_env in the home or the current folder (DeepSpeed source, launcher/runner.py). Its own
    ssh options differ by version.

    Raises NoLineError if values differ between nodes: deepspeed hands its words to the nodes' shells unquoted, so no
    shell code can choose there; and for words of the program that would arrive changed.
    """
    if own := sorted({name for host in launch.hosts for name in host.own}):
        reason = f"deepspeed sets the same values on all nodes, but {', '.join(own)} must differ"
        raise NoLineError(f"{reason}; torchrun can start the same program: --for torchrun")
    program = script(launch.program, module="--module", bare="--no_python")
    if not launch.several:
        return one_command("deepspeed", [*launch.environment, "deepspeed", "--num_gpus", str(launch.ranks), *program])
    if changed := [word for word in program if not _ARRIVES.fullmatch(word)]:
        raise NoLineError(f"deepspeed passes {quoted(changed[0])} to the nodes' shells unquoted: put it into a script")
    rows = zip(launch.names, launch.hosts, strict=True)
    slots = [word for name, host in rows for word in (name, str(host.slots))]
    write = typed(["printf", "%s slots=%s\\n", *slots]) + f" > {HOSTS_FILE}"
    meeting = ["--master_addr", launch.meeting, "--master_port", str(launch.meeting_port)]
    start = typed([*launch.environment, "deepspeed", "--hostfile", HOSTS_FILE, *meeting, *program])
    reasons = [f"it writes {HOSTS_FILE} here, in deepspeed's format, and needs pdsh here"]
    if kept := [name for name in launch.variables if not name.startswith(PASSED_ON)]:
        values = typed(f"{name}={launch.variables[name]}" for name in kept)
        reasons.append(
            f"deepspeed passes {', '.join(kept)} to no other node: printf '%s\\n' {values} >> ~/.deepspeed_env"
        )
    if launch.ssh_arguments:
        reasons.append(_ssh_configuration(launch))
    shell = ("/bin/sh", "-c", f"{write} && exec {start}")
    return LaunchLine(f"{write} && {start}", tuple(reasons), argv=shell, program="deepspeed")


@launcher("accelerate")
def accelerate(launch: Launch) -> LaunchLine:
    """Return the line of each node. --num_processes is the number for the whole job.

    accelerate needs --multi_gpu to start more than one process, even on CPUs.
    """
    launch.equal_slots("accelerate", "--num_processes")
    gpus = ["--multi_gpu"] if launch.ranks > 1 else []
    program = script(launch.program, module="--module", bare="--no_python")

    def words(rank: int, host: LaunchHost) -> list[str]:
        size = ["--num_machines", str(len(launch.hosts)), "--num_processes", str(launch.ranks)]
        meeting = []
        if launch.several:
            meeting = ["--machine_rank", str(rank), "--main_process_ip", launch.meeting]
            meeting += ["--main_process_port", str(launch.meeting_port)]
        return [*launch.environment_of(host), "accelerate", "launch", *gpus, *size, *meeting, *program]

    return line_per_node(launch, words)


@launcher("paddle")
def paddle(launch: Launch) -> LaunchLine:
    """Return the line of each node. Raises NoLineError for IPv6: Paddle splits address and port at the first colon.

    Each node gets its own address: otherwise Paddle uses the one that the hostname resolves to. With 127.0.1.1 no node
    considers itself the master, and all wait (Paddle source, distributed/launch; observed with 3.3.1). A number of
    processes works whichever GPUs are visible: --devices only takes names from CUDA_VISIBLE_DEVICES
    (context/device.py there).
    """
    if launch.several and any(":" in address for address in launch.addresses):
        raise NoLineError("Paddle's --master takes no IPv6 address, and the nodes share IPv6 only")
    program = script(launch.program, module="", bare="")

    def words(rank: int, host: LaunchHost) -> list[str]:
        start = [*launch.environment_of(host), interpreter(launch.program), "-m", "paddle.distributed.launch"]
        meeting = []
        if launch.several:
            meeting = ["--master", f"{launch.meeting}:{launch.meeting_port}", "--nnodes", str(len(launch.hosts))]
            meeting += ["--rank", str(rank), "--host", host.address]
        return [*start, *meeting, "--nproc_per_node", str(host.slots), *program]

    return line_per_node(launch, words)


@launcher("oneflow")
def oneflow(launch: Launch) -> LaunchLine:
    """Return the line of each node. OneFlow's launcher has the options of the old torch.distributed.launch."""
    per_node = launch.equal_slots("OneFlow", "--nproc_per_node")
    program = script(launch.program, module="--module", bare="--no_python")

    def words(rank: int, host: LaunchHost) -> list[str]:
        start = [*launch.environment_of(host), interpreter(launch.program), "-m", "oneflow.distributed.launch"]
        size = ["--nproc_per_node", str(per_node), "--nnodes", str(len(launch.hosts)), "--node_rank", str(rank)]
        address = launch.meeting if launch.several else "127.0.0.1"
        return [*start, *size, "--master_addr", address, "--master_port", str(launch.meeting_port), *program]

    return line_per_node(launch, words)


@launcher("tensorflow")
def tensorflow(launch: Launch) -> LaunchLine:
    """Return the line of each node: one worker per node, which uses all of its GPUs.

    TF_CONFIG contains every worker's address and the index of this one.
    """
    endpoints = [endpoint(address, launch.meeting_port) for address in launch.addresses] if launch.several else []

    def words(rank: int, host: LaunchHost) -> list[str]:
        variables = {**launch.variables, **host.own}
        if endpoints:
            config = {"cluster": {"worker": endpoints}, "task": {"type": "worker", "index": rank}}
            variables["TF_CONFIG"] = json.dumps(config)
        return [*env_words(variables), *launch.program]

    line = line_per_node(launch, words)
    workers = "1 worker" if len(launch.hosts) == 1 else f"{len(launch.hosts)} workers"
    return LaunchLine(line.text, line.reasons, f"{workers}, one per node, using all of its GPUs")


@launcher("ray")
def ray(launch: Launch) -> LaunchLine:
    """Return the lines that start Ray on each node, and then the program on the first one.

    On several networks Ray would take the address on the route to the internet, and each node would be known by an
    address of its own choice, so each one is named. What a worker inherits is the environment of `ray start` on its
    node (Ray documentation: cluster/vms/user-guides/launching-clusters/on-premises, ray-core/configure; RAY_ADDRESS in
    ray.init; with Ray 2.60.0 these lines made one cluster of two network namespaces, by IPv4 and by IPv6). Alone, a
    node needs no cluster: ray.init() starts one.
    """
    if launch.program[0].rpartition("/")[2] == "vllm":
        raise NoLineError("vLLM also needs VLLM_HOST_IP on each node: --for vllm prints its lines, with ray start")
    if not launch.several:
        return LaunchLine(typed([*launch.environment, *launch.program]))
    head = {"RAY_ADDRESS": endpoint(launch.meeting, launch.meeting_port)}
    return _over_ray(launch, [*env_words({**launch.variables, **head}), *launch.program])


def _over_ray(launch: Launch, program: list[str]) -> LaunchLine:
    """Return `ray start` for each node, and then the program on the first one. Raises NoLineError for no address."""
    head = endpoint(launch.meeting, launch.meeting_port)
    lines: list[str] = []
    for host, address in zip(launch.hosts, launch.addresses, strict=True):
        joins = [f"--address={head}"] if lines else ["--head", f"--port={launch.meeting_port}"]
        gpus = [f"--num-gpus={host.slots}"] if host.slots < host.gpus else []  # Ray finds all of them by itself
        words = [*launch.environment_of(host), "ray", "start", *joins, f"--node-ip-address={address}", *gpus]
        lines.append(f"# on {printable(host.name)}:\n{typed(words)}")
    first = printable(launch.hosts[0].name)
    reasons = [f"type each line on its own node, {first} first; ray status shows whether all are there"]
    if ":" in launch.meeting:
        reasons.append("the nodes share IPv6 only, for which old releases of Ray have no support")
    return LaunchLine("\n".join([*lines, f"# then on {first}:\n{typed(program)}"]), tuple(reasons))


_MODEL = "MODEL"  # what to replace where no program was given
_WITHOUT_RAY = (0, 12)  # the first release of vLLM whose `serve` surely has --nnodes (vllm-project/vllm, PR 23691)


@launcher("vllm")
def vllm(launch: Launch) -> LaunchLine:
    """Return vLLM's lines: without Ray where every node's release can do so, else `ray start` and one server.

    Tensor parallel in a node, pipeline parallel over the nodes, or what sizes of the user leave of it. VLLM_HOST_IP
    must be the address under which Ray knows the node: vLLM asks Ray for the resource node:ADDRESS, and waits for ever
    if there is none (vLLM documentation: serving/parallelism_scaling, configuration/env_vars). The workers have the
    variables of `ray start`. vLLM copies those of its server to them, so the server is started without those that
    differ, but for its addresses.
    """
    slots = [host.slots for host in launch.hosts]
    in_node = math.gcd(*slots)
    begin, rest = _served(launch.program, "vllm", ["vllm", "serve"])
    named = _sizes(rest)
    left, size = _left(launch.ranks, *named.values()), []
    if left and "t" not in named:
        tensor = left if "p" in named else math.gcd(in_node, left)
        size += ["--tensor-parallel-size", str(tensor)]
        left //= tensor
    if left and "p" not in named and launch.several:
        size += ["--pipeline-parallel-size", str(left)]
    if not launch.several:
        return LaunchLine(typed([*launch.environment, *begin, *size, *rest]))
    if launch.releases and min(launch.releases) >= _WITHOUT_RAY and len(set(slots)) == 1:
        meeting = ["--master-addr", launch.addresses[0]]  # each one must be known
        if launch.meeting_port != MEETING_PORTS["vllm"]:
            meeting += ["--master-port", str(launch.meeting_port)]

        def words(rank: int, host: LaunchHost) -> list[str]:
            place = ["--nnodes", str(len(launch.hosts)), "--node-rank", str(rank), *meeting]
            return [*launch.environment_of(host), *begin, *size, *place, *(["--headless"] if rank else []), *rest]

        return line_per_node(launch, words)
    own = {name: value for name, value in launch.hosts[0].own.items() if name.startswith("VLLM_")}
    server = [*env_words({**launch.variables, **own}), *begin, *size, "--distributed-executor-backend", "ray", *rest]
    line = _over_ray(launch, server)
    uneven = f"{in_node} is the greatest number of GPUs that divides those of every node"
    return LaunchLine(line.text, (*line.reasons, *([uneven] if len(set(slots)) > 1 and not named else [])))


@launcher("sglang")
def sglang(launch: Launch) -> LaunchLine:
    """Return the line of each node; only the first one serves (SGLang documentation: multi_node_deployment)."""
    launch.equal_slots("SGLang", "--tp")
    begin, rest = _served(launch.program, "sglang", ["python3", "-m", "sglang.launch_server", "--model-path"])
    named = _sizes(rest)
    tensor = _left(launch.ranks, named.get("p", 1))  # data parallel over attention takes no ranks beside these

    def words(rank: int, host: LaunchHost) -> list[str]:
        size = ["--tp", str(tensor)] if tensor and "t" not in named else []
        if launch.several:
            size += ["--nnodes", str(len(launch.hosts)), "--node-rank", str(rank)]
            size += ["--dist-init-addr", endpoint(launch.addresses[0], launch.meeting_port)]  # each one must be known
        return [*launch.environment_of(host), *begin, *size, *rest]

    return line_per_node(launch, words)


def _served(program: tuple[str, ...], tool: str, command: list[str]) -> tuple[list[str], list[str]]:
    """Return a server's command with its model, and the words after it: they come last, so that the user's own win.

    The program is the whole command, or the model with its options. Raises NoLineError for another program.
    """
    if program == PROGRAM:
        return [*command, _MODEL], []
    first, second, third = (*program, "", "")[:3]
    first = first.rpartition("/")[2]
    if first == tool and second == "serve":
        begins = 3 if third and not third.startswith("-") else 2
    elif is_interpreter(first) and second == "-m" and third.startswith(f"{tool}."):
        begins = 3
    elif first == tool or is_interpreter(first) or first.endswith((".py", ".sh")):
        raise NoLineError(f"after -- write the model and its options, or the whole command that serves it with {tool}")
    else:
        return [*command, program[0]], list(program[1:])
    return list(program[:begins]), list(program[begins:])


_SIZE = re.compile(r"--?([tpd])p(?:-size)?|--(tensor|pipeline|data)-parallel-size")


def _sizes(options: list[str]) -> dict[str, int]:
    """Return the sizes that a server's own options name, by t, p and d for tensor, pipeline and data parallel.

    A value that is no number is 0.
    """
    sizes: dict[str, int] = {}
    for word, after in zip(options, [*options, ""][1:], strict=True):
        name, equals, value = word.partition("=")
        if found := _SIZE.fullmatch(name.replace("_", "-")):
            number = value if equals else after
            sizes[(found[1] or found[2])[0]] = int(number) if re.fullmatch("[0-9]{1,6}", number) else 0
    return sizes


def _left(ranks: int, *sizes: int) -> int:
    """Return what these sizes leave of the ranks, 0 if they do not divide them."""
    product = math.prod(sizes)
    return ranks // product if product and ranks % product == 0 else 0


NOTHING = "# ncheck: nothing need be set"


def exports(plan: LaunchPlan, host_names: Mapping[str, str]) -> str:
    """Return text for a shell's eval: one export per line, values quoted where needed.

    `host_names` are the hostnames of listed nodes: values that differ between nodes are selected by them.
    """
    lines = [f"export {name}={typed([value])}" for name, value in values_in(plan.env).items()]
    own = by_host_name((host_names.get(node, node), values_in(settings)) for node, settings in plan.per_node.items())
    return "\n".join([*lines, *([exported(own)] if own else [])]) or NOTHING


def nccl_conf(plan: LaunchPlan, _: Mapping[str, str]) -> str:
    """Return the lines of NCCL's configuration file: its own variables only, without quotes and blanks.

    Values that differ between nodes come last, under a comment with their nodes: leave the other values out there.
    """
    own: dict[tuple[str, ...], list[str]] = {}
    for node, settings in plan.per_node.items():
        own.setdefault(tuple(_nccl_rows(settings)), []).append(node)
    sections = (line for rows, nodes in own.items() if rows for line in (f"# on {fold(nodes)} only:", *rows))
    return "\n".join([*_nccl_rows(plan.env), *sections]) or NOTHING


def _nccl_rows(settings: Mapping[str, Setting]) -> Iterator[str]:
    return (f"{name}={value}" for name, value in values_in(settings).items() if name.startswith("NCCL_"))


FILES: Mapping[str, Callable[[LaunchPlan, Mapping[str, str]], str]] = {"env": exports, "nccl.conf": nccl_conf}
