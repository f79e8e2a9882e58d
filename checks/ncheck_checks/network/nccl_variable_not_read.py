"""Nothing reads a variable of NCCL that is set

## What it finds
Variables of NCCL in the environment or in nccl.conf that nothing reads: names with a slip (NCCL_IB_HCAS,
NCCL_DISABLE_IB), which no release has, and, as information, names that the NCCL which the job loads does not read yet
or no longer, and NCCL_TIMEOUT. Names that are like no other may belong to a plug-in or to a private build, and are not
reported; nor is anything where the job loads RCCL, or a release that is newer than the list of names. With a network
plug-in, which may read names of other releases, only slips are reported.

## Why it matters
The setting has no effect, and nothing says so: NCCL ignores a name that it does not know.

## What to type
Give the variable its right name where it is set, as in `sudo sed -i 's/^NCCL_IB_HCAS=/NCCL_IB_HCA=/' /etc/nccl.conf`.
`NCCL_DEBUG=INFO` prints each variable that NCCL has read.
"""

from __future__ import annotations

from collections.abc import Iterator

from ncheck import NodeView, NotApplicable, Problem, Severity, node_check
from ncheck.facts.environment import EnvironmentFacts
from ncheck.facts.nccl import LoadedNcclFacts
from ncheck.facts.net_plugin import NetPluginFacts
from ncheck.nccl.settings import setting_at, settings_of
from ncheck.nccl.variables import OF_NCCL, not_read


@node_check("NC344", Severity.WARNING, EnvironmentFacts, LoadedNcclFacts, also=(NetPluginFacts,))
def nccl_variable_not_read(node: NodeView) -> Iterator[Problem | NotApplicable]:
    environment, nccl, plug_in = node[EnvironmentFacts], node[LoadedNcclFacts], node.maybe(NetPluginFacts)
    if nccl.library != "NCCL":
        yield NotApplicable(f"the job loads {nccl.library}, whose variables are not listed here")
        return
    own = {name: value for name, value in environment.variables.items() if name.startswith(OF_NCCL)}
    settings = {name: setting_at(environment, name, value) for name, value in own.items()}
    settings |= settings_of(environment, nccl)
    own_names_only = isinstance(plug_in, NetPluginFacts) and plug_in.plugin is None
    for found in not_read(sorted(settings), nccl.version):
        if not found.mistaken and not own_names_only:
            continue
        setting = settings[found.name]
        fix = setting.renamed(found.nearest) if found.nearest and found.nearest not in settings else setting.set_to("")
        yield Problem(
            f"{setting.described} has no effect: {found.why}", fix.line, look=fix.look,
            summary=f"{found.name} has no effect", severity=None if found.mistaken else Severity.INFO,
        )  # fmt: skip
