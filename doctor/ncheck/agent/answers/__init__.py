"""What the agent's own functions say, one module each, as JSON values. The head parses them; nothing is judged here.

A function that cannot answer raises: OSError and the like become a failed reply, `MissingError` a missing one. Each
module has `answer(sources, arguments, timeout)`. `null` stands for what could not be read or does not exist; where why
matters an {"error": "words"} stands in its place. The shapes, as they travel:

interfaces   {"interfaces": [{"name", "index": int, "flags": int, "up": bool, "running": bool, "loopback": bool,
                  "addresses": [{"ip", "prefix": int|null, "family": 4|6, "scope": "global"|"link"|"host"}],
                  "type": int|null (ARPHRD: 1 Ethernet, 32 InfiniBand, 772 loopback, 65534 none), "operstate": str|null,
                  "mtu": int|null, "speed": int|null (Mb/s, null for -1 and EINVAL),
                  "duplex": "full"|"half"|null, "mac": str|null,
                  "master": str|null, "lower": [names beneath it: of a vlan, bond, bridge], "device": real path|null,
                  "driver": str|null, "pci": "0000:3b:00.0"|null, "numa": int|null (null for -1),
                  "devtype": str|null (uevent DEVTYPE: bond, bridge, vlan, vxlan, wlan, wireguard; veth has none),
                  "bond": bool, "bridge": bool, "tun": bool, "wireless": bool, "vlan_id": int|null,
                  "peer_index": int|null (iflink where it differs from ifindex: veth, vlan, macvlan),
                  "hca": str|null (mlx5_0)}],              in the kernel's order (by index), every one
              "default_routes": [names, lowest metric first], "source": "getifaddrs"|"psutil"|"netifaces"}
gpus         {"driver", "cuda": "12.4", "gpus": [{"index", "name", "uuid", "pci": "0000:0f:00.0",
                  "memory_total": bytes|null, "memory_used": bytes|null, "processes":
                  [[pid, bytes|null]]|null (inside a container)}], "errors": {function: "words"},
              "devices": how many NVIDIA GPUs PCI shows}. A node with no NVIDIA device at all: status missing.
              A device and no working NVML: status failed, the function and its words in `reason`.
pci          {"devices": [{"address": "0000:3b:00.0", "class": "0x020000", "vendor": "0x15b3", "device", "driver": ""
                  where none is bound, "numa": int|null (null for -1), "cpus": "0-47", "above": its bridges from the
                  processor down, "virtual": bool (a virtual function)}] (GPUs, accelerators, NICs, InfiniBand adapters,
                  NVSwitches), "left_out": how many more}. No PCI bus: status missing.
machine      {"kernel": release, "architecture": "x86_64", "cpu": model|null, "sockets", "cores", "threads",
                  "numa_nodes" (those with processors): int|null, "memory": bytes|null, "vendor", "product", "bios":
                  DMI's|null, "image": of the container|null, "nvme_drives": int|null}
nvlinks      {"gpus": [{"pci": "0000:0f:00.0", "mig": bool, "links": [[how many, state: 0 is inactive, kind:
                  0 a GPU, 1 a CPU, 2 a switch, null not known, address of the other end|""]]}]}, in NVML's order. A
              node with no NVIDIA device at all: status missing. No working NVML: status failed, its words in `reason`.
hcas         {"hcas": [{"hca": "mlx5_0", "board": PSID|"", "ports": [{"port": int, "rate": "400 Gb/sec (4X NDR)",
                  "pkeys": ["0xffff"] (the first entries), "gids": [{"index": int, "address", "kind", "netdev"}]}]}],
                  "left_out": how many HCAs more, "modules": {name of a driver's module that is loaded: its version|""}}
interpreter  {"path", "real_path", "version": "3.10.12", "prefix", "how": "--python"|"the job's command"|
                  "active venv"|"active conda"|"active python on PATH" (of the head)|"python3 on PATH",
                  "packages": {"torch": "2.3.0", ...}, "container": ""|"docker"|"podman"|"apptainer"|"enroot"|
                  "lxc"|"kubernetes"|"systemd-nspawn"|"container", "host_name": as seen in there,
                  "torch": {"version", "cuda": "12.1"|null, "hip"}|null (no torch, or its version.py could not be read),
                  "broken": {"variables": {"PYTHONPATH": value}, "error": its last words}|null (it cannot start, or
                  cannot import the standard library, with these variables, which are left out for all else)}
              No interpreter: status missing. One that cannot run: status failed.
nccl         {"copies": [{"path": real path, "origin": "loader"|"wheel"|"conda"|"torch"|"system"|"environment",
                  "seen_as": [paths], "version": "2.21.5"|{"error"}, "cuda": "12.4"|""}],
              "loaded": {"version", "path", "static": bool, "how": "words"}|{"error": why}|null (no NCCL would load)}
nccl-pick    {"version", "path", "code": int (ncclResult_t, 0 is success), "id": 256 hex digits|null (it refused),
                  "words": ncclGetLastError's, "rendezvous": NCCL_COMM_ID as NCCL has it, "asked": the arguments}
              | {"error": why it could not be asked, "asked"}. No NCCL, or one inside torch: status missing.
planned-nccl-pick  the same, asked as {"variables": {NAME: value|null}, "interfaces": [names that the plan means]}
environment  {"variables": {NAME: value}, "job_variables": {NAME: value}, "secret": [names whose values stayed there],
              "missing": [names of variables whose file is not there],
              "files": {path: [lines] | {"error": why} | null (not there)}}
limits       {"memlock", "open_files", "processes", "address_space", "cpu_seconds", "file_size": int|null (null:
                  unlimited; the soft limits), "shm": {"total": bytes, "free": bytes}|{"error"}}
host-settings {"cpus": {"online": "0-95"|null, "usable": int (affinity)}, "frequencies": [[governor, driver, limit in
                  kHz, the CPU's maximum, how many policies]], "kernel": {setting: text|null}, "groups": {the agent's
                  control group's folder: {file: text}}, "clock_error": microseconds|null, "numa_policy": error number
                  of get_mempolicy|null, "capabilities": hex|null, "own_user_namespace": bool, "gpu_devices": int,
                  "stack_unlimited": bool}
host-load    {"memory": {"MemTotal", ...: bytes}, "pressure": text|null, "load": /proc/loadavg|null, "cpus": int,
                  "files": /proc/sys/fs/file-nr|null, "most_threads", "most_processes": int|null,
                  "hidden": bool (other users' processes are), "stuck": [{"pid", "name", "wait": wchan|""}] in
                  uninterruptible sleep at two looks, "stuck_more": int}
folders      {"temporary": [FOLDER] (/tmp, and what TMPDIR and the like name), "home": FOLDER, "shm": FOLDER, "root":
                  FOLDER}; FOLDER is {"path", "named_by": variable|"", "exists": bool, "writable": bool, "read_only":
                  bool, "free": bytes, "files_free": int|null (no such count), "size": bytes, "kind": "ext4"|null}
                  or {"path", "named_by", "error"};
                  of a folder that does not exist, the last six are those of the nearest one above it.
storage      asked as {"folders": [[what names it, path]]}; says {"folders": [{"path", "named_by": "--data"|"current
                  folder"|"home"|variable, "on": MOUNT|null (not in the table), "state": STATE|null (no answer)}],
                  "mounts": [MOUNT with "state": {"error": ""} or as below|null] (network file systems), "forced":
                  [MOUNT] (of disks: mounted for writing, and read-only), "root": bool (asked as root)};
                  MOUNT is {"point", "type", "source", "root": folder of the source, "options", "super_options",
                  "network": bool};
                  STATE is {"error": "", "real": path without links, "exists", "readable", "writable": bool,
                  "size", "free": bytes, "files_free": int|null (no such count), "inode", "changed": seconds since
                  1970} (of one that does not exist: of the nearest folder above) or {"error", "code": "ESTALE"}.
storage-probe  asked as {"paths", "place": of the node, "turn": when it reads alone, "turns": when all read, "unit":
                  seconds}; says {"readings": [{"path", "alone": READING|null (it did not end), "together": the same}]},
                  READING being {"error": "", "entries", "small_files", "large_bytes": int, "listed", "small_seconds",
                  "large_seconds": seconds, "direct": bool (past the page cache)} or {"error"}.
libraries    {"verbs": why libibverbs does not open ("": it does)|null (no HCA), "uverbs": {HCA: why its device does not
                  open ("": it does)}|null (no HCA), "listed": [HCAs that libibverbs lists]|null (not asked), "mpi": as
                  "verbs", of libmpi|null (no daemon of Open MPI on the PATH)}
mpi-daemon   {"starter": PROGRAM|null (no mpirun found), "daemons": [PROGRAM],
                  "start_up": {"file", "line": int, "text"}|null (no early return),
                  "shells": {"interactive shell"|"login shell": why it gave no answer},
                  "login_shell": path|"" (unknown user), "rsh_agents": [{"variable", "value", "found": bool}]};
             PROGRAM is {"path", "real_path", "by": ["plain login"|"job's environment"|"beside mpirun"|
                  "interactive shell"|"login shell"|"usual folder"], "info": what the installation says of itself|"",
                  "says": {"said", "exit_status": int|null, "status", "reason"} (what PROGRAM --version did),
                  "prefixed": the same with its own lib folder on LD_LIBRARY_PATH, where it did not start|null}
programs     asked as {"programs": [paths], "files": [paths]}; says {"paths": {path: {"trouble": "" | why the job cannot
                 start it} | {"error": why it could not be looked at}}}
code         asked as {"folder": path}; says {"folder": its real path, "exists": bool, "git": {"top", "commit": 40 or 64
                 digits|"", "branch": ""|name, "changed": {path: digest}, "error": why git did not say those|""}|
                 null (no repository), "tree": {"digest": hex, "cut": why it does not cover all|"", "listed": {path:
                 digest}}|null (no folder)}. The digest of a submodule is its commit.
packages     {"packages": {name: [version|"", "commit 97ff6cfd9c86"|"editable"|""]}, "markers": {name of pip's for what
                 a condition asks for, such as python_version: value}}
prompt       {"shell", "error": why it gave no answer|"", "python": path|"", "frameworks": [names], "libraries": its
                 LD_LIBRARY_PATH, "start_up": as of mpi-daemon}. Asked only where python3 has no framework and there are
                 GPUs: else status missing.
host-name    {"name", "leads_to": LOOKED_UP}, LOOKED_UP being {"addresses": [ip]} in the resolver's order, {"error": its
                  words}, or {"late": true} where it had not answered when the time was over
names        asked as {"names": [name]}; says {"names": {name: LOOKED_UP}}.
arrivals     asked as {"arrivals": [{"interface", "address": own ip, "source": a peer}]}; says {"arrivals": the same,
                  each with "taken": bool}. Nothing is sent: the kernel's routing is asked.
routes       asked as {"addresses": [ip]}; says {"routes": {ip: null (the kernel knows one) | why there is none}}.
                 Nothing is sent.
ssh-peers    asked as {"peers": [{"target": node, "host", "port": int|null, "user": str|null}], "timeout": seconds};
             says {"peers": {target: {"exit_status": int|null (null: it did not end and was ended), "stderr": str,
                  "seconds": float, "cut_short": bool (there was no time for it), "ran": bool (the command itself ran
                  there: its nonce was printed), "port": as asked}}}. No ssh program: status missing.
listen       asked as {"node": its name, "token": hex, "addresses": [ip], "ports": [{"port": int, "assumed": bool}]};
             says {"ports": {ip: port}, "failed": {ip: why}, "needed": [{"port", "assumed", "free": bool,
                  "taken_by": "python3 (pid 4711) of ada"|"a program of ada"|"", "error": ""|why it was not tried}]}
             and goes on listening until the agent ends, on the needed ports, too, where they are free.
connect      asked as {"token", "timeout": seconds, "sources": {subnet: [its own ips]}, "targets": [[node, ip, port,
                  subnet, is the port the job's: bool, source ip (without it: all sources of the subnet)]]};
             says {"reaches": [{"subnet", "source", "tried": int, "reached": int}], "broken": [{"source",
                  "target": node, "address", "subnet", "cause": a LinkCause, "detail": words,
                  "port": int (0: the mesh's own)}],
                  "tried": [nodes, without those of which not every broken one is listed],
                  "lossy": [{"source", "target", "address", "subnet", "there": [segments lost, sent], "back": the same
                  of the other side, "alone": bool (no other link was tried meanwhile)}] of the links that lost some,
                  "counted": bool (this kernel counts them),
                  "late": [{"source", "target", "address", "subnet", "begun": connections, "late": of these}]}.
tools        {"tools": {name: {"path", "mpi": bool|null (no ELF program: that cannot be seen)}}} of all_reduce_perf,
                 all_reduce_perf_mpi, ib_write_bw, ibv_rc_pingpong: those that are on the PATH of the job's environment.
meeting      where the ranks of later turns find each other; what it opens is kept until the agent ends. Asked as
                 {"means": "nccl"|"gloo", "count": int (ids wanted), "variables": {NAME: value|null}}; says for NCCL
                 {"ids": [256 hex digits], "version", "path"} (each good for one turn). For gloo it is asked "address",
                 an own ip, too, and says {"address", "port", "version", "path"}: a store that is good for all turns.
turn         this node's part in one step of the probe; asked and answered once a turn. What every means is asked:
                 {"round": int, "stage", "means", "group": [nodes in the order of the ranks], "ranks": [ranks a node],
                  "sizes": [bytes a rank], "launcher", "net": "IB"|"Socket"|"", "expect": GB/s|null (all this is a
                  model.facts.Step), "node": its name, "planned": [interfaces and HCA ports ("mlx5_0:1") of the plan],
                  "timeout": seconds, "variables": {NAME: value|null}}, and for
                 nccl: "id": hex, "first": the node's first rank, "gpus": [the index of each of its ranks];
                 gloo: "meeting": {"address", "port"}, "first", "seconds": for measuring alone;
                 tcp: "source": own ip, "address", "port": where the other one of the pair listens, "token", "seconds";
                 others: see their modules (agent/tasks/). It says
                 {"rows": [{"size", "in_place": bool, "seconds", "fastest", "slowest", "wrong": int|null}],
                  "carried": {interface or HCA port: {"sent", "received"}} bytes, "version", "library": path,
                  "used": [NCCL's lines of which network it uses], "log": [warnings, and the last lines of a failure],
                  "failure": {"step", "words", "rank": int|null, "code": int|null, "late": bool}|null,
                  "start": seconds to the first collective|null, "left": [what had to be ended or removed, or
                  may be left]}.
processes    asked as {"rank_variables": [names], "match": regular expression|null, "launchers": regular expression};
                  says {"processes": [{"pid",
                  "parent", "started": clock ticks since boot, "state": "S", "name", "argv": [words], "user": int,
                  "inner_pid", "namespace": "net:[4026531840]"|"", "variables": {NAME: value}|null (not readable),
                  "secret": [names], "devices": ["nvidia0"]}], "left_out": int,
                  "hidden": processes that this user cannot look into, "others": [{"pid", "user", "command"}] (those of
                  them that may be ranks), "own_only": bool (/proc shows this user no others)}
ras          asked as {"ranks", "at": "host:port"|null (nothing is asked here), "spare": {"from", "to"}|null (releases
                 that are not asked)}; says {"ranks": [{"pid", "path": of its NCCL|"", "version": "2.27.5+cuda12.9"|"",
                 "error": why its libraries cannot be read|"gone"|""}], "addresses": [ip], "asked": [{"at": seconds
                 after the first, "form": "json"|"text", "text", "whole": bool (the connection was closed by RAS),
                 "silent": connections that were accepted only, "error": why there is no text|""}]}, twice if at all.
flight-recorder  asked as {"ranks": [RANK], "dump": whether torch is asked for a dump}; says {"ranks": [{"pid", "error":
                  "gone"|why its variables cannot be read|"", "asked": "" (not to be asked)|"written"|"asked" (nothing
                  came)|why it was not, "tried": [paths], "began": seconds since 1970 when the process began|null,
                  "dump": {"path", "size", "mtime", "owner", "read": bytes, "error": why it was not read|"",
                  "data": its first bytes, packed by zlib, as base64|null}|null (no file)}]}
stacks       asked as {"ranks": [{"pid", "started", "children": [pids]}], "native": bool, "beside": a folder in which
                  py-spy may be}; says {"locks": [{"waits": pid of a rank, "holds": pid|0 (not of this node), "name":
                  the holder's command}] of files, "processes": [{"pid", "rank": pid of its rank,
                  "gone": bool, "hangs": bool (a look did not come back), "py_spy": path|"",
                  "not_run": path of a py-spy that this user must not run|"", "samples": [[THREAD]|null (the same as
                  before)], "native": [THREAD]|null, "error": py-spy's|"", "tasks": [[TASK]] at the first and the last
                  look, "seconds" between these}], "frames": [[function, file, short file, line, source line]],
                  "machine": "x86_64", "ptrace_scope": int|null, "ticks_per_second", "left_out": int}. THREAD is
                  {"name", "id", "tid": int|null, "active": bool, "gil": bool, "stack": [numbers of frames, innermost
                  first]}, TASK {"tid", "name", "state", "ticks", "switches": int|null (how often it went to sleep),
                  "wchan", "syscall": its file in /proc, "file": what the call's first argument is, "stack": [lines]}.
sockets      asked as {"ranks", "launchers": [{"pid", "started", "children": [pids]}], "names": [of masters], "ports":
                 [of masters]}; says {"processes": [{"pid", "error": null|"gone"|why, "unread": [pids], "sockets":
                 [{"held_by": pid, "namespace", "local", "local_port", "remote", "remote_port", "seen": [SEEN|null: as
                 it was at the first look, at the second]}]}], "places": {namespace: {"addresses": [[ip, interface|""]],
                 "interfaces": [names], "listeners": [{"ip", "port", "asked": bool (a process asked about
                 has it), "pid": int|null, "by": "python3 (pid 17) of ada"}],
                 "others": [[ip, port, remote ip, port, state] of other processes' connections], "others_left_out":
                 int}}, "own": the agent's namespace, "names": {name: LOOKED_UP}, "left_out": int}. SEEN is {"state":
                 "01", "sent": bytes without an acknowledgement, "unread": bytes, "timer", "retransmits", "counts":
                 {...}|null (see agent/tcp_info.py)}
counters     asked as {"ranks"}; says {"looks": [LOOK, LOOK: two seconds later]}, LOOK being {"namespaces": {namespace:
                 {"interfaces": {name: {"received", "packets_received", "receive_errors", "receive_drops", "sent",
                 "packets_sent", "send_errors", "send_drops"}}, "tcp": {"sent", "resent": segments|null}}}, "ports":
                 {"mlx5_0:1": {"state": "4: ACTIVE", "physical", "link_layer", "sent": bytes|null, "received", "errors":
                 {counter: int}}}}
error-counters, later-error-counters  the same, asked at the beginning and at the end of a run: {"at": seconds since
                 boot, "ports": {"mlx5_0:1" or a network card such as "eth0": {"sent", "received": bytes|null, "read":
                 how many of its error counters could be read, "errors": {counter: int} of those that are not 0}}}.
roce         {"ports": {"mlx5_0:1": {"interface": "eth0"|"" (not in this namespace), "pfc": [priorities with flow
                 control], "dscp": [[DSCP, its priority]] (empty: the VLAN's priority counts), "ecn_np", "ecn_rp":
                 [priorities], "traffic_class", "tos": text}}} of Ethernet ports; null is what the driver does not show.
activity     asked as {"ranks": [{"rank", "pid", "started", "inner_pid", "namespace", "children": [pids]}]}, as are all
                 answers about a job; says {"seconds" between two looks, "gone": [pids of ranks that are not there],
                 "left_out": int, "processes": [PROCESS], "groups": {cgroup's folder: [{file: text}, later]},
                 "spaces": {path: {"size", "free", "files", "files_free"}|{"error"}}|null (a file system hangs),
                 "node": [{file of /proc: its lines that matter}, later], "cpus": int}. PROCESS is {"pid", "rank_pid",
                 "name", "parent", "looks": [LOOK, later; one if it ended], "threads": [{"tid", "name", "states",
                 "ran": ns|null, "wait": wchan, "call"}] of those that did more than sleep, "thread_count", "cpus",
                 "oom_score_adj", "files", "files_limit", "cwd", "output": [where 1 and 2 lead], "written": [{"path",
                 "from", "to": position}], "mounts": [{"point", "type", "source", "options", "used": a path on it|""}],
                 "groups": [folders], "libraries": {path: version|""}|null}; LOOK is {"state", "user", "system": ticks,
                 "minor", "major", "exit_code", "rss", "swap", "ran": ns, "turns", "read", "written", "disk_read",
                 "disk_written": bytes|null (not readable)}.
log-tails    asked with "launchers": [pids above the ranks], too; says {"seconds", "outputs": {pid: [where 1 and 2
                 lead]}, "files": [{"path", "pids": [of its writers], "grown": bytes, "size": int|null,
                 "text": its end|null, "error": why there is none}], "left_out": int}.
gpu-activity says {"seconds", "gpus": [{"index", "pci", "minor": int|null, "memory_total": bytes|null, "processes":
                 [[pid, bytes|null]]|null (inside a container), "errors": {function: "words"}, "looks": [LOOK,
                 later]}]}, LOOK being {"use", "memory_use": percent, "memory_used": bytes, "clock", "most_clock":
                 MHz, "throttled": NVML's bits, "power", "power_limit": mW, "temperature", "ecc": uncorrected}, each
                 null if not known.
gpu-health   {"driver": ""|"550.54.15", "library": path of libnvidia-ml, "module": the first line of
                 /proc/driver/nvidia/version, "count": int|null, "failed": {"function", "code": NVML's|null,
                 "words"}|null, "gpus": [HEALTH], "at": the index of the GPU that did not answer|null, "done": bool,
                 "ended": bool (the child ended by itself), "words" it printed last, "silent": seconds since its last
                 word, "unlisted": [[address, why it does not open]], "channels", "usable_channels": of IMEX,
                 "compatibility": [paths of CUDA's forward compatibility]}; HEALTH is {"index", "pci", "name",
                 "ecc_mode": [now, after a reboot], "ecc", "ecc_ever": uncorrected, "remapped": [correctable,
                 uncorrectable, pending, failed], "retired", "retiring", "temperature", "slowdown", "margin": degrees,
                 "persistence", "compute_mode", "mig": [now, after a reset], "links": [state], "fields": {name: int},
                 "fabric": {"state", "status", "clique", "health", "cluster"}|null, "throttled": NVML's bits,
                 "errors": {name: [NVML's code, words]}}, each null where the GPU or the driver does not have it.
sweep        asked after a step whose ranks a launcher started, as {"segments": {path: inode}} that ranks of this node
                 had in /dev/shm and may have left; says {"left": [what was removed, and what had to stay]}.
"""

from importlib import import_module

# What is asked under two names is one module; every other answer has the module of its own name.
_ALSO_CALLED = {"planned-nccl-pick": "nccl-pick", "later-error-counters": "error-counters"}


def module_of(name):
    """Return the module that answers to a name. Raises ImportError where there is none."""
    return import_module("{}.{}".format(__name__, _ALSO_CALLED.get(name, name).replace("-", "_")))


WATCHED = 2.0  # seconds for which a running job is watched, by all answers at the same time


class MissingError(Exception):
    """What was asked about is not on this node: no such device, program or library."""
