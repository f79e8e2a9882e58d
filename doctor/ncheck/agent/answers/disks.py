"""The state of the node's disks and RAID arrays, as the kernel shows it to any user."""

from ncheck.agent.files import line_of, matching, need_sysfs, number_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional

NVME = "/sys/class/nvme"
BLOCKS = "/sys/block"
_SENSORS = ("/hwmon*", "/device/hwmon/hwmon*")  # since Linux 5.11, and before
_MOST = 512  # of each sort
_RUNS = "running"

READS = (
    NVME + "/nvme*/state, and temp1_{alarm,input,crit} of its sensor",
    BLOCKS + "/sd*/{removable,device/state}, " + BLOCKS + "/md*/md/{level,array_state,degraded,sync_action}",
    "of a disk that does not run, whether another path leads to it: holders/*/{dm/uuid,slaves/*/device/state}",
)


def answer(sources: object, arguments: object, timeout: float) -> "Dict[str, Any]":
    """Return {"states": {disk: state}, "paths": [disk], "hot": {disk: {...}}, "arrays": {array: {...}}}.

    Only a drive that says that it is too hot is asked how hot: each question to a drive is a command that it must run.
    """
    need_sysfs()
    drives = matching(NVME + "/nvme*")[:_MOST]
    disks = [folder for folder in matching(BLOCKS + "/sd*")[:_MOST] if number_in(folder + "/removable") != 1]
    states = {_name(folder): line_of(folder + "/state") for folder in drives}
    states.update((_name(folder), line_of(folder + "/device/state")) for folder in disks)
    states = {name: state for name, state in states.items() if state}
    paths = [_name(folder) for folder in disks if states.get(_name(folder), _RUNS) != _RUNS and _other_path(folder)]
    arrays = {folder.split("/")[-2]: _array(folder) for folder in matching(BLOCKS + "/md*/md")[:_MOST]}
    live = [folder for folder in drives if states.get(_name(folder)) == "live"]
    sensors = {_name(folder): sensor for folder in live for where in _SENSORS for sensor in matching(folder + where)}
    hot = {name: _heat(sensor) for name, sensor in sensors.items() if number_in(sensor + "/temp1_alarm")}
    return {"states": states, "paths": paths, "hot": hot, "arrays": arrays}


def _name(folder: str) -> str:
    return folder.rpartition("/")[2]


def _other_path(folder: str) -> bool:
    """Return whether the disk is one of several paths to the same data (multipath), of which another runs."""
    holders = [path[: -len("/dm/uuid")] for path in matching(folder + "/holders/*/dm/uuid")]
    several = [holder for holder in holders if (line_of(holder + "/dm/uuid") or "").startswith("mpath-")]
    return any(line_of(path) == _RUNS for holder in several for path in matching(holder + "/slaves/*/device/state"))


def _heat(sensor: str) -> "Dict[str, Optional[int]]":
    return {name: number_in(sensor + "/temp1_" + file) for name, file in (("now", "input"), ("critical", "crit"))}


def _array(folder: str) -> "Dict[str, object]":
    texts = {name: line_of(folder + "/" + name) or "" for name in ("level", "array_state", "sync_action")}
    return dict(texts, degraded=number_in(folder + "/degraded"))
