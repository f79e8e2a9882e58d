"""What a node shows of the job's file systems: a home folder on NFS that answers."""

from __future__ import annotations

from ncheck.facts.storage import STORAGE
from ncheck.facts.storage_probe import STORAGE_PROBE
from ncheck.model.evidence import JsonValue, Note, Reply, Status


def storage_replies() -> dict[str, Reply | Note]:
    """Return the folders and the mounts, by source key."""
    mount: dict[str, JsonValue] = {
        "point": "/home", "type": "nfs4", "source": "10.20.0.2:/export/home", "root": "/", "options": "rw,relatime",
        "super_options": "rw,vers=4.2,rsize=1048576,wsize=1048576,hard,proto=tcp,local_lock=none", "network": True,
    }  # fmt: skip
    state: JsonValue = {
        "error": "", "real": "/home/train", "exists": True, "readable": True, "writable": True,
        "size": 100000000000000, "free": 45811200000000, "files_free": None, "inode": 1307, "changed": 1772438400,
    }  # fmt: skip
    answer: JsonValue = {
        "folders": [{"path": "/home/train", "named_by": "home", "on": mount, "state": state}],
        "mounts": [{**mount, "state": {"error": ""}}],
        "forced": [], "root": False,
    }  # fmt: skip
    return {
        STORAGE.key: Reply(Status.OK, value=answer, seconds=0.01),
        STORAGE_PROBE.key: Note("no --storage-probe"),
    }
