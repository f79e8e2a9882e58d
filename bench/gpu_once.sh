#!/bin/sh
# All that a machine with a GPU can tell in one call of at most ten minutes; what it prints is in the folder $OUT.
#
#     OUT=folder [SIZES=8,1M,64M] sh bench/gpu_once.sh [ncheck.pyz]
#
# It needs python3, this folder and dist/ncheck.pyz (make pyz, on any machine): no venv, network, ssh or root. Torch is
# used if it is there, py-spy from a wheel beside the single file or from PATH. Read ncheck.txt first: exit codes,
# seconds, two ranks of NCCL; then gpu.md ("differs"), triage.txt, and rec.tgz, the recordings.
set -u
here=$(cd "$(dirname "$0")" && pwd)
ncheck=${1:-$here/../dist/ncheck.pyz}
python=${PYTHON:-$(command -v python3)}
[ -e "$ncheck" ] || { echo "$ncheck is not here; type: make pyz" >&2; exit 2; }
: "${OUT:?name a folder for the results: OUT=folder}"
mkdir -p "$OUT"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PYTHONUNBUFFERED=1 PYTHONPATH="$ncheck${PYTHONPATH:+:$PYTHONPATH}"
export TORCH_FR_BUFFER_SIZE=2000 TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1
export TORCH_NCCL_DEBUG_INFO_TEMP_FILE="$work/fr" TORCH_NCCL_DEBUG_INFO_PIPE_FILE="$work/fr" TORCH_FR_DUMP_TEMP_FILE="$work/fr"
for wheel in "$(dirname "$ncheck")"/py_spy*.whl; do
  [ -e "$wheel" ] && "$python" -m pip install -q --no-index --no-deps --target "$work/spy" "$wheel"
done
export PATH="$work/spy/bin:$PATH"

n() { # n SECONDS ARGUMENTS: ncheck, with its exit code and how long it took
  limit=$1; shift
  echo "== ncheck $*"
  began=$(date +%s)
  timeout -k 5 "$limit" "$python" -m ncheck "$@" --config none
  echo "rc=$? after $(($(date +%s) - began)) s"
}

{
  nvidia-smi; nvidia-smi topo -m; nvidia-smi nvlink -s
  ls -l /dev/nvidia* /proc/driver/nvidia/gpus/*; cat /proc/driver/nvidia/version
  ldconfig -p | grep -E 'libcuda|nvidia-ml|nccl|cublas'
  ip -br a; df -h /dev/shm; nproc; command -v ip gcc py-spy cuda-gdb; dmesg | grep -iE 'nvrm|xid' | tail -9
} >"$OUT/env.txt" 2>&1
nvidia-smi -q -x >"$OUT/smi.xml" 2>&1

# Two agents cannot meet over lo alone: only then, and only where root may, a pair of interfaces is made.
if command -v ip >/dev/null && ! ip -br a | grep -qv '^lo '; then
  ip link add eth0 type veth peer name eth1 && ip addr add 10.9.9.1/24 dev eth0 &&
    ip link set eth0 up && ip link set eth1 up
fi >>"$OUT/env.txt" 2>&1

{
  n 45 local -v --python "$python" --record "$work/r1"
  n 90 probe -v --python "$python" --gpu-test quick --sizes 1M --record "$work/r2"
  n 80 probe -v -H n1,n2 --rsh 'env NCCL_HOSTID={node}' --python "$python" --force --mesh none \
    --sizes "${SIZES:-8,1M,64M}" --op moe,broadcast,send-recv --repeats 3 --record "$work/r3"
} >"$OUT/ncheck.txt" 2>&1
"$python" "$here/gpu.py" --ncheck "$ncheck" --out "$OUT/gpu.md" --minutes 3 --only machine,facts,load,alone \
  >"$OUT/gpu.log" 2>&1

if "$python" -c 'import torch, sys; torch.cuda.is_available() or sys.exit("torch sees no GPU")' 2>"$OUT/torch.txt"; then
  two="-m torch.distributed.run --standalone --nproc_per_node 2"
  # shellcheck disable=SC2086  words, on purpose
  "$python" $two "$here/gpu.py" --part stuck >"$OUT/stuck.log" 2>&1 &
  job=$!
  sleep 28
  {
    n 45 triage --job $job --dump --ras --save "$OUT/hang.zip"
    kill $job; wait $job
    # shellcheck disable=SC2086,SC2016
    timeout -k 5 50 "$python" $two --no-python sh -c \
      'exec env NCCL_HOSTID="rank $RANK" "$@"' sh "$python" -m ncheck.hook --probe quick "$here/gpu.py" --part allreduce 1 64
    "$python" "$here/gpu.py" --ncheck "$ncheck" --out "$work/hang.md" --minutes .9 --only hang
    cat "$work/hang.md"; nvidia-smi
  } >"$OUT/triage.txt" 2>&1
fi
tar czf "$OUT/rec.tgz" -C "$work" $(cd "$work" && ls -d r1 r2 r3 2>/dev/null)
