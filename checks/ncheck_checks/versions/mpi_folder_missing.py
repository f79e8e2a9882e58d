"""A variable of Open MPI names a folder that does not exist

## What it finds
Nodes with an MPI whose logins set OPAL_PREFIX, OPAL_LIBDIR, OPAL_PKGLIBDIR or OPAL_DESTDIR to a folder that is not
there: an installation that was moved or removed, or a file system that is not mounted.

## Why it matters
Open MPI looks there for its own parts in place of the folder that it was built for. mpirun then does not even know its
options ('mpirun: Error: unknown option "--version"'), and its daemon on that node ends as it starts.

## What to type
Remove the line of the start-up file that sets the variable, or mount the file system that has the folder:
`grep -snE 'OPAL_[A-Z]+=' ~/.bashrc ~/.profile /etc/environment /etc/profile.d/*`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.mpi import MPI_FAILS
from ncheck.facts.mpi_daemon import MpiDaemonFacts
from ncheck.login_variables import set_at, to_remove


@node_check("NC238", Severity.ERROR, EnvironmentFacts, MpiDaemonFacts, explains=MPI_FAILS)
def mpi_folder_missing(node: NodeView) -> Iterator[Problem | NotApplicable]:
    environment, mpi = node[EnvironmentFacts], node[MpiDaemonFacts]
    if mpi.starter is None and not mpi.daemons:
        yield NotApplicable("no MPI was found")
        return
    for name in environment.missing_files:
        if name.startswith("OPAL_"):
            fix = to_remove(environment, name)
            value = environment.variables.get(name, "")
            message = f"{name}={value}: there is no such folder, and Open MPI does not start"
            yield Problem(message, fix.line, set_at(environment.start_up.get(name, ())), look=fix.look)
