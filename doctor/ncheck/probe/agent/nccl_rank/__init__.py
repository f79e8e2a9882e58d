"""One rank of a collective: a program that drives libnccl.so.2 and libcuda.so.1, with nothing installed but those.

On AMD's GPUs it drives librccl.so.1 and the libamdhip64.so that this brings: never seen on a GPU so far.

It is one text (the head's `rank-program`), started as `PYTHON -B -S -c TEXT`, by the agent or by a launcher such as
mpirun, and it writes nothing anywhere. Its task is JSON in NCHECK_RANK or in its first argument:

{"id": 256 hex digits, "world": ranks in all, "op": "all-reduce" (without it, too) or another of those in layout.py,
 "sizes": [bytes a rank], "repeats": of each size, as far as there is time (without it 5), "in_place": whether each
 is measured in place, too (without it, it is), "seconds": its own deadline, from its start, "library": path of
 libnccl, or a name for the loader, "gpus": [the index of each rank of this node] (without it, as many as there are),
 "rank": int, "local": int (without these from the launcher's variables), "fd": where its lines go (without it
 "ncheck:" and the line go to standard output), "planned": [interfaces and HCA ports], "counters": bool (the first
 rank of a node reports what each moved)}

It writes messages, lines of JSON, each short enough that a pipe never splits it; each has "rank" and "is":

step      {"step": the current step}
library   {"version", "path"}
first     {"seconds": from its start to the end of the first collective}
row       {"size", "in_place", "seconds", "fastest", "slowest", "wrong", "timing": {"warm_ups", "repeats",
          "iterations": of a repeat}}
note      {"words": what was left out}
carried   {"moved": {name: {"sent", "received"}}}, in several lines
failure   {"step", "words", "code": ncclResult_t|null, "late": bool}
held      {"segments": {path: inode}} its segments in /dev/shm, by its own maps; in several lines, and last at its end
removed   {"gone": [paths of those that no longer exist]} or {"words": [for each that it removed]}: at an early end,
          if it has no "fd"
done      {} all is measured

Without an "id" the rank asks NCCL for one: good for a rank alone, or where NCCL_COMM_ID names a meeting place. So it
runs by hand, here two ranks on one GPU, each a node of its own to NCCL, so that all goes over the network:

    python3 -c 'from ncheck.fleet.bootstrap import rank_program; print(rank_program())' > rank.txt
    export NCCL_COMM_ID=127.0.0.1:29500 NCCL_NET=Socket NCCL_SOCKET_IFNAME==lo NCCL_MAX_CTAS=2
    for r in 0 1; do NCCL_HOSTID=$r NCHECK_RANK='{"rank": '$r', "local": '$r', "world": 2, "gpus": [0, 0],
    "sizes": [8, 1048576, 67108864], "seconds": 60}' python3 -B -S -c "$(cat rank.txt)" & done; wait
"""
