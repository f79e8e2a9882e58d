"""Horovod, DeepSpeed, Lightning, accelerate, Ray, vLLM, TensorFlow, JAX, MXNet, Paddle and OneFlow: their own words."""

from __future__ import annotations

from ncheck.triage.certainty import Grade
from ncheck.triage.signature import row

SIGNATURES = (
    # [0] Stalled ranks: 3: [DistributedAllreduce_grad_1, DistributedAllreduce_grad_2 ...]
    row(r"Stalled ranks:|[Mm]issing ranks: ?(?P<rank>\d{1,6})|[Ss]tall ops? (?:exceeded|time)|"
    r"One or more rank \(marked by|"
        r"remain stalled for (?:more|longer) than",
        "collective_mismatch", Grade.POSSIBLE, "slow_rank_timeout", "rank_crashed", tag="stall", passing=True,
        meaning="some ranks did not call a collective that the others wait for"),
    # Horovod has been shut down. This was caused by an exception on one of the ranks or an attempt to allreduce
    row(r"Horovod has been shut down\.|\bMachine \d+ lost\b|Container rank (?P<rank>\d{1,6}) status failed|"
        r"HorovodInternalError|Horovod detected that one or more processes exited with",
        "rank_crashed", Grade.ECHO, "firewall", tag="gone"),
    # ValueError: Not enough slots on the hosts to fulfill the 16 requested.
    row(r"Not enough slots on the hosts to fulfill|Requested more processes \(\d+\) than there are available slots|"
        r"Invalid host input, (?:please make sure|slot count)|Different slots in -hosts parameter",
        "launcher_mismatch", Grade.CERTAIN, "rendezvous_misconfig",
        meaning="the hosts given to the launcher do not have so many slots", look="nvidia-smi -L"),
    # RuntimeError: could not connect to some hosts via ssh
    row(r"could not connect to some hosts via ssh|unable to ssh to|Unable to ssh into|ssh: .{0,200} port \d+: "
        r"(?:Connection closed|Operation timed out)",
        "ssh_auth", Grade.LIKELY, "firewall"),
    # RuntimeError: Read data from KVStore server failed.
    row(r"HOROVOD_GLOO_\w+ (?:is )?not set|Gloo (?:context|rendezvous) .{0,100}timed out|"
        r"Unable to meet other process at the rendezvous store|"
        r"Read data from KVStore server failed|Put data input KVStore server failed|"
        r"GET methods? .{0,80}KVStore",
        "rendezvous_misconfig", Grade.POSSIBLE, "firewall", "rank_crashed", tag="store"),
    # Exception: Security error: digest did not match the message.
    row(r"Security error: digest did not match the message", "rendezvous_misconfig", Grade.LIKELY, "version_mismatch",
        meaning="a process of another run, or with another secret key, connected"),
    # ERROR: mpi4py/horovodrun: horovod does not find an installed MPI.
    row(r"horovod does not find an installed MPI|Open MPI/Spectrum MPI/Intel MPI/MPICH (?:is|was) not (?:found|"
    r"installed)|"
        r"Neither MPI nor Gloo support has been built|Extension horovod\.\w+ has not been built|"
        r"(?:does not|doesn't) support multiple interfaces",
        "launcher_mismatch", Grade.CERTAIN, "version_mismatch",
        meaning="Horovod was built without what its launcher needs", look="horovodrun --check-build"),
    # RuntimeError: Duplicate tensor name DistributedAllreduce.grad; this usually means
    row(r"Duplicate tensor name|DUPLICATE_NAME_ERROR|"
    r"Requested to \w+ a tensor with the same name", "collective_mismatch",
        Grade.LIKELY, "rank_crashed"),
    # RuntimeError: ranks 1 and 0 have different number of elements
    row(r"Mismatched (?:allgather|broadcast|alltoall|allreduce|reducescatter|\w+ CPU/GPU device|root rank)|"
        r"ranks? .{0,80}different (?:number of elements|tensor shapes?|shapes?|dtypes?|collective)|"
        r"[Cc]ollective .{0,80}(?:shape|size|dtype)s? (?:mismatch|differ)|[Tt]ensor sizes? .{0,60}across ranks|"
        r"inconsistent tensor (?:shape|size)s? across|tensor shape .{0,80}differs across ranks",
        "collective_mismatch", Grade.LIKELY, "version_mismatch"),
    # DDP expects same model across all ranks, but Rank 0 has 161 params, while rank 1 has inconsistent 158 params.
    row(r"DDP expects same model across all ranks|params?\S{0,12} .{0,120}appears not to match (?:strides|"
    r"sizes) of the same param|"
        r"has inconsistent \d+ params|Detected at least one rank that exhausted inputs|"
        r"verifies? params? across processes",
        "collective_mismatch", Grade.CERTAIN, "rank_crashed", meaning="the model or the data differ between the ranks"),
    # [deepspeed] AssertionError: Check batch related parameters. train_batch_size is not equal to micro_batch * ...
    row(r"Check batch related parameters|train_batch_size is not equal to|"
        r"[Ww]orld size .{0,80}(?:is not|not) divisible|not divisible by .{0,60}(?:parallel|world) size|"
        r"(?:tensor|pipeline|data|expert|context)[- _](?:model[- _])?parallel(?:[- _]size)? .{0,80}(?:greater than|"
        r"exceeds|"
        r"larger than|must (?:be|divide))",
        "rendezvous_misconfig", Grade.LIKELY, "rank_crashed",
        meaning="batch size, parallel sizes and the number of ranks do not fit together"),
    # RuntimeError: the MASTER_ADDR, MASTER_PORT must be set; ValueError: Error initializing ... MASTER_ADDR expected
    row(r"MASTER_(?:ADDR|PORT) .{0,60}(?:not set|must be set|expected|is missing)|"
        r"(?:RANK|WORLD_SIZE|LOCAL_RANK|NODE_RANK) .{0,40}(?:not set|is missing|must be set)|KeyError: '(?:RANK|"
        r"LOCAL_RANK|"
        r"WORLD_SIZE|MASTER_ADDR|MASTER_PORT|SLURM_\w{1,30}|OMPI_COMM_WORLD_\w{1,20})'|"
        r"Default process group has not been initialized|torch\.distributed is not (?:yet )?initialized|"
        r"[Ii]nvalid rank \d+, rank should be in the interval|rank \d+ >= world_size|"
        r"You set `--ntasks=\d+` in your SLURM|You set `\w+=\d+` in Lightning, but|"
        r"MPI (?:rank|world size) \d+ does not match torch",
        "rendezvous_misconfig", Grade.LIKELY, "launcher_mismatch",
        meaning="the variables that name rank, world size or address are missing or wrong"),
    # MisconfigurationException: You requested gpu: [0, 1, 2, 3] But your machine only has: [0, 1]
    row(r"You requested gpu: \[|But your machine only has: \[|No supported gpu backend found|"
        r"MisconfigurationException: .{0,100}(?:gpu|GPU|cuda|device)|requested (?:more )?GPUs? .{0,60}(?:available|"
        r"exist)",
        "gpu_mapping", Grade.CERTAIN, "container_isolation"),
    # ValueError: fp16 mixed precision requires a GPU
    row(r"mixed precision requires a (?:GPU|CUDA)|"
        r"Torch not compiled with CUDA enabled|CUDA is not available|"
        r"Attempting to deserialize object on (?:a )?CUDA device|not compiled with (?:NCCL|CUDA) (?:support|enabled)|"
        r"Distributed package doesn't have NCCL|ProcessGroupNCCL is only supported with GPUs",
        "gpu_mapping", Grade.LIKELY, "driver_insufficient", "container_isolation", "launcher_mismatch", passing=True,
        meaning="the rank sees no GPU, or its libraries were built without CUDA or NCCL"),
    # (raylet) The node with node id: 12ab and address: 10.1.0.3 has been marked dead because the detector has missed
    row(r"has been marked dead because|The node (?:died|has been lost)|[Nn]ode .{0,80}missed too many heartbeats|"
        r"health check failed due to missing too many heartbeats",
        "node_failed", Grade.LIKELY, "firewall", "rank_crashed"),
    # ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.
    row(r"killed due to the node running low on memory|Workers \(tasks / actors\) killed due to memory pressure|"
        r"ObjectStoreFullError|object store is full",
        "rank_crashed", Grade.CERTAIN, kind="memory", meaning="a node ran out of memory and Ray killed a worker",
        look="free -h"),
    # ConnectionError: Could not find any running Ray instance. Please specify the one to connect to
    row(r"Could not find any running Ray instance|Failed to connect to (?:GCS|Ray cluster|the GCS server)|"
        r"Unable to connect to GCS|GCS server .{0,80}(?:unreachable|failed)|"
        r"ray start .{0,100}(?:Failed|failed)|This node has an IP address of .{0,80}but Ray expects",
        "rendezvous_misconfig", Grade.POSSIBLE, "firewall", "wrong_nic", "rank_crashed",
        meaning="a worker cannot reach Ray's head node", look="ray status"),
    # Version mismatch: The cluster was started with: Ray: 2.9.0 Python: 3.10.12
    row(r"Version mismatch: The cluster was started with|Python(?: minor)? versions? .{0,60}(?:differ|mismatch)|"
        r"PicklingError: .{0,100}version|[Vv]ersion mismatch: (?:expected|got|server|client)",
        "version_mismatch", Grade.CERTAIN),
    # ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.
    row(r"The actor (?:died|is dead|is unavailable)|ActorDiedError|RayActorError|WorkerCrashedError|Worker exit type: |"
        r"The worker died unexpectedly|Worker unexpectedly exits|EngineDeadError|"
        r"[Ee]ngine(?: core)? (?:process )?(?:died|initialization failed)|Worker proc \S{1,80} died|"
        r"A worker process .{0,60}(?:died|exited) unexpectedly",
        "rank_crashed", Grade.ECHO, "gpu_oom", tag="gone"),
    # Placement group cannot be created: requires 16 GPUs, cluster has 8
    row(r"No available node types can fulfill resource request|Cannot schedule (?:the )?(?:actor|task|placement group)|"
        r"[Pp]lacement group .{0,60}(?:cannot|not) be (?:created|scheduled)|"
        r"[Tt]he number of required GPUs exceeds the total number of available GPUs|cannot be scheduled right now|"
        r"Failed to create placement group|Waiting for creating a placement group|Cannot provide a placement group|"
        r"Total available GPUs .{0,40}is less than total desired GPUs|tasks? with infeasible resource requests|"
        r"\d\+ pending placement groups",
        "launcher_mismatch", Grade.POSSIBLE, "rendezvous_misconfig", "wrong_nic", "node_failed", passing=True,
        meaning="Ray finds no place for a task: too few free GPUs, or a node under another address", look="ray status"),
    # ValueError: Current node has no GPU available. current_node_resource={'CPU': 8.0}. vLLM engine cannot start
    row(r"Current node has no GPU available|vLLM engine cannot start without GPU", "gpu_mapping", Grade.POSSIBLE,
        "wrong_nic", "launcher_mismatch", "container_isolation",
        meaning="Ray sees no free GPU on this node: another job has them, or the node has another address in Ray",
        look="ray status"),
    # KV cache is too small: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`
    row(r"No available memory for the cache blocks|Free memory on device .{0,80}is less than desired GPU memory|"
        r"ResourceExhaustedError: |OOM when allocating tensor|ran out of memory trying to allocate|"
        r"ResourceExhaustedError\]|Out of memory error on GPU \d|cudaMalloc failed: out of memory|HIP out of memory|"
        r"hipErrorOutOfMemory|CUDNN_STATUS_ALLOC_FAILED|paddle\.\S{0,80}ResourceExhausted|"
        r"torch\.npu\.OutOfMemoryError|NPU out of memory|XPU out of memory|显存不足|显存溢出",
        "gpu_oom", Grade.CERTAIN, "rank_crashed", tag="memory"),
    # jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Barrier_id: PjRT_Client_Connect
    row(r"DEADLINE_EXCEEDED: .{0,200}(?:Barrier|[Rr]egister|connect)|Barrier timed out|"
        r"[Cc]oordination (?:service|agent) .{0,100}(?:timed out|unavailable|failed to connect)",
        "rendezvous_misconfig", Grade.POSSIBLE, "rank_crashed", "firewall", tag="store"),
    # CoordinationServiceError: Task /job:jax_worker/replica:0/task:3 heartbeat timeout.
    row(r"heartbeat timeout\. This indicates that the remote task|task:\d+ heartbeat timeout|"
        r"UNAVAILABLE: .{0,100}(?:failed to connect to all addresses|Socket closed|connection (?:reset|attempt))",
        "rank_crashed", Grade.ECHO, "firewall", "node_failed", tag="gone"),
    # tensorflow.python.framework.errors_impl.AlreadyExistsError: another task with the same name joined
    row(r"[Aa]nother task with (?:the )?same (?:name|incarnation)|"
        r"ALREADY_EXISTS: .{0,60}task", "rendezvous_misconfig", Grade.LIKELY,
        meaning="two processes have one task number, or one came back after a restart"),
    # E0101 cuda_dnn.cc: Loaded runtime CuDNN library: 8.0.5 but source was compiled with: 8.1.0
    row(r"Loaded runtime CuDNN library: .{0,60}but source was compiled|CUDNN_STATUS_(?:VERSION_MISMATCH|"
    r"NOT_INITIALIZED)|"
        r"cuDNN (?:version incompatibility|error: CUDNN_STATUS_NOT_INITIALIZED)|CUBLAS_STATUS_NOT_INITIALIZED|"
        r"libcudnn\S{0,40}: cannot open",
        "version_mismatch", Grade.POSSIBLE, "gpu_oom", "driver_insufficient",
        meaning="a CUDA library does not start: another version, or no GPU memory is left"),
    # PreconditionNotMetError: The third-party dynamic library (libnccl.so) that Paddle depends on is not configured
    row(r"third-party dynamic library \(\S{1,60}\) that Paddle depends on is not configured|"
        r"[Ll]ibrary \S{0,60}nccl\S{0,60} (?:is )?not found|NCCL (?:is not available|library not found)",
        "version_mismatch", Grade.CERTAIN, "launcher_mismatch"),
    # Van: Check failed: (node_.hostname) != "" failed to get the interface
    row(r"failed to get the interface|Failed to find (?:a )?network interface|"
        r"[Cc]heck failed: .{0,80}(?:interface|hostname|my_node)|no (?:valid |usable )?network interface|"
        r"[Ii]nterface \S{1,40} (?:does not exist|not found|has no (?:IPv?\d? )?address)|"
        r"Cannot find (?:the )?(?:network )?interface|No (?:such|matching) (?:network )?interface|"
        r"ioctl\(?\S{0,20}\)?.{0,40}SIOCGIFADDR.{0,60}|NCCL_SOCKET_IFNAME .{0,40}(?:not found|does not match)",
        "no_interface", Grade.LIKELY, "nic_names_differ", "wrong_nic"),
    # check_failed: ctrl_addr 127.0.0.1 is not reachable; OneFlow: connect to 10.1.0.3:11022 failed
    row(r"(?:oneflow|OneFlow).{0,200}(?:connect|rpc|ctrl).{0,100}(?:fail|timed? ?out|unavailable)|"
        r"grpc_status:14|StatusCode\.UNAVAILABLE|failed to connect to all addresses",
        "firewall", Grade.POSSIBLE, "wrong_nic", "rendezvous_misconfig", "rank_crashed", tag="connect"),
    # ValueError: Hostfile contains a bad entry: node01 lots=8, unable to proceed with launching
    row(r"Hostfile (?:contains|is (?:empty|not formatted))|[Uu]nable to proceed with (?:launching|training)|"
        r"Hostname '?\S{1,255}'? not found in hostfile|No slot '\d+' specified on host|"
        r"Cannot specify num_nodes/gpus with include/exclude|launcher '?\w{1,20}'? not installed",
        "launcher_mismatch", Grade.LIKELY, "rendezvous_misconfig",
        meaning="the launcher's list of hosts is wrong"),
    # Unhandled exception: St13runtime_error. what(): NCCL Error 5: invalid usage
    row(r"NCCL [Ee]rror:? \d+:? |ncclResult \d|NCCL error: (?:unhandled|invalid|internal|remote)|"
        r"ncclCommInitRank(?:Config)?\S{0,200} failed|NCCL operation \S{1,60} failed|ncclGroupEnd\S{0,60} failed",
        "", Grade.ECHO, tag="system"),
    # The `srun` command is available on your system but is not used. HINT: If your intention is to run Lightning on
    row(r"The `?srun`? command is available on your system but is not used", "rendezvous_misconfig", Grade.POSSIBLE,
        "launcher_mismatch", context=True, passing=True, explains=frozenset({"store", "connect", "waits"}),
        meaning="the program was not started by srun, so that each process takes itself for rank 0"),
    # RuntimeError: Unable to proceed, no GPU resources available
    row(r"Unable to proceed, no GPU resources available|backend '?\w{1,8}'? requires at least one GPU", "gpu_mapping",
        Grade.LIKELY, "driver_insufficient", "container_isolation"),
    # /job:jax_worker/replica:0/task:1 unexpectedly tried to connect with a different incarnation.
    row(r"tried to connect with a different incarnation|Task \S{1,80} is connected with a different incarnation",
        "rank_crashed", Grade.POSSIBLE, "rendezvous_misconfig", "node_failed",
        meaning="a task of the job restarted while the others went on"),
    # This thread has been waiting for `initialize clique for rank 6` for 10 seconds and may be stuck.
    row(r"This thread has been waiting for .{0,400} seconds and may be stuck|"
        r"threads to join the rendezvous, but (?:not all|only \d+) of them arrived", "slow_rank_timeout", Grade.ECHO,
        "rank_crashed", "collective_mismatch", tag="waits", passing=True),
    # Termination timeout for `all gather` of 40 seconds exceeded. Exiting to ensure a consistent program state.
    row(r"Termination timeout for .{0,400} seconds exceeded\. Exiting to ensure", "slow_rank_timeout", Grade.POSSIBLE,
        "rank_crashed", "collective_mismatch", meaning="a GPU of this process did not come to a collective in time"),
    # UNAVAILABLE: unhealthy tasks: /job:jax_worker/replica:0/task:3
    row(r"\b[Uu]nhealthy tasks?\b.{0,200}?task:(?P<rank>\d{1,6})", "rank_crashed", Grade.POSSIBLE, "node_failed",
        "firewall", tag="gone", meaning="a task of the job ended, or is no longer reached"),
    # Stopping coordination service as cluster registration failed. This may be due to 1) some tasks crashed earlier
    row(r"coordination service as cluster registration failed|Wait_for_all_tasks_to_register", "rendezvous_misconfig",
        Grade.POSSIBLE, "rank_crashed", "firewall", tag="store"),
    # Terminating process because the JAX distributed service detected fatal errors.
    row(r"because the (?:JAX|coordinator|distributed).{0,40} detected fatal errors", "", Grade.ECHO, tag="gone"),
    # Can't find a `node_ip_address.json` file from /tmp/ray/session_x. Have you started Ray instance using `ray start`
    row(r"Can't find a `?node_ip_address\.json`? file", "rendezvous_misconfig", Grade.POSSIBLE, "container_isolation",
        passing=True, meaning="Ray does not run on this node, or in this container", look="ray status"),
    # RuntimeError: Session name session_2024 does not match persisted value session_2025.
    row(r"Session name \S{1,80} does not match persisted value", "rendezvous_misconfig", Grade.LIKELY, "port_in_use",
        meaning="another Ray cluster already uses this address", fix="ray stop"),
    # A worker died or was killed while executing a task by an unexpected system error.
    row(r"worker died or was killed while executing|Some Ray subprocesses exited unexpectedly|"
        r"unable to connect to GCS server\. Perhaps it died", "rank_crashed", Grade.ECHO, "gpu_oom", tag="gone"),
    # Exception: The current node timed out during startup. This could happen because some of the raylet failed to
    row(r"current node timed out during startup", "rendezvous_misconfig", Grade.POSSIBLE, "rank_crashed", "firewall"),
    # tcp_utils.cc:107] Retry to connect to 10.0.0.1:6170 while the server is not yet listening.
    row(r"Retry to connect to \S{1,255} while the server is not yet listening|not ready endpoints:\s?\[|"
        r"rpc server on some rank(?: have)? (?:are )?not (?:been created|ready)",
        "rendezvous_misconfig", Grade.POSSIBLE, "firewall", "rank_crashed", "wrong_nic", tag="store", passing=True),
    # [12:00:00] src/van.cc:290: Check failed: !ip.empty() failed to get ip
    row(r"van\.cc:\d+.{0,120}failed to get ip", "no_interface", Grade.LIKELY, "nic_names_differ", "wrong_nic"),
    # [12:00:00] src/van.cc:300: bind failed
    row(r"van\.\w{1,2}:\d+.{0,120}(?:bind failed|failed to get a port)", "port_in_use", Grade.LIKELY, "wrong_nic"),
    # src/zmq_van.h: there is no socket to node 9
    row(r"there is no socket to node \d|failed to send message to node \[|lost some servers", "rank_crashed",
        Grade.ECHO, "firewall", tag="gone"),
    # ConnectionError: Ray is trying to start at 10.1.0.1:6379, but is already running at 10.1.0.2:6379.
    row(r"Ray is trying to start at \S{1,255}, but is already running", "rendezvous_misconfig", Grade.LIKELY,
        "port_in_use", meaning="a Ray cluster of an earlier run is still there", fix="ray stop"),
    # RuntimeError: Distributed package doesn't have MPI built in
    row(r"Distributed package doesn't have (?!NCCL)\w{2,6}|"
        r"(?:MPI|UCC|Gloo) (?:support|backend) is not (?:built|available)",
        "launcher_mismatch", Grade.LIKELY, "version_mismatch"),
)  # fmt: skip
