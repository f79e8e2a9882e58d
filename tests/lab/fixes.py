"""Which fixes are proved: typed in the lab, after which the same command is green; and why the others are not.

Every check whose own tests have a fix is in one of the two tables: tests/checks/test_all_checks.py holds that.
"""

from __future__ import annotations

from collections.abc import Mapping

from .command import Run
from .hosts import Lab

# The file whose test types it.
TYPED: Mapping[str, str] = {
    "NC111": "test_unreached.py",
    "NC120": "test_ways_in.py",
    "NC134": "test_launcher_ssh.py",
    "NC209": "test_daemons.py",
    **dict.fromkeys(
        (
            "NC211", "NC212", "NC213", "NC219", "NC228", "NC238", "NC333", "NC335", "NC605", "NC608", "NC615", "NC616",
            "NC632",
        ),
        "test_limits.py",
    ),
    "NC327": "test_fast_network.py",
    "NC337": "test_nccl_pick.py",
    **dict.fromkeys(
        ("NC339", "NC341", "NC350", "NC352", "NC353", "NC355", "NC358", "NC371", "NC372"), "test_network.py"
    ),
    **dict.fromkeys(("NC607", "NC610"), "test_sick.py"),
}  # fmt: skip

_FETCHES = "it fetches a package from an index, and the lab reaches none"
_HARDWARE = "it needs the hardware, or its driver"
_SYSTEMD = "no systemd runs in the lab"
_KERNEL = "it changes the kernel of the machine that the tests run on"
_SAME_LINE = "a line of a start-up file or of nccl.conf, edited as for NC219 and NC337, which are typed"
_BY_HAND = "typed by hand on hosts of the lab, where the next run was clean of it; no test does yet"
_PERSON = "a person chooses: it leaves something out, or asks for a password"

NOT_TYPED: Mapping[str, str] = {
    **dict.fromkeys(
        ("NC125", "NC201", "NC204", "NC205", "NC206", "NC222", "NC408", "NC907"), _FETCHES
    ),
    **dict.fromkeys(
        (
            "NC401", "NC410", "NC433", "NC436", "NC506", "NC520", "NC521", "NC522", "NC525", "NC526", "NC533", "NC534",
            "NC538", "NC540", "NC624", "NC721",
        ), _HARDWARE
    ),
    **dict.fromkeys(("NC103", "NC115", "NC536", "NC537", "NC601", "NC603"), _SYSTEMD),
    **dict.fromkeys(("NC354", "NC362"), _KERNEL),
    **dict.fromkeys(
        ("NC208", "NC239", "NC304", "NC307", "NC320", "NC321", "NC322", "NC323", "NC324", "NC325", "NC332", "NC334",
         "NC336", "NC342", "NC344", "NC345", "NC417", "NC420", "NC422", "NC626"), _SAME_LINE
    ),
    **dict.fromkeys(
        ("NC003", "NC004", "NC101", "NC119", "NC121", "NC122", "NC123", "NC131", "NC132", "NC229"), _PERSON
    ),
    **dict.fromkeys(("NC117", "NC133", "NC309", "NC331", "NC363"), _BY_HAND),
    "NC236": "it needs a network plug-in, and the loader of a whole system",
    "NC314": "the MTU of one end is set as for NC350, which is typed",
    "NC329": "the faults of the lab have no link or no card: nothing to type",
    "NC351": "the cards of the lab have no duplex",
    "NC602": "locked memory is judged beside an InfiniBand port",
    "NC604": "the size of /dev/shm is judged on hosts with GPUs of their own",
    **dict.fromkeys(("NC613", "NC614"), "no server of a shared file system is in the lab"),
    "NC619": "the limit is a control group's of this machine",
}  # fmt: skip


def typed_in(file: str) -> set[str]:
    """Return the codes whose fix a file's tests type."""
    return {code for code, where in TYPED.items() if where == file}


def type_fixes(lab: Lab, run: Run, codes: set[str]) -> None:
    """Type each fix of these codes on the nodes of its finding, in a shell of root's. Each code has one there."""
    typed = set()
    for finding in run.report["findings"]:
        if finding["code"] in codes and finding["kind"] == "fix" and not finding["where"]:
            typed.add(finding["code"])
            for node in lab.nodes:
                if node.name in finding["nodes"]:
                    node.sh("export HOME=/root; " + finding["fix"].replace("sudo ", ""))
    assert typed == codes
