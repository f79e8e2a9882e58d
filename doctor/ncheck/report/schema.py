"""The published JSON Schema of the report, built from the records and from the descriptions below."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any

from ncheck.model.board import Board, Domain
from ncheck.model.finding import Finding, Verdict
from ncheck.model.plan import Blocker, LaunchCommand, LaunchPlan, Setting
from ncheck.model.report import (
    SCHEMA,
    BadNode,
    GpuAlone,
    GpuFigure,
    Measurement,
    MeshSample,
    NodeSummary,
    Pair,
    Point,
    Probe,
    Protocol,
    Report,
    RunPart,
    Traffic,
)  # fmt: skip
from ncheck.model.system import Hardware, System, SystemDisk, SystemGpus, SystemInterface, SystemMachine, SystemPort

RECORDS = (
    Report,
    NodeSummary,
    System,
    SystemGpus,
    SystemPort,
    SystemInterface,
    SystemMachine,
    SystemDisk,
    Hardware,
    MeshSample,
    RunPart,
    Verdict,
    Finding,
    Board,
    Domain,
    BadNode,
    LaunchPlan,
    LaunchCommand,
    Blocker,
    Setting,
    Measurement,
    Protocol,
    Point,
    GpuAlone,
    GpuFigure,
    Probe,
    Pair,
    Traffic,
)

MEMBERS: Mapping[str, Mapping[str, str]] = {
    "Report": {
        "schema": "This format. New members may be added under the same number; none is changed or removed.",
        "exit_code": "Exit code of the process: 0 clean, 1 findings or unknown verdicts at or above fail_on, "
        "130 interrupted. (A demo exits with 0; this is the code of its report.)",
        "state": "The answer, in the words that every format has. Ready is only what was verified: all nodes were "
        "reached, some check passed, and none is unknown.",
        "nodes": "All nodes in the order of the list, reached or not.",
        "verdicts": "One per selected check, outcome and reason, with its nodes: each node is named once per check.",
        "findings": "Problems, worst first, ignored ones last.",
        "plan": "How to start the job.",
        "measurements": "Results of the bandwidth test; empty if none ran.",
        "probe": "Whether a bandwidth test ran, and if not, why.",
        "version": "Version of ncheck.",
        "seconds": "Duration of the run in seconds; on the command line from the start of its process.",
        "milder": "Settings of an ncheck.toml that was only found, and that may hide what is wrong.",
        "fail_on": "What causes exit code 1: error, warning, info, unknown.",
        "interrupted": "True after ^C: the report is incomplete.",
        "recorded": "True if the data of any node comes from a recording.",
        "cpus_only": "True if no node that was reached has a GPU: only checks of CPUs and networks ran.",
        "name_python": "The command that names the Python of the job, where it was not judged: nodes have GPUs, and no "
        "interpreter that was found there has a framework. Empty otherwise.",
        "drain": "Of the bad nodes: those to take away from the scheduler (--max-drain), the worst first.",
        "hardware": "What identifies each node that was reached, and its parts.",
        "mesh": "Among many nodes: how many others each dialled. null: each dialled all others, or none was dialled.",
        "timeline": "Where these seconds went, part by part. Empty for a recording.",
        "news": "What the history says of this run's findings (--history), a sentence each.",
        "gpus_alone": "Each GPU that --gpu-test tested alone, before ranks communicated.",
        "boards": "How GPUs and NICs lie, once for all nodes that are alike, the most common kind first; 16 at most.",
        "systems": "What the nodes have, as values: one record for all nodes that are alike.",
        "dropped": "Nodes that --drop-bad left out, with the reason; everything else is about the other nodes.",
        "bad": "Nodes that a job is better off without, with the reason; none after ^C.",
        "time": "When the run began: local time with its offset from UTC (ISO 8601). A replay has its own time.",
        "host": "The machine that ran ncheck.",
        "user": "The user who ran ncheck there.",
        "command": "The command line, without secrets.",
    },
    "RunPart": {
        "part": "start, log in, questions, ssh from here, slurm, between the nodes, files, measured, counters again, "
        "judged.",
        "seconds": "Seconds of the wall clock.",
        "node": "The node that answered last; empty if none was asked.",
        "question": "What took that node longest; empty if nothing was asked of it.",
        "question_seconds": "Seconds that this took on the node.",
        "late": "Nodes that answered more than 2 s after half of the nodes, with those seconds.",
    },
    "MeshSample": {
        "dialled": "The nodes that a node dialled: the median.",
        "others": "The nodes that it could have dialled.",
    },
    "Board": {
        "domains": "The NUMA nodes, as far as the matrix shows them.",
        "unplaced": "Devices whose place the matrix does not show.",
        "nvlinks": "Which GPUs NVLinks join, one line per kind of path.",
        "rails": "The nearest NICs of each GPU, one line per GPU.",
        "worst_hop": "The path that a ring over all GPUs must take at worst, such as SYS, in words; empty if unknown.",
        "nodes": "The nodes of this kind.",
        "source": "What showed the matrix: nvidia-smi, or the PCI bus and NVML.",
        "matrix": "The matrix: a heading and a row per device, as nvidia-smi topo -m prints it, NICs by name.",
    },
    "Domain": {
        "title": "The NUMA node and its CPUs.",
        "bridges": "Each host bridge as a list of PCIe switches, each switch as a list of devices.",
        "alone": "Devices near no other one.",
    },
    "BadNode": {
        "node": "The node.",
        "reason": "The first reason.",
        "codes": "The codes of the checks that say so.",
        "reached": "False if the node was not reached.",
        "unknown": "True if no error names the node, but a check of it could not run.",
        "proved": "True if the fault is the node's own: one of its hardware, or nobody reaches it. Only such a node is"
        " taken away from the scheduler.",
    },
    "NodeSummary": {
        "name": "The name in the list.",
        "reached": "True if the host key was verified, the login succeeded and a shell answered.",
        "address": "The address of the connection; empty if none was attempted.",
        "port": "The port of the connection; 0 if none was attempted.",
        "user": "The user of the login.",
        "transport": "paramiko, openssh, rsh, srun, local or recorded.",
        "host_name": "The hostname that the node reports.",
        "interpreter": "The Python interpreter of the job: path, version, and how it was found.",
        "container": "The container of the job; empty for none.",
        "slots": "Slots in the list; null if not given.",
        "seconds": "Seconds from the first attempt to the first answer of the shell, or to the failure.",
        "recorded": "True if the data comes from a recording.",
        "cause": "Why the node was not reached, or its session was cut, such as host-key-changed; empty on success.",
        "detail": "The original error message of the library, ssh or the node.",
        "addresses": "The addresses of its interfaces with their prefix length, such as 10.1.0.7/24, by interface.",
        "peers_reach": "Of a node that was not reached from here: whether its SSH server greets other nodes of the "
        "run; null: none was asked.",
    },
    "System": {
        "nodes": "The nodes that have all of this.",
        "gpus": "The GPUs; null if there are none or they are unknown.",
        "cuda_toolkit": "Version of the CUDA toolkit that the job would compile with, such as 12.4.1; empty where no "
        "file says it.",
        "cuda_toolkit_path": "Its path.",
        "cudnn": "Version of the cuDNN that the job's framework loads, such as 9.1.0.70; empty where no file says it, "
        "or if it loads none.",
        "cudnn_path": "Its path; empty if it loads none.",
        "system_cudnn": "Versions of cuDNN that are installed for all programs.",
        "nccl": "Version of the NCCL that the job's interpreter loads, such as 2.21.5.",
        "nccl_path": "Its path.",
        "net_plugin": "The network plug-in that this NCCL loads, such as aws-ofi-nccl 1.16.3; empty for none.",
        "mpi": "Open MPI, MPICH, Intel MPI or Spectrum MPI.",
        "mpi_version": "Its version, such as 4.1.6.",
        "horovod": "Version of Horovod.",
        "python": "Path of the Python interpreter of the job.",
        "python_version": "Its version.",
        "commit": "Git commit of the job's code, if --workdir was given and nothing was changed since.",
        "frameworks": "Versions of the frameworks installed in it, such as torch, by name.",
        "ports": "The ports of InfiniBand and RoCE adapters.",
        "interfaces": "Network interfaces that could carry a job's data, up or not.",
        "machine": "The machine: kernel, processors, memory, model.",
        "os": "The name of the distribution, such as Ubuntu 22.04.4 LTS.",
        "container": "What the job's container is run by, such as docker; empty for none.",
        "image": "The image of that container, or NVIDIA's that it was made from; empty where it is not shown.",
        "container_toolkit": "Release of the NVIDIA container toolkit, such as 1.16.2; installed where it does not "
        "say it, empty where none is seen.",
        "disks": "The file systems of the home folder and of /.",
        "topology": "How the GPUs are connected, in a line: 8 GPUs, NV18 all to all, one NIC PIX each.",
        "absent": "What the node does not have (gpus, nccl, mpi and other members of this record), with the reason.",
        "unknown": "What should have been readable and was not, with the reason.",
    },
    "SystemMachine": {
        "kernel": "The kernel's release, such as 5.15.0-105-generic.",
        "architecture": "What uname -m prints, such as x86_64.",
        "product": "What the manufacturer calls the machine; empty where it says nothing.",
        "cpu": "The model of its processors.",
        "sockets": "Number of sockets.",
        "cores": "Number of cores.",
        "threads": "Number of processors that the kernel runs.",
        "numa_nodes": "Number of NUMA nodes with processors.",
        "memory": "Bytes of memory.",
    },
    "Hardware": {
        "node": "Its name.",
        "host_name": "What the node calls itself.",
        "boot_id": "Another one after each boot.",
        "serial": "Serial number of the machine, which only root can read; empty otherwise.",
        "gpus": "UUID of each GPU by its PCI address.",
        "gpu_serials": "The number of each GPU's board by its PCI address, where it says one.",
        "vbios": "Versions of the GPUs' VBIOS.",
        "hcas": "GUID of each HCA by its name.",
        "counters": "Errors since the driver was loaded, by port or card and name, without those that are 0.",
    },
    "SystemDisk": {
        "name": "The folder: home or root.",
        "kind": "The file system, such as ext4 or nfs4.",
        "size": "Its size in bytes.",
        "error": "Why it could not be read; empty if it was.",
    },
    "SystemGpus": {
        "count": "Number of GPUs.",
        "models": "Number of GPUs by model name.",
        "driver": "Version of the driver, such as 550.54.15.",
        "cuda": "The newest CUDA version that the driver supports.",
        "memory": "Memory of all GPUs together in bytes; null if unknown.",
        "rocm": "Version of ROCm, with AMD's GPUs; else empty.",
    },
    "SystemPort": {
        "name": "The HCA and its port, such as mlx5_0:1.",
        "state": "Active, Down, Initializing or Armed.",
        "physical": "The physical state, such as LinkUp or Polling.",
        "rate": "Gb/s; null if unknown.",
        "link_layer": "InfiniBand, Ethernet, OmniPath or EFA.",
        "model": "The model of the HCA, such as ConnectX-7 (MT4129); empty where it is not shown.",
        "firmware": "Its firmware, such as 28.39.1002; empty where it is not shown.",
    },
    "SystemInterface": {
        "name": "The name, such as eno1.",
        "kind": "What it is: physical, cloud, infiniband, bond, vlan, bridge or macvlan.",
        "running": "Whether it has a carrier.",
        "mtu": "Bytes of the largest packet.",
        "speed": "Gb/s; null if the driver does not report it.",
        "network": "The network of its first address, such as 10.1.0.0/24; empty if a job cannot use the interface.",
        "driver": "Its driver, such as bnxt_en.",
        "firmware": "The firmware of the card; empty where the driver does not report it.",
    },
    "Verdict": {
        "check": "The check's name.",
        "code": "The check's code.",
        "nodes": "The nodes of which it says so.",
        "outcome": "failed: a node has the problem. crashed: the check itself failed. unknown: data that should be "
        "readable was not. skipped: nothing to check, or root is needed. passed: examined, no problem.",
        "reason": "The reason; empty only if the check passed.",
        "needs_root": "True if skipped because only root can read the data (--sudo).",
        "others_unread": "True if unknown only because no other node could be read to compare this one with.",
    },
    "Finding": {
        "code": "The code of the check; codes never change.",
        "check": "The check's name.",
        "severity": "error: the job will fail, hang or be wrong. warning: it may run. info: worth knowing.",
        "nodes": "The affected nodes.",
        "message": "The problem in one sentence.",
        "evidence": "Evidence, one line each.",
        "fix": "A command that fixes or shows the problem, or a sentence: see kind.",
        "where": 'Where to type it: "here" is the machine that runs ncheck; empty: on the nodes of the finding.',
        "kind": "fix: the command mends the problem. look: it shows more. do: it is a sentence that says what to do.",
        "ask": "True if only root may type it, and the user of the run is not root there, nor in a group that sudo "
        "usually lets in: somebody else has to.",
        "title": "The title of the check's page.",
        "page": "The command that prints the check's page.",
        "hardware": "Whether it is a fault of the machine or of a part of it, which a repair mends.",
        "see": "Codes of the findings on the same nodes that name the cause of this one.",
        "ignored": "True if --ignore names it: the severity is lowered, the finding is still listed.",
        "summary": "The problem in a few words; empty if the message is short or the name of the check says it.",
    },
    "LaunchPlan": {
        "env": "Environment variables of the job, by name.",
        "lines": "The command line, by launcher, such as mpirun.",
        "notes": "What could not be decided, with the reason.",
        "reasons": "Reasons for the values in each line, by launcher.",
        "per_node": "Variables whose value differs by node, by node; null in env.",
        "command": "The same line as a command; null if every node has a line of its own, or there is none.",
        "blockers": "Why the plan must not be used as it is; empty if it can be.",
        "avoids": "The codes of findings that harm a launch without the plan and none with it.",
    },
    "Blocker": {
        "code": "The code of the finding; empty if the result of checks is unknown.",
        "nodes": "The nodes.",
        "message": "The reason.",
        "fix": "A command that fixes or shows it, or a sentence; may be empty.",
        "where": "Where to type the fix: here, or node names; empty: on the nodes.",
        "kind": "fix, look for a command that only shows more, or do for a sentence.",
        "ask": "True if only root may type it, which the user of the run probably cannot become there.",
    },
    "LaunchCommand": {
        "argv": "The command's words; they start all ranks.",
        "program": "The launcher's executable; in argv it may follow env or a shell.",
        "mpi_implementation": "The nodes' MPI, such as Open MPI, if mpirun starts the ranks; else empty.",
        "mpi_version": "That MPI's version, such as 4.1.4; else empty.",
        "prefix": "The value of Open MPI's --prefix; empty if the command has none.",
    },
    "Setting": {
        "value": "The value; null: leave it unset.",
        "reason": "The reason.",
        "evidence": "Evidence, one line each.",
        "decided": "False if the right value could not be determined.",
    },
    "Measurement": {
        "what": "What was measured.",
        "measured": "The measured value; null if it could not be measured.",
        "expected": "The value that the hardware should reach; null if unknown.",
        "standing": "How the value compares with what it should be: ok, low, far too low, failed, or unknown.",
        "unit": "The unit of both, such as GB/s (1e9 bytes per second).",
        "limited_by": "What limits the expected value.",
        "nodes": "The nodes that took part.",
        "by": "What carried the data, such as NCCL 2.21.5, torch 2.5.1 gloo on CPUs, or sockets, no library.",
        "stage": "inside (one node), pair, rail, scaling, all; empty for anything else.",
        "ranks": "Number of ranks on all nodes together; 0 for none.",
        "lowered_by": "What lowers the expected value, such as 7 of 8 rails.",
        "unknown": "What is missing to compute the expected value.",
        "curve": "All measured sizes, out of place and in place.",
        "failed": "Why there is no value; empty if there is one.",
        "efficiency": "Scaling efficiency: bandwidth as a share of that of fewer nodes; null if unknown.",
        "protocol": "How the largest size, which gives the value, was timed; null if unknown.",
    },
    "Protocol": {
        "statistic": "What the value is of the times of the repeats: median or mean.",
        "repeats": "How often the size was timed.",
        "warm_ups": "All-reduces before these, which do not count.",
        "iterations": "All-reduces in one repeat, one after the other; its time is divided by this number.",
        "wanted": "How many repeats --repeats asks for; if more than repeats, there was no time for them. Null if "
        "unknown.",
        "spread": "From the fastest repeat to the slowest, as a share of the median; null if unknown.",
    },
    "GpuAlone": {
        "node": "The node.",
        "pci": "PCI address.",
        "uuid": "UUID by NVML.",
        "model": "Model by NVML.",
        "figures": "How fast it computes and copies.",
        "clock": "MHz under load; null if NVML did not say.",
        "power": "Watts under load; null if NVML did not say.",
        "temperature": "Degrees Celsius under load; null if NVML did not say.",
        "failed": "Why its test ended early; empty if it did not.",
        "notes": "What was not measured, and why.",
    },
    "GpuFigure": {
        "what": "What was measured, such as FP32 or memory.",
        "value": "The median, in the unit.",
        "unit": "TFLOPS, GB/s, or us for the time of an empty kernel.",
        "usual": "What other GPUs of its model reach, or what its data sheet lets expect; null if neither is known.",
        "standing": "The verdict on the value.",
    },
    "Point": {
        "size": "Bytes per rank.",
        "in_place": "Whether the result overwrites the input.",
        "seconds": "Seconds for one all-reduce, the median of the repetitions.",
        "algbw": "size / seconds, in GB/s (1e9 bytes per second).",
        "busbw": "algbw times 2(n-1)/n for n ranks: the load of each link, in GB/s.",
        "wrong": "Number of wrong elements; null if not verified.",
        "repeats": "How often the size was timed; null if unknown.",
        "spread": "From the fastest repeat to the slowest, as a share of the median; null if unknown.",
    },
    "Probe": {
        "ran": "Whether a test ran.",
        "reason": "What ran, or why nothing ran.",
        "means": "What carried the data: nccl, nccl-tests, gloo or tcp; empty if no test ran.",
        "launcher": "What started the ranks: agents or mpirun; empty if no test ran.",
        "version": "Version of the library that carried the data; empty if there is none.",
        "rounds": "Number of rounds of collectives, one after another.",
        "pairs": "Every pair of nodes that was measured by itself.",
        "traffic": "Traffic of every interface and HCA port while all nodes ran together, or else in all steps.",
        "notes": "What was left out, with the reason: nodes, steps, GPUs.",
    },
    "Pair": {
        "nodes": "The two nodes.",
        "busbw": "GB/s between them; null if the test failed.",
        "standing": "How it compares with what it should be: ok, low, far too low, failed, or unknown.",
    },
    "Traffic": {
        "node": "The node.",
        "device": "The interface, or the HCA and its port, such as mlx5_0:1.",
        "sent": "Bytes sent.",
        "received": "Bytes received.",
        "planned": "Whether the launch plan uses it.",
        "share": "usual: a device of the plan, and as much as the others. less: less than these. stray: data by a "
        "device that is not in the plan. inside: loopback, between the ranks of a node. little: nothing that counts.",
    },
}


def schema_text() -> str:
    """Return the text of docs/report.schema.json."""
    return json.dumps(report_schema(), indent=2) + "\n"


def report_schema() -> dict[str, Any]:
    """Return the JSON Schema, draft 2020-12, of what -o json writes."""
    from mashumaro.jsonschema import DRAFT_2020_12, build_json_schema

    built = build_json_schema(Report, dialect=DRAFT_2020_12, all_refs=True, with_definitions=True).to_dict()
    definitions = built["$defs"]
    for record in RECORDS:
        _describe(definitions[record.__name__], record)
    definitions["Report"]["properties"]["schema"] |= {"const": SCHEMA}
    return {
        "$schema": DRAFT_2020_12.uri,
        "$id": "urn:ncheck:report:2",
        "title": "ncheck report",
        "$ref": built["$ref"],
        "$defs": definitions,
    }


def _describe(definition: dict[str, Any], record: type[object]) -> None:
    """Add the descriptions. All members are always written (required); later versions may add some (none forbidden)."""
    definition["description"] = " ".join((inspect.getdoc(record) or "").split())
    definition["required"] = list(definition["properties"])
    del definition["additionalProperties"]
    for name, member in definition["properties"].items():
        member.pop("default", None)
        member["description"] = MEMBERS[record.__name__][name]
