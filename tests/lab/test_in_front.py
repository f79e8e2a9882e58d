"""The lines that docs/integrations.md puts in front of a job, typed on the head: the job starts only on good nodes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from . import faults
from .command import built, listing
from .hosts import Lab
from .launching import launched
from .layers import ADA

PAGE = (Path(__file__).parents[2] / "docs" / "integrations.md").read_text(encoding="utf-8")
(SECTION,) = re.findall(r"^## In front of a job\n(.*?)^## ", PAGE, re.DOTALL | re.MULTILINE)
LINES = [line for line in re.findall(r"^ncheck .*$", SECTION, re.MULTILINE) if line.endswith("python train.py")]
SUMMED = "8388608 bytes over 4 ranks"  # two on each of two nodes


@pytest.mark.parametrize("line", LINES, ids=lambda line: " ".join(line.split()[:2]))
def test_the_job_starts_on_good_nodes_alone(lab: Lab, line: str) -> None:
    listing(lab, lab.names[:2], ADA)
    typed = line.replace("ncheck", shlex.join(built()), 1).replace("python train.py", "allreduce")

    done = launched(lab, typed, user=ADA)
    assert (done.exit_code, SUMMED in done.said) == (0, True), done

    faults.firewall(lab.nodes[1], "tcp dport 22 reject with tcp reset")
    refused = launched(lab, typed, user=ADA)
    assert (refused.exit_code, "rank 0" in refused.said) == (1, False), refused
    assert "NC111 connection-refused" in refused.said


def test_the_job_script_of_slurm_starts_the_job_or_names_the_nodes_to_leave_out(lab: Lab) -> None:
    (script,) = re.findall(r"^```sh\n(#!/bin/bash\n#SBATCH .*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    slurm = (
        "export SLURM_JOB_ID=4711 SLURM_JOB_NODELIST='node[01-02]' SLURM_NNODES=2; srun() { echo started \"$@\"; }\n"
    )
    # How fast these hosts are beside other tests is not what the script is about.
    typed = slurm + script.replace("ncheck --slurm", f"{shlex.join(built())} --slurm --probe none")

    done = launched(lab, typed, user=ADA)
    assert (done.exit_code, "started python train.py" in done.said) == (0, True), done

    faults.firewall(lab.nodes[1], "tcp dport 22 reject with tcp reset")
    refused = launched(lab, typed, user=ADA)
    assert (refused.exit_code, "started" in refused.said) == (1, False), refused
    assert launched(lab, "cat bad-nodes.4711", user=ADA).said == "node02\n"


def test_both_lines_of_the_page_are_tried() -> None:
    assert [line.split()[:2] for line in LINES] == [["ncheck", "nodes.txt"], ["ncheck", "launch"]]
