"""The scheduler and the kernel: jobs that were ended, nodes that went down, tasks that failed, mounts that hang."""

from __future__ import annotations

import re
from dataclasses import replace

from ncheck.expression import expression
from ncheck.parse.kernel_lines import EDAC_UNCORRECTED, HARD_LOCKUP, RCU_STALL, SOFT_LOCKUP
from ncheck.triage.certainty import Grade
from ncheck.triage.signals import HANGUP, NAMES, of_exit_code, of_signal
from ncheck.triage.signature import LineClue, Signature, row

_NODE = r"(?P<node>[A-Za-z0-9][\w.-]{0,252})"
_MEMORY = "sacct -S now-2days --format=JobID,State,ReqMem,MaxRSS"
_EVENTS = "kubectl get events --sort-by=.lastTimestamp"

# Reasons for which kubelet refuses a pod that the scheduler gave it.
_REFUSED = (
    r"TopologyAffinityError|UnexpectedAdmissionError|OutOf(?:cpu|memory|pods|ephemeral-storage|[\w.-]{1,60}/\w{1,30})|"
    r"NodeAffinity|SMTAlignmentError|NodePorts|MatchNodeSelector|VolumeAttachmentLimitExceeded"
)

_HANGUP = replace(HANGUP, do="submit the job by sbatch, which needs no terminal")
_EXITED = LineClue("rank_crashed", Grade.ECHO, kind="exit")
_OOM_KILLED = LineClue("rank_crashed", Grade.CERTAIN, ("gpu_oom",), kind="memory",
                       meaning="Slurm killed a task that used more host memory than the job asked for",
                       look=_MEMORY)  # fmt: skip

# Killed | Segmentation fault (core dumped) | Exited with exit code 137
_END = expression(rf"^(?:(?P<signal>{NAMES})\b|Exited with exit code (?P<code>\d{{1,3}})\b)")


def _task(match: re.Match[str]) -> LineClue:
    """Return the clue of srun's line about a task that ended."""
    if match["end"].startswith("Out Of Memory"):
        return _OOM_KILLED
    end = _END.search(match["end"])
    if end is None:
        return _EXITED
    clue = of_signal(end["signal"]) if end["signal"] else of_exit_code(int(end["code"])) or _EXITED
    return _HANGUP if clue is HANGUP else clue


# By the text of Slurm's error.
_LAUNCHES = (
    (expression(r"credential expired"), LineClue("clock_skew", Grade.LIKELY, ("ssh_auth",),
     meaning="a node takes Slurm's credential for expired: its clock differs, or the launch took too long")),
    (expression(r"[Cc]redential"), LineClue("ssh_auth", Grade.LIKELY, ("clock_skew",),
     meaning="a node refuses Slurm's credential", look="munge -n | unmunge")),
    (expression(r"prolog|could not|Unspecified"), LineClue("node_failed", Grade.LIKELY, ("launcher_mismatch",))),
    (expression(r"No such file|not found|Permission"), LineClue("rank_crashed", Grade.LIKELY, ("launcher_mismatch",),
     kind="file", meaning="the program or its folder does not exist on a node", look="pwd")),
    (expression(r"layout|cpu bind|[Ii]nvalid|not available|MPI|plugin|Requested|[Ss]pecification|permitted"),
     LineClue("launcher_mismatch", Grade.LIKELY, ("rendezvous_misconfig",),
              meaning="Slurm cannot place the ranks as it was asked to", look="squeue --me; sinfo")),
)  # fmt: skip

_UNREACHED = LineClue("firewall", Grade.POSSIBLE, ("node_failed", "launcher_mismatch"),
                      meaning="srun cannot reach the daemon of a node")  # fmt: skip


def _launch(match: re.Match[str]) -> LineClue:
    """Return the clue of the reason for which srun could not start the ranks of a node."""
    return next((clue for pattern, clue in _LAUNCHES if pattern.search(match["reason"])), _UNREACHED)


