"""mpirun and its daemons, ssh and horovodrun: the line above their long explanations decides."""

from __future__ import annotations

from ncheck.expression import expression
from ncheck.triage.certainty import Grade
from ncheck.triage.signals import of_signal
from ncheck.triage.signature import NO_LIBRARY, REGISTER, Signature, row

_DAEMON = r"(?:prted|orted)(?: has detected| was|:)"

SIGNATURES = (
    # bash: orted: command not found
    row(r"(?:orted|prted|hydra_pmi_proxy|hydra_bstrap_proxy)['\"]?: (?:command not found|not found|No such file)",
        "mpi_daemon_missing", Grade.CERTAIN),
    # /opt/ompi/bin/orted: error while loading shared libraries: libopen-rte.so.40: cannot open shared object file
    row(r"(?:orted|prted|hydra_\w+): error while loading shared libraries: (?P<library>lib(?:open-|prrte|pmix|mpi)"
        r"[\w.+-]{1,80})", "mpi_daemon_missing", Grade.CERTAIN,
        meaning="mpirun's daemon does not find its own libraries on a node: LD_LIBRARY_PATH of a login without a"
            " terminal",
        fix=REGISTER, look="ldconfig -p | grep {library}"),
    # orted: error while loading shared libraries: libnuma.so.1: cannot open shared object file
    row(r"(?:orted|prted|hydra_\w+): error while loading shared libraries: libnuma\.", "version_mismatch",
        Grade.CERTAIN,
        "mpi_daemon_missing", meaning="mpirun's daemon is on the node, and the library libnuma is not",
        fix="sudo apt-get install libnuma1", look="ldconfig -p | grep libnuma"),
    # A daemon (pid 71925) died unexpectedly with status 127 while attempting
    row(r"died unexpectedly with status 127|Daemon exit status: +127|debug1: Exit status 127", "mpi_daemon_missing"),
    # ssh: Could not resolve hostname node01:4: Name or service not known
    row(r"ssh: Could not resolve hostname [\w.-]+:\d+:", "launcher_mismatch", Grade.CERTAIN, "dns_failure",
        meaning="this mpirun reads host:slots as a hostname: it is too old, or of another MPI"),
    # ssh: Could not resolve hostname node07: Name or service not known
    row(r"Could not resolve hostname (?P<name>[A-Za-z0-9][\w.-]*): ", "dns_failure", Grade.CERTAIN, "ssh_auth",
        look="getent hosts {name}"),
    # socket.gaierror: [Errno -2] Name or service not known
    row(r"^(?!.{0,200}IPv6 network addresses of).{0,2000}(?:Name or service not known|"
        r"Temporary failure in name resolution|"
        r"No address associated with hostname|名称解析暂时失败|没有与主机名关联的地址)",
        "dns_failure", Grade.LIKELY, "rendezvous_misconfig", tag="name", passing=True,
        look='getent hosts "$MASTER_ADDR"'),
    # user@node07: Permission denied (publickey,password).
    row(r"Permission denied \((?:publickey|password|gssapi|keyboard|hostbased)|Host key verification failed|"
        r"REMOTE HOST IDENTIFICATION HAS CHANGED|Permission denied, please try again|Too many authentication failures",
        "ssh_auth", Grade.CERTAIN),
    # ssh: connect to host 10.1.0.7 port 2222: Connection refused
    row(r"ssh: connect to host (?!\d{1,10} |0\.)\S+ port \d+: Connection refused|kex_exchange_identification:",
        "ssh_auth",
        Grade.CERTAIN, "firewall", "container_isolation", meaning="no ssh server answers on that port of the node"),
    # CalledProcessError: Command 'ssh -o PasswordAuthentication=no n2 hostname' returned non-zero exit status 255.
    row(r"Command '\[?'?ssh\b.*returned non-zero exit status|ssh not successful for host", "ssh_auth"),
    # [n2] match_arg (utils/args/args.c:163): unrecognized argument allow-run-as-root
    row(r"unrecognized argument \w|HYDU_parse_array|mpi(?:run|exec): Error: unknown option|Usage: \S*mpiexec \[global|"
        r"(?:mpirun|mpiexec|horovodrun|torchrun): (?:error: )?(?:unrecognized|unknown|invalid) (?:option|argument)|"
        r"Unknown option: --?(?:mca|bind-to|map-by|hostfile|allow-run)",
        "launcher_mismatch", Grade.CERTAIN),
    # ValueError: MPI support has not been built.  If this is not expected, reinstall Horovod with HOROVOD_WITH_MPI=1
    row(r"MPI support has not been built", "launcher_mismatch", Grade.CERTAIN, "version_mismatch",
        meaning="Horovod was built without MPI", look="horovodrun --check-build",
        fix="HOROVOD_WITH_MPI=1 python3 -m pip install --no-cache-dir --force-reinstall horovod"),
    # ValueError: Gloo support has not been built.  If this is not expected, ensure CMake is installed
    row(r"Gloo support has not been built", "launcher_mismatch", Grade.CERTAIN, "version_mismatch",
        meaning="Horovod was built without Gloo", look="horovodrun --check-build",
        fix="HOROVOD_WITH_GLOO=1 python3 -m pip install --no-cache-dir --force-reinstall horovod"),
    # prted has detected an attempt to run as root.
    row(rf"{_DAEMON}.{{0,300}}attempt to run as root", "software_bug", Grade.CERTAIN, "launcher_mismatch",
        meaning="mpirun did not pass --allow-run-as-root to its daemon",
        fix="export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"),
    # mpirun has detected an attempt to run as root.
    row(r"has detected an attempt to run as root", "launcher_mismatch", Grade.CERTAIN,
        meaning="mpirun refuses to run as root without --allow-run-as-root",
        fix="export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"),
    # There are not enough slots available in the system to satisfy the 16
    row(r"There are not enough slots available", "launcher_mismatch", Grade.LIKELY, "rendezvous_misconfig",
        meaning="the hosts given to mpirun have fewer slots than the number of ranks",
        fix="export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe",
        look="ncheck plan nodes.txt --for mpirun"),
    # PRTE detected a mismatch in versions between two processes.
    row(r"detected a mismatch in versions between two processes", "version_mismatch", Grade.CERTAIN),
    # [n1:371] PMIX ERROR: PMIX_ERR_UNPACK_READ_PAST_END_OF_BUFFER in file ...
    row(r"UNPACK_READ_PAST_END_OF_BUFFER|Data unpack would read past end of buffer", "version_mismatch", Grade.POSSIBLE,
        "software_bug", "rank_crashed"),
    # No network interfaces were found for out-of-band communications.
    row(r"No network interfaces were found for out-of-band|An invalid value was given for (?:btl_tcp|oob_tcp)_if_",
        "no_interface", Grade.CERTAIN, "nic_names_differ"),
    # An ORTE daemon has unexpectedly failed after launch and before
    row(r"daemon has unexpectedly failed after launch|A daemon failed to report back after being spawned", "firewall",
        Grade.POSSIBLE, "routing", "mtu_mismatch", "mpi_daemon_missing", "software_bug",
        meaning="mpirun's daemon started on a node but could not connect back, or died at once"),
    # ORTE was unable to reliably start one or more daemons.
    row(r"unable to reliably start one or more daemons|does not know how to route a message to", "", Grade.ECHO,
        tag="launch"),
    # ORTE has lost communication with a remote daemon.
    row(r"has lost communication with a remote daemon", "rank_crashed", Grade.ECHO, "firewall", "software_bug",
        tag="gone"),
    # [n1:40348] btl:tcp: path from 172.17.0.1 to 192.168.122.17: IPV4 PRIVATE DIFFERENT NETWORK
    row(r"btl:tcp: path from .*DIFFERENT NETWORK", "wrong_nic", Grade.POSSIBLE, "routing", passing=True),
    # [n1:4033] btl_tcp_endpoint.c:649 recv_connect_ack] received unexpected process identifier [[8103,1],3]
    row(r"received unexpected process identifier", "wrong_nic", Grade.LIKELY, "same_hostname",
        meaning="two nodes have the same address, that of a bridge on each of them"),
    # Open MPI accepted a TCP connection from what appears to be a another Open MPI process but cannot find a
    row(r"but cannot find a\b|Known IPs of peer:|cannot find a corresponding process entry", "container_isolation",
        Grade.LIKELY, "routing", "wrong_nic", meaning="a rank's packets arrive from another address than its own"),
    # At least one pair of MPI processes are unable to reach each other for
    row(r"pair of MPI processes are unable to reach each other", "wrong_nic", Grade.POSSIBLE, "routing", "firewall",
        "launcher_mismatch"),
    # mpirun noticed that process rank 3 with PID 0 on node n2 exited on signal 9 (Killed).
    Signature(expression(r"(?:process rank (?P<rank>\d{1,6}) with PID \d+ on node (?P<node>[A-Za-z0-9][\w.-]{0,252}) )?"
                         r"exited on signal (?P<signal>\d+)|KILLED BY SIGNAL: (?P<other>\d+)|"
                         r"EXIT STRING: .{1,60}\(signal (?P<last>\d+)\)"),
              lambda match: of_signal(match["signal"] or match["other"] or match["last"])),
    # mpirun: killing job...
    row(r"mpi(?:run|exec): killing job", "job_ended", Grade.POSSIBLE, "rank_crashed", kind="cancelled",
        meaning="somebody pressed ^C, or sent mpirun a signal"),
    # ERROR: Task 1 declared addresses {...}, but has connected from a different address 192.168.101.0.
    row(r"but has connected from a different address", "container_isolation", Grade.CERTAIN, "routing"),
    # Horovodrun was unable to connect to the task service #1 on any of the following addresses: {...}
    row(r"unable to connect to .* on any of the following addresses|Unable to find a set of common task-to-task",
        "nic_names_differ", Grade.LIKELY, "firewall", "wrong_nic", "container_isolation"),
    # Timed out waiting for tasks to start. Please check connectivity between servers.
    row(r"Timed out waiting for .*check connectivity between servers", "firewall", Grade.POSSIBLE, "nic_names_differ",
        "wrong_nic", "ssh_auth"),
    # Mismatched allreduce tensor shapes: One rank sent a tensor of shape [8], but another rank sent shape [4]
    row(r"Mismatched \w+ (?:tensor shapes|data types|operations|root ranks)|Mismatched data types",
        "collective_mismatch", Grade.CERTAIN),
    # One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are waiting
    row(r"by subset of ranks and are waiting", "collective_mismatch", Grade.POSSIBLE, "slow_rank_timeout",
        "rank_crashed", passing=True),
    # =   RANK 3 PID 4021 RUNNING AT node03
    row(r"=\s{1,9}(?:RANK (?P<rank>\d{1,6}) )?PID \d+ RUNNING AT (?P<node>[A-Za-z0-9][\w.-]{0,252})|"
        r"BAD TERMINATION OF ONE OF YOUR APPLICATION",
        "rank_crashed", Grade.ECHO, tag="gone"),
    # prterun noticed that process rank 3 with PID 4711 on node gpu02 exited on
    row(r"process rank (?P<rank>\d{1,6}) with PID \d+ on node (?P<node>[A-Za-z0-9][\w.-]{0,252}) exited on\s*$",
        "rank_crashed", Grade.ECHO, tag="gone"),
    #   Process name: [[12345,1],3]
    row(r"Process name: \[\[\d+,\d+\],(?P<rank>\d{1,6})\]", "rank_crashed", Grade.ECHO, tag="gone"),
    # =   EXIT CODE: 139
    row(r"=\s{1,9}EXIT CODE: (?:139|11)\b", "rank_crashed", Grade.LIKELY, "software_bug", kind="segfault",
        meaning="a rank crashed in native code", look="sudo journalctl -k -g segfault"),
    # =   EXIT CODE: 9
    row(r"=\s{1,9}EXIT CODE: (?:9|137)\b", "rank_crashed", Grade.LIKELY, "gpu_oom", kind="killed",
        meaning="a rank was killed, usually because memory ran out", look="sudo journalctl -k -g oom"),
    # MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD
    row(r"MPI_ABORT was invoked on rank (?P<rank>\d{1,6})|application called MPI_Abort\([^)]{1,80}\) - process "
        r"(?P<other>\d{1,6})|Abort\(\d+\) on node \d+ \(rank \d+ in comm \d+\): (?!Fatal error in)",
        "rank_crashed", Grade.POSSIBLE, "collective_mismatch", kind="exit",
        meaning="the program of a rank ended the job itself: its own message is above"),
    # Primary job  terminated normally, but 1 process returned
    row(r"Primary job\s{1,3}terminated normally, but|detected that one or more processes exited with non-zero|"
        r"MPI_ERRORS_ARE_FATAL|An error occurred in (?:MPI|PMPI)_|Fatal error in P?MPI_|"
        r"peer process has unexpectedly disconnected|control_cb .{0,120}assert|HYDT_bscu_wait_for_completion|"
        r"HYD_pmci_wait_for_completion|poll_wait_for_event",
        "rank_crashed", Grade.ECHO, "firewall", tag="gone"),
    # The application appears to have been direct launched using "srun",
    row(r"appears to have been direct launched using|No PMIx server was reachable, but a PMI|PMI2_Init failed|"
        r"not built with (?:SLURM's|Slurm's|SLURM|Slurm) PMI|PMI2 support|unrecognized (?:or unsupported )?(?:--)?mpi "
        r"(?:type|plugin)|cannot (?:find|load) (?:mpi|pmix) plugin|mpi/pmix: .{0,120}(?:fail|not found)|"
        r"PMIx_Init failed for the following reason",
        "launcher_mismatch", Grade.CERTAIN, "version_mismatch",
        meaning="this MPI was built without the interface by which this launcher starts ranks",
        look="srun --mpi=list"),
    # mpirun was unable to find the specified executable file, and therefore did not launch the job.
    row(r"unable to (?:find|launch) the specified (?:executable|application)|could not access\s{0,3}$|"
    r"or find an executable|"
        r"execvp error on file|error launching the executable|HYDU_create_process .{0,120}execvp error|"
        r"tried to fork a new process via the .{0,3}execve.{0,3} system call but",
        "rank_crashed", Grade.LIKELY, "mpi_daemon_missing", kind="file",
        meaning="the program was not found, or may not be executed, on a node", look="command -v python3"),
    # All nodes which are allocated for this job are already filled.
    row(r"All nodes which are allocated for this job are already filled|more processes than (?:the ppr|cpus in the "
        r"resource)|would result in binding more processes than cpus|not enough (?:processing units|cpus) available|"
        r"requested number of hosts .{0,60}(?:exceeds|greater)|Your job has requested more processes than",
        "launcher_mismatch", Grade.LIKELY, "rendezvous_misconfig",
        meaning="the hosts have fewer slots or CPUs than the launcher was asked to use"),
    # Open RTE was unable to open the hostfile:
    row(r"unable to open the hostfile|unable to (?:open|find|read) (?:the )?(?:host|machine) ?file|"
        r"[Hh]ostfile .{0,200}(?:not found|does not exist|No such file)|could not (?:open|parse) (?:the )?(?:hostfile|"
        r"machinefile)|which does not exist in the allocation|hosts .{0,60}not .{0,20}in the allocation|"
        r"requested hosts were not included in the current allocation",
        "launcher_mismatch", Grade.LIKELY, "rendezvous_misconfig",
        meaning="the list of hosts cannot be read, or names nodes outside the allocation"),
    # MPI_INIT has failed because at least one MPI process is unreachable
    row(r"MPI_INIT has failed because at least one MPI process is unreachable|PML add procs failed|"
        r"--> Returned \"Unreachable\"|UCX  ?ERROR no active messages transport to|"
        r"PMIX ERROR: (?:PMIX_ERR_)?UNREACHABLE|"
        r"unable to find any relevant network interfaces",
        "wrong_nic", Grade.POSSIBLE, "container_isolation", "firewall", "launcher_mismatch",
        meaning="the ranks have no transport that both ends can use"),
    # WARNING: Open MPI accepted a TCP connection but did not receive the expected network identification
    row(r"did not receive the\s*$|expected network identification|failed to handshake with a connecting peer|"
        r"but it is from an IP address that is", "container_isolation", Grade.POSSIBLE, "wrong_nic", "version_mismatch",
        "firewall", meaning="a connection came from an address or a program that Open MPI does not expect"),
    # Read -1, expected 65536, errno = 1
    row(r"Read -1, expected \d+, errno = (?:1|14)\b", "ptrace_refused", Grade.POSSIBLE, "container_isolation",
        passing=True),
    # process_vm_readv(pid=4021) failed: Operation not permitted
    row(r"process_vm_(?:readv|writev)\S{0,60}.{0,100}(?:Operation not permitted|EPERM)|"
        r"CMA .{0,60}(?:permission|not permitted)|CMA .{0,120}ptrace_scope", "ptrace_refused", Grade.LIKELY,
        "container_isolation", passing=True),
    # It appears as if there is not enough space for /tmp/ompi.n1.0/shared_mem_pool.n1 (the shared-memory backing file)
    row(r"not enough space for (?!/dev/shm)\S{1,300} \(the shared-memory backing|"
    r"could not create shared memory segment|"
        r"opal_shmem_mmap: .{0,100}(?:error|fail)|Error creating shared memory object|"
        r"shm_open\(?.{0,80}(?:failed|No space)|unable to allocate shared memory|"
        r"Check whether .{0,20}enough space under",
        "shm_too_small", Grade.LIKELY, "disk_full", "container_isolation"),
    # WARNING: There is at least non-excluded one OpenFabrics device found, but there are no active ports detected
    row(r"no active ports detected|there are no active ports|error initializing an OpenFabrics device",
        "ib_fabric", Grade.ECHO, "memlock_limit", "container_isolation", passing=True,
        meaning="Open MPI's openib cannot use an HCA of this node, which matters only if the job needs it",
        fix="export OMPI_MCA_btl=^openib", look="ibstat"),
    # PSM2 was unable to open an endpoint. Please make sure that the network link is active
    row(r"PSM2? (?:was )?unable to open an endpoint|hfi1?_?\S{0,20} .{0,60}(?:No such device|link is not active)|"
        r"PSM2 .{0,60}can't open|assign_context command failed",
        "ib_fabric", Grade.POSSIBLE, "memlock_limit", "container_isolation", passing=True, look="ibstat"),
    # UCX  WARN network device 'mlx5_9:1' is not available, please use one or more of: 'eth0'(tcp)
    row(r"network device '[^']{1,60}' is not available, please use|no usable transports/devices|"
        r"transport '[^']{1,60}' is not available, please use|no (?:auxiliary )?transport to <",
        "ib_wrong_hca", Grade.LIKELY, "no_interface", "container_isolation", "ibverbs_missing",
        meaning="UCX does not have the device or transport that UCX_NET_DEVICES or UCX_TLS names", look="ucx_info -d"),
    # OFI fi_getinfo() failed (ofi_init.c:2684:MPIDI_OFI_mpi_init_hook:No data available)
    row(r"OFI (?:\w{1,20} ){0,2}\w{1,20}(?:\(\))? fail(?:ed|ure)|fi_getinfo\(?\)?:? .{0,60}(?:No data|-61)|"
        r"OFI_?\w{0,30} .{0,60}provider .{0,60}(?:not found|failed)|"
        r"libfabric:\d+:.{0,120}(?:unable to|failed to) (?:open|load)",
        "net_plugin", Grade.POSSIBLE, "no_interface", "ib_fabric",
        meaning="libfabric has no provider for this network", look="fi_info -l"),
    # [mpiexec@n1] HYDU_sock_gethostbyname (sock.c:201): unable to get host address for n2
    row(r"unable to get host address for (?P<name>[A-Za-z0-9][\w.-]*)|"
    r"gethostbyname failed, (?P<other>[A-Za-z0-9][\w.-]*)|"
        r"无法解析主机名|未知的名称或服务|域名解析暂时失败|"
        r"getaddrinfo\(?\)?:? .{0,60}(?:Name or service|Temporary failure)",
        "dns_failure", Grade.CERTAIN, "rendezvous_misconfig"),
    # sshd[77]: Authentication refused: bad ownership or modes for directory /root/.ssh
    row(r"Authentication refused: bad ownership or modes|Failed (?:publickey|password) for |"
        r"Connection (?:closed|reset) by .{0,100}\[preauth\]|userauth_pubkey: .{0,100}not in PubkeyAccepted|"
        r"Load key \"[^\"]{1,200}\": |UNPROTECTED PRIVATE KEY FILE|no mutual signature algorithm|"
        r"no matching (?:host key type|key exchange method) found",
        "ssh_auth", Grade.LIKELY),
    # Open MPI's mpirun command was unable to find an underlying prterun
    row(r"mpirun command (?:could not execute|was unable to find) (?:the|an) underlying prterun", "mpi_daemon_missing",
        Grade.CERTAIN, "version_mismatch"),
    # A process exceeded memory limits:
    row(r"process exceeded memory limits", "rank_crashed", Grade.CERTAIN, kind="memory",
        meaning="a rank used more memory than mpirun allows", look="free -h"),
    # Error: system limit exceeded on number of pipes that can be open
    row(r"system limit exceeded on number of (?:files|pipes|processes)", "nofile_limit", Grade.CERTAIN),
    # The MTU does not match on local and remote hosts.  All interfaces on
    row(r"MTU does not match on local and remote hosts", "mtu_mismatch", Grade.CERTAIN),
    # WARNING: Open MPI failed to find a route to a peer IP address via a
    row(r"failed to find a route to a peer IP address", "routing", Grade.LIKELY, "wrong_nic"),
    # WARNING: Open MPI failed to TCP connect to a peer MPI process.  This
    row(r"failed to TCP connect to a peer MPI process", "firewall", Grade.POSSIBLE, "wrong_nic", "rank_crashed",
        tag="connect"),
    # A critical communication path was lost to:
    row(r"critical communication path was lost to|failed to receive scheduled heartbeat communications", "rank_crashed",
        Grade.ECHO, "node_failed", "firewall", tag="gone"),
    # The specified network is not parseable. Since we cannot determine your desired intent, we cannot establish a TCP
    row(r"specified network is not parseable|we cannot establish a TCP socket for out-of-band", "no_interface",
        Grade.LIKELY, "nic_names_differ"),
    # Your job failed to map because the resulting process placement
    row(r"Your job failed to map|A process could not be mapped|detected a parse error in the hostfile|"
        r"was made to bind to .{1,60}, but an appropriate target could not|"
        r"was unable to locate a\s{0,3}(?:usable)?.{0,10}srun",
        "launcher_mismatch", Grade.LIKELY, "rendezvous_misconfig",
        meaning="mpirun cannot place the ranks as it was asked to"),
    # It looks like MPI_INIT failed for some reason; your parallel process is
    row(r"It looks like .{1,30} failed for some reason|unable to launch\s*$|Failed to create UCP worker|"
        r"ucp_ep_create\(proc=\d+\) failed", "", Grade.ECHO, tag="launch"),
    # node01:rank1: PSM3 can't open nic unit: 0 (err=23)
    row(r"PSM[23] can't open (?:nic|hfi) unit|Initialization of PSM2 library failed|Unable to initialize verbs NIC",
        "ib_fabric", Grade.POSSIBLE, "net_plugin", "container_isolation", "memlock_limit", look="fi_info -l"),
    # ud_iface.c:271 UCX ERROR ibv_create_ah(dlid=0 port=1 is_global=1) for UD mlx5 failed: Connection timed out
    row(r"ibv_create_ah\(.{0,300}failed|failed to find a gid which matches|rdma_resolve_(?:addr|route)\S{0,40} failed|"
        r"[Ff]ailed to modify (?:UD|RC|DC|SRD|TM control) QP\b.{0,40} to RTR",
        "roce_gid", Grade.POSSIBLE, "ib_fabric", "routing", tag="qp", look="show_gids"),
    # [mpiexec@n1] check_exit_codes (hydra/libhydra/demux.c): unable to run bstrap_proxy on n2 (pid 77, exit code 65280)
    row(r"unable to run bstrap_proxy on (?P<node>[A-Za-z0-9][\w.-]{0,252})|"
        r"connection to proxy \d+ at host (?P<other>[A-Za-z0-9][\w.-]{0,252}) failed",
        "ssh_auth", Grade.POSSIBLE, "mpi_daemon_missing", "firewall", "dns_failure",
        meaning="mpiexec could not start its daemon on a node"),
    # pdsh@n1: n2: ssh exited with exit code 255
    row(r"ssh exited with exit code 255", "ssh_auth", Grade.POSSIBLE, "node_failed", "firewall", "dns_failure"),
    # srun: error: Couldn't find the specified plugin name for mpi/pmix looking at all files
    row(r"Couldn't find the specified plugin name for mpi/|OPAL ERROR: Not initialized in file \S{0,40}pmix",
        "launcher_mismatch", Grade.LIKELY, "version_mismatch",
        meaning="this MPI was built without the interface by which this launcher starts ranks", look="srun --mpi=list"),
    # OSError: libmpi.so.12: cannot open shared object file: No such file or directory
    row(r"(?:OS|Import)Error: (?P<library>(?!lib(?:nccl|cuda|cudart|cublas|torch|c10|ibverbs|mlx|rdmacm|efa))"
        r"lib[\w.+-]{1,80}): cannot open shared object", "version_mismatch", Grade.LIKELY, "rank_crashed",
        kind="import",
        meaning=NO_LIBRARY, fix=REGISTER, look="ldconfig -p | grep {library}"),
    # Access denied by pam_slurm_adopt: you have no active jobs on this node
    row(r"Access denied by pam_slurm|Access denied for user \S{1,64} by PAM|Failed to access \"/\S{0,40}munge",
        "ssh_auth", Grade.LIKELY),
    # Connection to node03 closed by remote host.
    row(r"^\W{0,10}Connection to (?P<node>[A-Za-z0-9][\w.-]{0,252}) closed by remote host", "node_failed", Grade.ECHO,
        "rank_crashed", tag="gone"),
)  # fmt: skip
