"""What the test of one GPU needs of the driver beyond an all-reduce: kernels, copies that are queued, peers."""

import ctypes

from ncheck.probe.agent.nccl_rank.cuda import Cuda


class Device(Cuda):
    """The CUDA driver's API; see nccl_rank/cuda.py."""

    def count(self):
        number = ctypes.c_int()
        self.call("cuDeviceGetCount", ctypes.byref(number))
        return number.value

    def attribute(self, number):
        """Return an attribute of the first device."""
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), ctypes.c_int(number), ctypes.c_int(0))
        return value.value

    def use(self, context):
        self.call("cuCtxSetCurrent", context)

    # Kernels

    def module(self, text):
        """Compile PTX for the current device."""
        module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), text.encode())
        return module

    def function(self, module, name):
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        return function

    def launch(self, function, blocks, threads, stream, *parameters):
        """Queue a kernel; it may have more parameters than it takes."""
        pointers = (ctypes.c_void_p * len(parameters))(*(ctypes.addressof(one) for one in parameters))
        sizes = (ctypes.c_uint(number) for number in (blocks, 1, 1, threads, 1, 1, 0))
        self.call("cuLaunchKernel", function, *sizes, stream, pointers, ctypes.c_void_p())

    # Copies

    def pinned(self, size):
        """Return the address of host memory that the device copies to and from by itself."""
        address = ctypes.c_void_p()
        self.call("cuMemAllocHost_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address

    def queue_on_device(self, target, source, size, stream):
        self.call(
            "cuMemcpyDtoDAsync_v2", ctypes.c_uint64(target), ctypes.c_uint64(source), ctypes.c_size_t(size), stream
        )

    def queue_to_device(self, target, host, size, stream):
        self.call("cuMemcpyHtoDAsync_v2", ctypes.c_uint64(target), host, ctypes.c_size_t(size), stream)

    def queue_to_host(self, host, source, size, stream):
        self.call("cuMemcpyDtoHAsync_v2", host, ctypes.c_uint64(source), ctypes.c_size_t(size), stream)

    # Peers

    def let_reach(self, one, other, context):
        """Let the current context of one device reach the memory of another, where the hardware can."""
        able = ctypes.c_int()
        self.call("cuDeviceCanAccessPeer", ctypes.byref(able), ctypes.c_int(one), ctypes.c_int(other))
        if able.value:
            self.call("cuCtxEnablePeerAccess", context, ctypes.c_uint(0))
        return bool(able.value)

    def queue_to_peer(self, target, there, source, here, size, stream):  # noqa: PLR0913, PLR0917  as the driver has them
        self.call(
            "cuMemcpyPeerAsync", ctypes.c_uint64(target), there, ctypes.c_uint64(source), here, ctypes.c_size_t(size),
            stream,
        )  # fmt: skip
