"""CUDA, the NVIDIA driver and PCIe: errors as NCCL, torch, nccl-tests and the kernel print them."""

from __future__ import annotations

import re

from ncheck.expression import expression
from ncheck.parse.kernel_lines import PCIE_UNCORRECTED
from ncheck.parse.xids import FATAL, HARMLESS
from ncheck.triage.certainty import Grade
from ncheck.triage.signature import LineClue, Signature, row

_SECONDARY = 45  # "preemptive cleanup, due to previous errors"


def _xid(match: re.Match[str]) -> LineClue | None:
    number = int(match["previous"] or match["number"])
    if number in HARMLESS or number == _SECONDARY:
        return None
    if match["links"]:  # NVLink may recover
        return LineClue("gpu_fault", Grade.LIKELY, ("fabric_manager",), passing=True, look="sudo journalctl -k -g Xid")
    if number in FATAL:
        return LineClue("gpu_fault", Grade.CERTAIN, ("fabric_manager",), look="sudo journalctl -k -g Xid")
    return LineClue("rank_crashed", Grade.POSSIBLE, ("gpu_fault", "software_bug"), look="sudo journalctl -k -g Xid")


_MEMORY = frozenset({"memory"})

SIGNATURES = (
    # NCCL WARN Cuda failure 2 'out of memory'
    row(r"(?:Cuda|HIP) failure:? (?:\d+ )?'out of memory'|CUDA out of memory|CUDA error: out of memory|"
        r"OutOfMemoryError: CUDA|"
        r"CUDA (?:runtime|driver) (?:api|API) error (?:\w{1,40} )?[(\"]?2\b|CUDA driver error: out of memory|cuda"
        r" runtime error \(2\)|cudaMalloc (?:retry )?failed: out of memory|"
        r"cupy\.\S{0,40}OutOfMemoryError",
        "gpu_oom", Grade.CERTAIN, "rank_crashed", tag="memory"),
    # CUDA out of memory. ... Process 28114 has 71.90 GiB memory in use. Including non-PyTorch memory, this process has
    # In a container torch does not know itself: "Process 28114 has" is all that it prints of its own memory.
    Signature(expression(r"out of memory(?=.{0,500}this process has).{0,300}"
                         r" Process (?P<pid>\d{1,9}) has (?:[2-9]|\d{2,4})\.\d+ GiB memory"),
              LineClue("gpu_oom", Grade.CERTAIN, ("gpu_mapping",), explains=_MEMORY,
                       meaning="a GPU's memory is full, and another process uses it too",
                       look="ps -o user,lstart,args -p {pid}")),
    # NCCL WARN Failed to CUDA calloc 6291456 bytes
    row(r"Failed to CUDA calloc|cudaErrorMemoryAllocation|\bCUDA allocation failed|CUBLAS_STATUS_ALLOC_FAILED|"
        r"CUDA_ERROR_OUT_OF_MEMORY",
        "gpu_oom", Grade.LIKELY, "rank_crashed", tag="memory"),
    # XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes.
    row(r"RESOURCE_EXHAUSTED: (?:Out of memory|Failed to allocate)|torch\.(?:cuda\.)?OutOfMemoryError",
        "gpu_oom", Grade.CERTAIN, "rank_crashed", tag="memory"),
    # NCCL WARN Cuda failure 711 'peer mapping resources exhausted'
    row(r"peer mapping resources exhausted|cudaErrorTooManyPeers", "peer_limit", Grade.CERTAIN, explains=_MEMORY),
    # nThread 1 nGpus 16 minBytes 8 maxBytes 134217728 step: 2(factor)
    row(r"nThread \d+ nGpus (?:9|[1-9]\d) ", "peer_limit", Grade.LIKELY, "gpu_oom", context=True, explains=_MEMORY),
    # CUDA error at bandwidthTest.cu:256 code=802(cudaErrorSystemNotReady) "cudaSetDevice(currentDevice)"
    row(r"system not yet initialized|cudaErrorSystemNotReady|CUDA_ERROR_SYSTEM_NOT_READY|(?:returned|code=|error|"
    r"failure|status) ?\(?802\b",
        "fabric_manager", Grade.CERTAIN),
    # NCCL WARN MNNVL (cliqueSize 8) is available but not working on this system. Check the IMEX configuration
    row(r"MNNVL .*available but not (?:working|supported)", "fabric_manager", Grade.LIKELY, "nvls_failure",
        fix="sudo systemctl restart nvidia-imex", look="nvidia-imex-ctl -N"),
    # nv-fabricmanager: Failed to start NVIDIA fabric manager service
    row(r"Failed to start (?:the )?NVIDIA [Ff]abric ?[Mm]anager|nvidia-fabricmanager\.service: (?:Failed|Main process "
        r"exited)|fabric manager .{0,200}version .{0,200}(?:don't|doesn't|does not|not) match",
        "fabric_manager", Grade.CERTAIN),
    # RuntimeError: CUDA driver version is insufficient for CUDA runtime version
    row(r"CUDA driver version is insufficient|cudaErrorInsufficientDriver|NVIDIA driver on your system is too old",
        "driver_insufficient", Grade.CERTAIN, "version_mismatch"),
    # nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.4, please update your driver
    row(r"unsatisfied condition: cuda|compiled with an unsupported toolchain|cudaErrorUnsupportedPtxVersion",
        "driver_insufficient", Grade.CERTAIN, "version_mismatch"),
    # CUDA error: forward compatibility was attempted on non supported HW
    row(r"system has unsupported display driver|cudaErrorSystemDriverMismatch|CUDA_ERROR_SYSTEM_DRIVER_MISMATCH|"
        r"forward compatibility was attempted on non supported HW|cudaErrorCompatNotSupportedOnDevice",
        "driver_insufficient", Grade.CERTAIN, "version_mismatch"),
    # Failed to initialize NVML: Driver/library version mismatch
    row(r"Driver/library version mismatch|NVRM: API mismatch", "driver_insufficient", Grade.CERTAIN, "version_mismatch",
        meaning="the driver's kernel module and libraries have different versions: it was updated and not reloaded",
        look="cat /proc/driver/nvidia/version"),
    # RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU
    row(r"Found no NVIDIA driver|couldn't communicate with the NVIDIA driver|libcuda\.so\.1: cannot open shared object",
        "driver_insufficient", Grade.CERTAIN, "container_isolation"),
    # NCCL WARN Failed to find CUDA library libcuda.so (NCCL_CUDA_PATH='') :
    row(r"Failed to find CUDA library libcuda", "driver_insufficient", Grade.LIKELY, "container_isolation"),
    # NCCL WARN Cuda failure 205 'mapping of buffer object failed'
    row(r"mapping of buffer object failed", "p2p_unsupported", Grade.POSSIBLE, "p2p_acs_iommu", "software_bug"),
    # NCCL WARN Cuda failure 100 'no CUDA-capable device is detected'
    row(r"no CUDA-capable device is detected|cudaErrorNoDevice|No CUDA GPUs are available", "gpu_mapping",
        Grade.LIKELY, "driver_insufficient", "container_isolation", "gpu_fault",
        meaning="the rank sees no GPU: none is assigned to it, or the driver is not running"),
    # NCCL WARN Cuda failure 'API call is not supported in the installed CUDA driver'
    row(r"not supported in the installed CUDA driver|cudaErrorCallRequiresNewerDriver", "driver_insufficient",
        Grade.CERTAIN, "version_mismatch"),
    # NCCL WARN Cuda failure 98 'invalid device function'
    row(r"invalid device function|no kernel image is available|cudaErrorNoKernelImageForDevice|hipErrorNoBinaryForGpu|"
        r"is not compatible with the current PyTorch installation",
        "arch_unsupported", Grade.CERTAIN, "driver_insufficient"),
    # RuntimeError: CUDA error: invalid device ordinal
    row(r"^(?!.{0,300}\bp2p\.cc:).{0,2000}(?:invalid device ordinal|cudaErrorInvalidDevice\b|"
        r"device >= 0 && device < num_gpus)", "gpu_mapping", Grade.CERTAIN),
    # transport/p2p.cc:275 NCCL WARN Cuda failure 101 'invalid device ordinal'
    row(r"\bp2p\.cc:\d+ .{0,80}invalid device ordinal", "container_isolation", Grade.POSSIBLE, "gpu_mapping",
        "software_bug", "fabric_manager", meaning="a rank cannot open the GPU memory of another rank of its node: each"
        " container sees its own GPU only"),
    # CUDA error: all CUDA-capable devices are busy or unavailable
    row(r"busy or unavailable|cudaErrorDevicesUnavailable", "gpu_mapping", Grade.POSSIBLE, "gpu_fault",
        look="nvidia-smi --query-gpu=index,compute_mode --format=csv"),
    # NCCL WARN Cuda failure 217 'peer access is not supported between these two devices'
    row(r"peer access is not supported between these two devices|cudaErrorPeerAccessUnsupported", "p2p_unsupported",
        Grade.CERTAIN),
    # Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 401
    row(r"Failed to bind NVLink SHARP(?!.*[Pp]roceeding without)", "nvls_failure", Grade.CERTAIN, "fabric_manager",
        tag="nvls"),
    # NCCL INFO Proceeding without NVLS support.
    row(r"[Pp]roceeding without NVLS support", "", context=True, explains=frozenset({"nvls"})),
    # transport/nvls.cc:244 NCCL WARN Cuda failure 1 'invalid argument'
    row(r"nvls\.cc:\d+ .*Cuda failure", "nvls_failure", Grade.POSSIBLE, "fabric_manager", tag="nvls"),
    # NCCL WARN Cuda failure 401 'the operation cannot be performed in the present state'
    row(r"operation cannot be performed in the present state", "nvls_failure", Grade.LIKELY, "fabric_manager"),
    # RuntimeError: CUDA error: uncorrectable ECC error encountered
    row(r"(?:uncorrectable|pending) ECC error|uncorrectable/|ECC error encountered|cudaErrorECCUncorrectable",
        "gpu_fault", Grade.CERTAIN),
    # CUDA error: uncorrectable NVLink error detected during the execution
    row(r"uncorrectable NVLink error|cudaErrorNvlinkUncorrectable|hardware stack error|"
        r"unrecoverable hardware error|hipErrorECCNotCorrectable", "gpu_fault", Grade.CERTAIN),
    # NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
    # NVRM: Xid (PCI:0000:dc:00): 45, pid=77, name=python3, Ch 00000001 caused by previous Xid 149
    # NVRM: Xid (PCI:0018:01:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008)
    Signature(expression(r"NVRM: Xid \([^)]*\): (?P<number>\d{1,4})(?:.{0,200}(?:caused by previous Xid "
                         r"(?P<previous>\d{1,4})|(?P<links>\bNonfatal)))?"), _xid),
    # NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.
    row(r"fallen off the bus|GPU is lost\.|SXid \([^)]*\): \d+, Fatal", "gpu_fault", Grade.CERTAIN,
        look="sudo journalctl -k -g NVRM"),
    # Unable to determine the device handle for GPU 0000:3B:00.0: Unknown Error
    row(r"Unable to determine the device handle for GPU", "gpu_fault", Grade.CERTAIN,
        look="sudo journalctl -k -g NVRM"),
    # NCCL WARN Cuda failure 719 'unspecified launch failure'
    row(r"unspecified launch failure|cudaErrorLaunchFailure", "gpu_fault", Grade.POSSIBLE, "rank_crashed",
        "software_bug"),
    # torch.AcceleratorError: CUDA error: the launch timed out and was terminated
    row(r"the launch timed out and was terminated|(?:cudaErrorLaunch|CUDA_ERROR_LAUNCH_)(?:Timeout|TIMEOUT)\b",
        "rank_crashed", Grade.POSSIBLE, "gpu_fault", "software_bug",
        meaning="the driver ended a kernel that ran too long, as it does on a GPU with a display",
        look="sudo journalctl -k -g Xid"),
    # torch.AcceleratorError: CUDA error: Invalid access of peer GPU memory over nvlink or a hardware error
    row(r"Invalid access of peer GPU memory over nvlink or a hardware error|cudaErrorContained\b|CUDA_ERROR_CONTAINED",
        "gpu_fault", Grade.POSSIBLE, "fabric_manager", "rank_crashed", "software_bug",
        meaning="a GPU could not access the memory of another one: NVLink, a fault of a GPU, or a wrong address",
        look="sudo journalctl -k -g Xid"),
    # torch.AcceleratorError: CUDA error: an async error has occured in external entity outside of CUDA
    row(r"async error has occur+ed in external entity outside of CUDA|cudaErrorExternalDevice\b|"
        r"CUDA_ERROR_EXTERNAL_DEVICE", "gpudirect_rdma", Grade.POSSIBLE, "gpu_fault", "ib_fabric",
        meaning="a device other than the GPU failed, such as an HCA that the GPU waited for",
        look="sudo journalctl -k -p err"),
    # NCCL WARN Cuda failure 400 'invalid resource handle'
    row(r"(?:[Cc]uda failure (?:400 )?'|CUDA (?:driver )?error: )invalid resource handle|"
        r"cudaErrorInvalidResourceHandle|"
        r"CUDA_ERROR_INVALID_HANDLE", "fabric_manager", Grade.POSSIBLE, "software_bug", "gpu_mapping",
        meaning="a GPU cannot open the memory of another one: between nodes, IMEX must run in one NVLink domain",
        fix="sudo systemctl restart nvidia-imex", look="nvidia-imex-ctl -N"),
    # transport/p2p.cc:272 NCCL WARN ncclP2pImportShareableBuffer: cuMemImportFromShareableHandle failed: error 400
    row(r"(?:[Ii]mport(?:From)?Shareable(?:Handle|Buffer)|ExportToShareableHandle).{0,200}"
        r"(?:\b[Ff]ail|\b[Ee]rror|CUDA_ERROR_(?!NOT_SUPPORTED)|invalid)", "fabric_manager", Grade.LIKELY,
        "software_bug",
        "container_isolation",
        meaning="memory of a GPU cannot be shared with another node: IMEX, or nodes of two NVLink domains",
        fix="sudo systemctl restart nvidia-imex", look="nvidia-imex-ctl -N"),
    # RuntimeError: CUDA error: an illegal memory access was encountered
    row(r"illegal memory access was encountered|device-side assert triggered|misaligned address", "rank_crashed",
        Grade.LIKELY, "software_bug", "gpu_fault", look="export CUDA_LAUNCH_BLOCKING=1"),
    # stderr: nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared
    row(r"could not select device driver .{0,20} with capabilities: \[\[gpu\]\]|nvidia-container-cli(?:\.real)?: "
        r"(?!requirement error).{0,60}error", "container_start", Grade.LIKELY, "driver_insufficient",
        meaning="the container cannot start: NVIDIA's container toolkit finds no working driver",
        look="nvidia-container-cli info"),
    # NCCL WARN Cuda failure 999 'unknown error'
    row(r"(?:Cuda failure (?:\d+ )?'|AcceleratorError: CUDA error: )(?:unknown error|initialization error)",
        "driver_insufficient", Grade.POSSIBLE,
        "gpu_fault", "software_bug"),
    # Verification error @ element 1: val = 0.000000, ref = 4.000000
    row(r"Verification error @ element", "p2p_acs_iommu", Grade.LIKELY, "p2p_unsupported", "gpu_fault"),
    #     ACSCtl: SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-
    row(r"ACSCtl:.*ReqRedir\+", "p2p_acs_iommu", Grade.POSSIBLE, "gpudirect_rdma", passing=True),
    # kernel: DMAR: [DMA Read] Request device [3b:00.0] fault addr 0x7f000000 [fault reason 06]
    row(r"DMAR: .{0,300}fault addr|AMD-Vi: .{0,300}IO_PAGE_FAULT", "p2p_acs_iommu", Grade.LIKELY, "gpudirect_rdma",
        look="cat /proc/cmdline"),
    # NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x24:0x65:1423)
    row(rf"[Rr]mInitAdapter failed|GPU requires reset|{PCIE_UNCORRECTED}|"
        r"AER: .{0,80}Uncorrect(?:ed|able) \(Fatal\)|Reboot the system to recover this GPU|GPU recovery action changed|"
        r"krcWatchdog.{0,60}GPU|[Nn]vidia-smi has failed because it couldn't communicate",
        "gpu_fault", Grade.LIKELY, "driver_insufficient", look="sudo journalctl -k -g NVRM"),
    # Failed to initialize NVML: Unknown Error
    row(r"Failed to initialize NVML: (?!Driver/library)|No devices were found\s*$|NVML: Driver Not Loaded",
        "driver_insufficient", Grade.POSSIBLE, "container_isolation", "gpu_fault",
        meaning="the driver cannot be used there: not running, or the container lost its devices"),
    # RuntimeError: cuMulticastCreate failed: CUDA_ERROR_NOT_SUPPORTED
    row(r"cuMulticast(?:Create|AddDevice|Bind\w{1,8}|GetGranularity)\S{0,60}.{0,100}(?:fail|error|ERROR|not supported)|"
        r"[Mm]ulticast (?:object|memory|binding).{0,60}(?:failed|error)|NVLS .{0,60}(?:failed|error|timed out)|"
        r"NVLink SHARP .{0,60}(?:failed|error)",
        "nvls_failure", Grade.LIKELY, "fabric_manager", "driver_insufficient", tag="nvls"),
    # NCCL WARN Cuda failure 700 'something that no other signature knows'
    row(r"NCCL WARN (?:Cuda|HIP) failure\b", "", Grade.ECHO, tag="cuda", fallback=True),
    # NVRM: nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062) returned from
    row(r"NV_ERR_(?:RESET_REQUIRED|GPU_IS_LOST|GPU_NOT_FULL_POWER|ECC_ERROR|INVALID_GPU_ERROR)|"
        r"NVRM: .{0,120}(?:[Tt]imeout .{0,40}(?:GSP|RPC)|GSP .{0,60}(?:heartbeat|timed? ?out|failed))",
        "gpu_fault", Grade.CERTAIN, "driver_insufficient", "fabric_manager", look="sudo journalctl -k -g NVRM"),
    # ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0.
    row(r"only supports? (?:on )?(?:Ampere|Hopper|Turing|Volta) GPUs|only supported on GPUs with compute capability|"
        r"[Rr]equires (?:a GPU with |a device with )?(?:CUDA )?compute capability", "arch_unsupported", Grade.LIKELY,
        "rank_crashed", passing=True),
    # kernel: pcieport 0000:40:01.1: pciehp: Slot(3): Link Down
    row(r"pciehp: Slot\(\S{1,20}\): (?:Link Down|Card not present)|DPC: containment event", "gpu_fault", Grade.POSSIBLE,
        "node_failed", meaning="a device left the PCIe bus", look="sudo journalctl -k -g pcieport"),
    # kernel: amdgpu 0000:03:00.0: amdgpu: GPU reset begin!
    row(r"amdgpu.{0,120}(?:GPU reset begin|ring \S{1,30} timeout|uncorrectable|GPU hang)|HW Exception by GPU node",
        "gpu_fault", Grade.LIKELY, "software_bug", look="sudo journalctl -k -g amdgpu"),
    # nvcc fatal   : Unsupported gpu architecture 'compute_120'
    row(r"Unsupported gpu architecture '|is not defined for option 'gpu-name'", "arch_unsupported", Grade.LIKELY,
        "version_mismatch", meaning="the CUDA compiler is too old for this GPU, or too new", look="nvcc --version"),
    # RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at "../c10/cuda/CUDACachingAllocator.cpp":838
    row(r"NVML_SUCCESS == r INTERNAL ASSERT FAILED", "gpu_oom", Grade.POSSIBLE, "driver_insufficient"),
    # Memory access fault by GPU node-1 (Agent handle: 0x55d0) on address 0x7f00. Reason: Page not present
    row(r"Memory access fault by GPU node|HSA_STATUS_ERROR_(?:MEMORY|OUT_OF_RES|EXC)\w{1,30}", "rank_crashed",
        Grade.POSSIBLE, "gpu_fault", "software_bug", "gpu_oom", kind="segfault",
        meaning="the program of a rank crashed on its AMD GPU", look="sudo journalctl -k -g amdgpu"),
    # HSA_STATUS_ERROR_HARDWARE_EXCEPTION: An HSAIL operation resulted in a hardware exception.
    row(r"HSA_STATUS_ERROR_HARDWARE_EXCEPTION", "gpu_fault", Grade.LIKELY, "software_bug",
        look="sudo journalctl -k -g amdgpu"),
)  # fmt: skip
