"""The CUDA driver's API, libcuda.so.1, by ctypes: a context, memory, a stream, events. No toolkit is needed."""

import ctypes
import time

from ncheck.probe.agent.nccl_rank.messages import RankError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Union

    Pointer = ctypes.c_void_p  # of the driver: a stream, an event
    Context = Union[ctypes.c_void_p, ctypes.c_int]  # CUDA's, or the number of a HIP device
    Buffer = ctypes.Array[ctypes.c_char]

CUDA_ERROR_NOT_READY = 600
LIBRARY = "libcuda.so.1"
_SHORT, _LONG = 0.00002, 0.001  # seconds between two looks at an event, at first and later
_NO_DRIVER = "{}: this node has no NVIDIA driver, or the container was not given it"


class Cuda:
    """One device, its primary context current on this thread: that is the one that NCCL uses, too."""

    kind, file = "CUDA", LIBRARY

    def __init__(self) -> None:
        self.library = self.load()
        self.call("cuInit", ctypes.c_uint(0))

    def load(self) -> "ctypes.CDLL":
        try:
            return ctypes.CDLL(LIBRARY)
        except OSError as error:
            raise RankError(_NO_DRIVER.format(error)) from error

    def name(self, name: str) -> str:
        """Return what the library calls this function of CUDA's driver."""
        return name

    def call(self, name: str, *arguments: object) -> None:
        """Call a function of the driver. Raises RankError with the driver's message if it fails or does not exist."""
        name = self.name(name)
        function = getattr(self.library, name, None)
        if function is None:
            raise RankError("{} lacks {}: the driver is too old".format(self.file, name))
        code = function(*arguments)
        if code:
            raise self.failed(name, code)

    def failed(self, name: str, code: int) -> "RankError":
        return RankError("{}: {} ({} error {})".format(name, self.words(code), self.kind, code), driver=code)

    def words(self, code: int) -> str:
        text = ctypes.c_char_p()
        self.library.cuGetErrorString(ctypes.c_int(code), ctypes.byref(text))
        return (text.value or b"unknown error").decode("utf-8", "replace")

    def driver(self) -> str:
        """Return the driver's CUDA version, "12.8"."""
        number = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(number))
        return "{}.{}".format(number.value // 1000, number.value % 1000 // 10)

    def enter(self, index: int) -> "Context":
        """Take a device by its index among those that CUDA_VISIBLE_DEVICES leaves; return its context."""
        count, device, context = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        self.need(index, count.value)
        self.call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(index))
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        return context

    def need(self, index: int, count: int) -> None:
        """Raise RankError where so many devices do not have this index."""
        if not 0 <= index < count:
            raise RankError("a rank wants GPU {}, and this node shows {}: more ranks than GPUs".format(index, count))

    def free(self) -> int:
        """Return the bytes of device memory that are free."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def memory(self, size: int) -> int:
        """Return the address of new device memory."""
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address.value

    def staging(self, size: int) -> "Buffer":
        """Return host memory that the device copies to at full speed, or any if the driver has none."""
        address = ctypes.c_void_p()
        allocate = getattr(self.library, self.name("cuMemAllocHost_v2"))
        if allocate(ctypes.byref(address), ctypes.c_size_t(size)) == 0:
            return (ctypes.c_char * size).from_address(address.value or 0)
        return ctypes.create_string_buffer(size)

    def to_device(self, address: int, data: object, size: int) -> None:
        self.call("cuMemcpyHtoD_v2", ctypes.c_uint64(address), data, ctypes.c_size_t(size))

    def to_host(self, data: object, address: int, size: int) -> None:
        self.call("cuMemcpyDtoH_v2", data, ctypes.c_uint64(address), ctypes.c_size_t(size))

    def on_device(self, target: int, source: int, size: int) -> None:
        self.call("cuMemcpyDtoD_v2", ctypes.c_uint64(target), ctypes.c_uint64(source), ctypes.c_size_t(size))

    def zero(self, address: int, size: int) -> None:
        self.fill(address, 0, size)

    def fill(self, address: int, value: int, size: int) -> None:
        self.call("cuMemsetD8_v2", ctypes.c_uint64(address), ctypes.c_ubyte(value), ctypes.c_size_t(size))

    def stream(self) -> "Pointer":
        """Return a stream that keeps its order with plain copies, which run on the default one."""
        stream = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(stream), ctypes.c_uint(0))
        return stream

    def event(self) -> "Pointer":
        event = ctypes.c_void_p()
        self.call("cuEventCreate", ctypes.byref(event), ctypes.c_uint(0))
        return event

    def record(self, event: "Pointer", stream: "Pointer") -> None:
        self.call("cuEventRecord", event, stream)

    def wait(self, event: "Pointer", meanwhile: "Callable[[], object]") -> None:
        """Wait until an event is complete; `meanwhile` is called again and again, and may raise."""
        query, pause = getattr(self.library, self.name("cuEventQuery")), _SHORT
        code = query(event)
        while code == CUDA_ERROR_NOT_READY:
            meanwhile()
            time.sleep(pause)
            pause = min(_LONG, pause * 1.5)
            code = query(event)
        if code:
            raise self.failed(query.__name__, code)

    def seconds(self, before: "Pointer", after: "Pointer") -> float:
        """Return the seconds between two events that are complete."""
        milliseconds = ctypes.c_float()
        self.call("cuEventElapsedTime", ctypes.byref(milliseconds), before, after)
        return milliseconds.value / 1000.0
