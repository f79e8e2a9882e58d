"""mpirun and its daemons, ssh and horovodrun: the line above their long explanations decides."""

from __future__ import annotations

import re

from ncheck.triage.signature import Grade, Reading, Signature, row

_KILLED = Reading("rank_crashed", Grade.LIKELY, meaning="a rank was killed", fix="sudo journalctl -k -g oom")


_ENDED = Reading("", Grade.ECHO, tag="gone")  # SIGABRT and SIGTERM follow the failure of another rank


_DAEMON = r"(?:prted|orted)(?: has detected| was|:)"


SIGNATURES = (
    # bash: orted: command not found
    row(r"(?:orted|prted|hydra_pmi_proxy|hydra_bstrap_proxy)['\"]?: (?:command not found|not found|No such file)",
        "mpi_daemon_missing", Grade.CERTAIN),
    # /opt/ompi/bin/orted: error while loading shared libraries: libopen-rte.so.40: cannot open shared object file
    row(r"(?:orted|prted|hydra_\w+): error while loading shared libraries", "mpi_daemon_missing", Grade.CERTAIN),
    # A daemon (pid 71925) died unexpectedly with status 127 while attempting
    row(r"died unexpectedly with status 127|Daemon exit status: +127|debug1: Exit status 127", "mpi_daemon_missing"),
    # ssh: Could not resolve hostname node01:4: Name or service not known
    row(r"ssh: Could not resolve hostname [\w.-]+:\d+:", "launcher_mismatch", Grade.CERTAIN, "dns_failure",
        meaning="this mpirun reads host:slots as a hostname: it is too old, or of another MPI"),
    # ssh: Could not resolve hostname node07: Name or service not known
    row(r"Could not resolve hostname (?P<name>[A-Za-z0-9][\w.-]*): ", "dns_failure", Grade.CERTAIN, "ssh_auth",
        fix="getent hosts {name}"),
    # socket.gaierror: [Errno -2] Name or service not known
    row(r"Name or service not known|Temporary failure in name resolution|No address associated with hostname",
        "dns_failure", Grade.LIKELY, "rendezvous_misconfig", tag="name", passing=True, fix="getent hosts NODE"),
    # user@node07: Permission denied (publickey,password).
    row(r"Permission denied \((?:publickey|password|gssapi|keyboard|hostbased)|Host key verification failed|"
        r"REMOTE HOST IDENTIFICATION HAS CHANGED|Permission denied, please try again|Too many authentication failures",
        "ssh_auth", Grade.CERTAIN),
    # ssh: connect to host 10.1.0.7 port 2222: Connection refused
    row(r"ssh: connect to host \S+ port \d+: Connection refused|kex_exchange_identification:", "ssh_auth",
        Grade.CERTAIN, "firewall", "container_isolation", meaning="no ssh server answers on that port of the node"),
    # CalledProcessError: Command 'ssh -o PasswordAuthentication=no n2 hostname' returned non-zero exit status 255.
    row(r"Command '\[?'?ssh\b.*returned non-zero exit status|ssh not successful for host", "ssh_auth"),
    # [n2] match_arg (utils/args/args.c:163): unrecognized argument allow-run-as-root
    row(r"unrecognized argument \w|HYDU_parse_array|mpi(?:run|exec): Error: unknown option|Usage: \S*mpiexec \[global|"
        r"(?:mpirun|mpiexec|horovodrun|torchrun): (?:error: )?(?:unrecognized|unknown|invalid) (?:option|argument)|"
        r"(?:MPI|Gloo) support has not been built|"
        r"Unknown option: --?(?:mca|bind-to|map-by|hostfile|allow-run)",
        "launcher_mismatch", Grade.CERTAIN),
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
        meaning="the hosts given to mpirun have fewer slots than the number of ranks"),
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
    Signature(re.compile(r"exited on signal (\d+)|KILLED BY SIGNAL: (?P<other>\d+)"),
              lambda match: _ENDED if (match[1] or match["other"]) in ("6", "15") else _KILLED),
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
)  # fmt: skip
