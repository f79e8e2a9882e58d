"""The login shell of a node does not read what mpirun sends it

## What it finds
Nodes whose login shell does not read the line by which Open MPI's mpirun starts its daemon there. mpirun writes this
line for the login shell of the machine on which it is typed, and takes every node's for the same:

- If that shell is sh, dash or ksh, or another one with "sh" in its name, such as fish, the line begins with
  "( test ! -r ./.profile || . ./.profile;". fish does not read this. For bash, zsh, csh and tcsh it does not.
- With --prefix, which the launch plan has where a node does not find the daemon, the line sets PATH in the syntax of
  sh, or of csh if that shell is csh or tcsh. fish reads neither; csh does not read that of sh, nor sh that of csh.

In a Slurm job mpirun does not use ssh, and the check is skipped.

## Why it matters
The shell prints "command substitutions not allowed here" or "Unsupported use of '='", the daemon is not started, and
mpirun waits forever.

## What to type
`chsh -s /bin/bash` on the named nodes gives the user a shell that every launcher works with. fish can still be started
for people: `exec fish` in the last line of ~/.bashrc, behind a test for an interactive shell.
"""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import basename

from ncheck import Cluster, NotApplicable, Problem, Severity, cluster_check
from ncheck.facts.login import ListingFacts
from ncheck.facts.mpi_daemon import MpiDaemonFacts
from ncheck.facts.run import JobFacts
from ncheck.facts.ssh_peers import SshFromHereFacts, launch_origin
from ncheck.mpi import prefix_for, starter_of

# Seen with 4.1.4, whose rsh launcher looks for "bash", "zsh", "csh", "ksh" and "sh" anywhere in the shell's name.
STRANGE = ("fish", "elvish", "xonsh")  # none of its lines is for these
BARE = ("bash", "zsh", "csh")  # for these it sends the daemon's own command and nothing before


@cluster_check("NC229", Severity.ERROR, MpiDaemonFacts, ListingFacts, also=(JobFacts, SshFromHereFacts))
def login_shell_unfit(cluster: Cluster) -> Iterator[Problem | NotApplicable]:
    found, places = cluster.facts(MpiDaemonFacts), cluster.facts(ListingFacts)
    start = starter_of(found)
    if start is None or start.daemon not in ("orted", "prted"):
        yield NotApplicable("only Open MPI's mpirun depends on the login shell")
        return
    if all(place.startswith("SLURM") for listing in places.values() for place in listing.places):
        yield NotApplicable("in a Slurm job, mpirun starts its daemons with srun, not with ssh")
        return
    origin = launch_origin(cluster)
    here = _shell_here(cluster, "" if origin is None else cluster.names[origin])
    prefix = prefix_for(found) is not None or start.mpirun.prefix_by_default
    for node, facts in found.items():
        shell = basename(facts.login_shell)
        if origin is not None and node == cluster.names[origin]:
            yield NotApplicable("mpirun opens no ssh to the machine on which it is typed", (node,))
        elif not shell:
            yield NotApplicable("its login shell is not known", (node,))
        elif trouble := _trouble(shell, here, prefix=prefix):
            yield Problem(
                f"mpirun cannot start its daemon: {trouble}", "chsh -s /bin/bash", nodes=(node,),
                summary=f"mpirun does not work with {shell}",
            )  # fmt: skip


def _shell_here(cluster: Cluster, origin: str) -> str:
    """Return the login shell of the machine on which mpirun is typed: this one, or else that node."""
    known = next((job.local_shell for job in cluster.facts(JobFacts).values()), "")
    daemons = cluster.facts(MpiDaemonFacts)
    return basename(known or (daemons[origin].login_shell if origin in daemons else "")) or "bash"


def _trouble(shell: str, here: str, *, prefix: bool) -> str:
    """Return why a node's shell does not read the line that mpirun sends from a machine with the shell `here`."""
    if shell in STRANGE and (prefix or ("sh" in here and not any(name in here for name in BARE))):
        return f"its login shell, {shell}, does not read the line that mpirun sends"
    if prefix and ("csh" in shell) != ("csh" in here):
        return f"its login shell is {shell}, and mpirun --prefix sends a line for {here}"
    return ""
