"""One GPU tested alone: a program that drives libcuda.so.1, and cuBLAS where the job has it; nothing else is installed.
GPUs of AMD are driven by the libraries of ROCm instead.

It is one text (the head's `gpu-program`), started as `PYTHON -B -S -c TEXT` in the job's environment, where
CUDA_VISIBLE_DEVICES shows it one GPU, or with "peers" all of a node. It writes nothing anywhere. Its task is one line
of JSON on its input:

{"seconds": how long it computes, "deadline": seconds after which it ends by itself, "cpus": [those of the GPU's own
 NUMA node], "blas": [files of cuBLAS or rocBLAS to try],
 "pci": [addresses], "hip" and "compilers": for GPUs of AMD, the files of libamdhip64 and libhiprtc to try,
 "peers": true to measure the copies between all that it sees, and nothing else}

It prints `ncheck:` and JSON, one object a line, each with one of
step       what it does from now on: where it hangs, the last one says where
figures    {name: number}, see FIGURES; those that are had so far are never lost
results    {name: [digest, blocks that computed otherwise]}
notes      why something was not measured
loading    true where it keeps the GPU busy from now on, false where that is over
turn       true where it waits for a line on its input before it copies to and from the host, {"turn": true} to do it or
           false not to; false when it has done it
failure    {"step", "words", "code": CUresult}
pairs      [[from, to, GB/s]]
done       true: all was tested

FIGURES: "fma" TFLOPS of single precision by our own kernel; "bf16" and "fp32" TFLOPS of a matrix product by cuBLAS;
"memory" GB/s read and written by a copy on the device; "to_device" and "to_host" GB/s of a copy from and to pinned
memory; "launch" seconds of an empty kernel; "late_fma" as "fma", at the end, when the GPU is warm.
"""