SIGNATURES = (
    # srun: error: node03: task 12: Killed
    # srun: error: node03: tasks 8-15: Exited with exit code 1
    Signature(expression(rf"srun: error: {_NODE}: tasks? (?P<rank>\d{{1,6}})[\d,-]{{0,200}}: (?P<end>.{{1,80}})"),
              _task),
    # slurmstepd: error: Detected 1 oom_kill event in StepId=812.0. Some of the step tasks have been OOM Killed.
    row(r"[Dd]etected \d+ oom.kill events? in|tasks have been OOM Killed|[Ee]xceeded (?:job|step) memory limit|"
        r"[Jj]ob \d+ exceeded memory limit|OUT_OF_MEMORY|TERM_(?:MEM|SWAP)LIMIT",
        "rank_crashed", Grade.CERTAIN, "gpu_oom", kind="memory",
        meaning="the job used more host memory than it asked for, and a rank was killed", look=_MEMORY),
    # slurmstepd: error: *** JOB 812 ON node01 CANCELLED AT 2026-01-02T03:04:05 DUE TO TIME LIMIT ***
    row(r"CANCELLED AT \S{1,40} DUE TO TIME LIMIT|has exceeded its time limit|"
        r"due hitting max wall clock limit|job killed: walltime \d+ exceeded|TERM_RUNLIMIT|"
        r"DUE TO TIME LIMIT",
        "job_ended", Grade.CERTAIN, kind="time-limit", meaning="the job reached its time limit"),
    # slurmstepd: error: *** JOB 812 ON node01 CANCELLED AT 2026-01-02T03:04:05 DUE TO PREEMPTION ***
    row(r"DUE TO PREEMPTION|[Jj]ob \d+ has been (?:preempted|requeued)|was preempted|"
        r"\bPreempted by\b|TERM_PREEMPT|[Pp]reemption (?:notice|signal)|"
        r"[Ss]pot (?:instance )?(?:interruption|termination)",
        "job_ended", Grade.CERTAIN, kind="preempted", meaning="a job of higher priority took the nodes"),
    # slurmstepd: error: *** JOB 812 ON node01 CANCELLED AT 2026-01-02T03:04:05 DUE TO NODE FAILURE, SEE SLURMCTLD LOG
    # It is printed on a node that still works: the name in it is not that of the node that failed.
    # srun: error: Node failure on node03
    row(rf"CANCELLED AT \S{{1,40}} DUE TO (?:NODE FAILURE|JOB REQUEUE)|Node failure on {_NODE}|"
        r"\bNODE_FAIL\b|allocation \d+ has been revoked due to node failure",
        "node_failed", Grade.CERTAIN),
    # slurmstepd: error: *** STEP 812.0 ON node01 CANCELLED AT 2026-01-02T03:04:05 ***
    row(r"\*\*\* (?:STEP|JOB) \S{1,40} ON \S{1,255} CANCELLED AT \S{1,40} \*\*\*", "job_ended", Grade.ECHO,
        "rank_crashed", tag="gone", kind="cancelled",
        meaning="the job or the step was cancelled, by somebody or because a task failed"),
    # srun: Job allocation 812 has been revoked
    row(r"srun: (?:error: )?Job allocation \d+ has been revoked", "node_failed", Grade.LIKELY, "job_ended"),
    # srun: error: Timed out waiting for job step to complete
    row(r"Timed out waiting for job step to complete|srun: Job step aborted: Waiting up to \d+ seconds|"
        r"srun: Terminating (?:job step|StepId)|First task exited \d+s ago", "", Grade.ECHO, tag="gone"),
    # srun: error: Unable to confirm allocation for job 812: Invalid job id specified
    row(r"srun: error: Unable to (?:create step|confirm allocation|allocate resources)|"
        r"(?:sbatch|salloc): error: |"
        r"srun: error: (?:Unable to create TaskId|task launch failed|Invalid)|Requested node configuration is not"
        r" available|More processors requested than permitted|Invalid (?:generic resource|partition|account)",
        "launcher_mismatch", Grade.LIKELY, "rendezvous_misconfig",
        meaning="the scheduler cannot start the job as it was asked for", look="squeue --me; sinfo"),
    # srun: error: Task launch for StepId=812.4 failed on node node03: Communication connection failure
    # srun: error: Application launch failed: Job credential expired
    Signature(expression(rf"(?:Application launch failed|Task launch for \S{{1,60}} failed on node {_NODE}): "
                         r"(?P<reason>.{1,120})"), _launch),
    # srun: error: slurm_receive_msgs: [[node03]:6818] failed: Socket timed out on send/recv operation
    row(r"slurm_receive_msgs?: .{0,120}(?:failed|timed out|Connection)|fwd_tree_thread: .{0,120}failed to forward|"
        r"Unable to contact slurm controller",
        "firewall", Grade.POSSIBLE, "node_failed", "launcher_mismatch",
        meaning="Slurm's daemon on a node, or its controller, does not answer"),
    # error: Munge decode failed: Invalid credential
    row(r"Munge (?:encode|decode) failed: (?!Expired|Rewound)|Protocol authentication error|"
    r"Invalid credential", "ssh_auth",
        Grade.LIKELY, "clock_skew", meaning="munge on a node refuses the credentials of another one",
        look="munge -n | unmunge"),
    # nfs: server 10.1.0.9 not responding, still trying
    row(r"nfs: server \S{1,255} not responding|Lustre: .{0,300}(?:was lost; in progress|timed out)|"
        r"LustreError: .{0,300}(?:timed out|-110|failed: rc = -1[01]\d|evicted)|GPFS.{0,200}(?:lost|expel)|"
        r"[Bb]ee[Gg][Ff][Ss].{0,100}(?:[Cc]ommunication error|Unable to connect|timed? ?out)|"
        r"(?:cannot access|stat|open) .{1,300}: Transport endpoint is not connected|\[Errno 107\] .{0,80}: '/|"
        r"ceph: .{0,100}(?:hung|session lost)|"
        r"mount\S{0,40}: .{0,200}stale file handle",
        "storage_hang", Grade.LIKELY, "routing", passing=True, meaning="the server of a mount does not answer",
        look="sudo journalctl -k -g 'not responding'"),
    # INFO: task python3:4021 blocked for more than 120 seconds.
    row(r"task \S{1,60} blocked for more than \d+ seconds", "storage_hang", Grade.POSSIBLE, "gpu_fault",
        "software_bug", meaning="a process waits in the kernel, usually for a disk, a mount or a driver", passing=True,
        look="sudo journalctl -k -g 'blocked for more'"),
    # kernel: watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [python3:4021]
    row(rf"{SOFT_LOCKUP}|{HARD_LOCKUP}|Kernel panic|{RCU_STALL}|{EDAC_UNCORRECTED}|"
        r"nvme.{0,80}(?:controller is down|timeout, (?:reset|aborting))|xfs_do_force_shutdown|"
        r"Remounting filesystem read-only|Filesystem has been shut down|critical medium error|"
        r"[Mm]achine [Cc]heck:? .{0,60}(?:[Ee]vents|[Ee]xception)|"
        r"mce: \[Hardware Error\]|EXT4-fs error|XFS .{0,80}(?:corruption|Shutdown)|I/O error, dev \w+",
        "node_failed", Grade.LIKELY, "gpu_fault", "storage_hang", meaning="the kernel reports a fault of the machine",
        look="sudo journalctl -k -p err"),
    # kernel: NETDEV WATCHDOG: ens1f0 (i40e): transmit queue 3 timed out
    row(r"carrier lost|NETDEV WATCHDOG: ", "ib_fabric", Grade.POSSIBLE, "node_failed", passing=True,
        meaning="the link of a network interface went down", look="ip -br link"),
    # Warning  Evicted  pod/worker-3  The node was low on resource: memory.
    row(r"The node was low on resource: (?:memory|ephemeral-storage)|reason: (?:Evicted|OOMKilled)|"
        r"Pod ephemeral local storage usage exceeds|Container .{0,100} exceeded its local ephemeral storage",
        "rank_crashed", Grade.CERTAIN, "disk_full", kind="memory",
        meaning="Kubernetes evicted or killed a pod that used too much memory or disk", look=_EVENTS),
    # Warning  FailedScheduling  0/4 nodes are available: 4 Insufficient nvidia.com/gpu.
    row(r"\bFailedScheduling\b|\b\d+/\d+ nodes are available: |PodUnschedulable|Insufficient nvidia\.com/gpu|"
        r"tasks in gang unschedulable|cannot find enough sibling pods|NotTriggerScaleUp|"
        r"didn't trigger scale-up|couldn't assign flavors to pod set|"
        r"[Ii]nsufficient (?:unused )?quota for|^\s*reason: (?:NotEnoughResources|Unschedulable)\b",
        "pod_unschedulable", Grade.LIKELY, "node_failed", "rank_missing", passing=True),
    # Warning  TopologyAffinityError  3m    kubelet  Resources cannot be allocated with Topology locality
    row(rf"\b(?:{_REFUSED})\b|Allocate failed due to|Resources cannot be allocated with Topology locality",
        "pod_unschedulable", Grade.LIKELY, "rank_missing", "gpu_fault", passing=True,
        meaning="kubelet refuses a pod that was placed on its node: what it asks for is not free there"),
    # hvd-worker-1          0/1     Pending   0          14m     <none>        <none>
    row(r"\b\d{1,3}/\d{1,3}\s{1,20}Pending\s{1,20}\d{1,6}\s", "pod_unschedulable", Grade.POSSIBLE, "container_start",
        "rank_missing", passing=True, meaning="a pod of the job waits for its place; the others wait for it"),
    # worker-0    0/1     ContainerCreating   0          31m
    row(r"\b\d{1,3}/\d{1,3}\s{1,20}(?:ContainerCreating|PodInitializing|Init:\d+/\d+)\s{1,20}\d{1,6}\s",
        "container_start", Grade.POSSIBLE, "pod_unschedulable", "rank_missing", passing=True,
        meaning="a pod's container is not made yet: its image, a volume or its network", look=_EVENTS),
    # worker-0    0/1     CrashLoopBackOff   3 (2s ago)   2m
    row(r"\b\d{1,3}/\d{1,3}\s{1,20}(?:Init:)?(?:CrashLoopBackOff|Error|StartError|RunContainerError)\s{1,20}\d{1,6}\b|"
        r"Back-off restarting failed container", "rank_crashed", Grade.ECHO, "container_start", tag="gone",
        passing=True, meaning="a pod of the job ended with an error: its own log has the reason", look=_EVENTS),
    # Warning  FailedMount  3m  kubelet  MountVolume.SetUp failed for volume pvc-1
    row(r"\bFailed(?:Mount|AttachVolume|CreatePodSandBox|MapVolume|PreStartHook)\b|NetworkNotReady|"
        r"failed to set ?up (?:network for )?sandbox", "container_start", Grade.LIKELY, "storage_hang",
        "pod_unschedulable", passing=True, meaning="a pod's volume or network cannot be set up on its node",
        look=_EVENTS),
    # Back-off pulling image "registry.example/train:1"
    row(r"ErrImagePull|ImagePullBackOff|Back-off pulling image|pull access denied|manifest unknown|"
        r"CreateContainerConfigError|RunContainerError|OCI runtime (?:create|exec) failed|failed to create shim task",
        "container_start", Grade.LIKELY, "ssh_auth",
        look=_EVENTS),
    # slurmstepd: error: *** STEP 812.0 ON node01 CANCELLED AT 2026-01-02T03:04:05 DUE TO TASK FAILURE ***
    row(r"CANCELLED AT \S{1,40} DUE TO TASK FAILURE|FAILED \(non-zero exit code or other", "", Grade.ECHO, tag="gone"),
    # slurmstepd: error: *** JOB 812 ON node01 CANCELLED AT 2026-01-02T03:04:05 DUE to SIGNAL Terminated ***
    row(r"CANCELLED AT \S{1,40} DUE to SIGNAL", "job_ended", Grade.POSSIBLE, "rank_crashed", kind="cancelled",
        meaning="the job was cancelled by a signal"),
    # srun: Job step creation temporarily disabled, retrying (Requested nodes are busy)
    row(r"[Jj]ob (?:\d+ )?step creation (?:temporarily|still) disabled, retrying", "launcher_mismatch", Grade.POSSIBLE,
        "rendezvous_misconfig", passing=True,
        meaning="srun waits for resources that another step of the job holds", look="squeue --me --steps"),
    # srun: error: PMK_KVS_Barrier duplicate request from task 3
    row(r"PMK_KVS_Barrier (?:duplicate request|task count inconsistent)", "launcher_mismatch", Grade.LIKELY,
        "rendezvous_misconfig"),
    # slurmstepd: error: *** JOB 812 STEPD TERMINATED ON node01 AT 2026-01-02T03:04 DUE TO JOB NOT ENDING WITH SIGNALS
    row(r"DUE TO JOB NOT ENDING WITH SIGNALS|Kill task failed", "storage_hang", Grade.POSSIBLE, "node_failed",
        "gpu_fault",
        meaning="a process of the job could not be killed: it waits in the kernel, for a mount or a driver"),
    # srun: Force Terminated job 812
    row(r"srun: (?:Force Terminated|forcing) job|scancel: Terminating job", "job_ended", Grade.POSSIBLE, "rank_crashed",
        "node_failed", kind="cancelled", meaning="the job was cancelled, by somebody or because its nodes failed"),
    # srun: interrupt (one more within 1 sec to abort)
    row(r"srun: (?:interrupt \(one more|sending Ctrl-C to)", "job_ended", Grade.POSSIBLE, "rank_crashed",
        kind="cancelled", meaning="somebody pressed ^C"),
    # Job <123> was killed: TERM_OWNER: job killed by owner.
    row(r"\bTERM_(?:OWNER|ADMIN|FORCE_OWNER|FORCE_ADMIN|EXTERNAL_SIGNAL)\b", "job_ended", Grade.LIKELY,
        "rank_crashed", kind="cancelled", meaning="somebody ended the job"),
    # slurmctld: error: Nodes node03 not responding, setting DOWN
    row(r"not responding, setting DOWN|\bNodeNotReady\b|node\.kubernetes\.io/(?:unreachable|not-ready)", "node_failed",
        Grade.LIKELY, "firewall", passing=True),
    # kernel: {1}[Hardware Error]: event severity: fatal
    row(r"\[Hardware Error\]: event severity: (?:fatal|recoverable)", "node_failed", Grade.LIKELY, "gpu_fault",
        meaning="the kernel reports a fault of the machine", look="sudo journalctl -k -p err"),
)  # fmt: skip
