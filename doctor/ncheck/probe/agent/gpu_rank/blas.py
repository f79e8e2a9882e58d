"""cuBLAS by ctypes: one product of two square matrices. Its constants are those of its public headers."""

import ctypes

from ncheck.probe.agent.nccl_rank.messages import RankError

_NONE = 0  # CUBLAS_OP_N
_COMPUTE_32F, _DEFAULT = 68, -1
_KINDS = {"bf16": 14, "fp32": 0}  # CUDA_R_16BF, CUDA_R_32F


class Blas:
    """One library, with a handle in the current context."""

    def __init__(self, library):
        self.library, self.handle = library, ctypes.c_void_p()
        self._call("cublasCreate_v2", ctypes.byref(self.handle))

    @classmethod
    def first(cls, files):
        """Return the first that can be used; why none can, as text, otherwise."""
        why = "no cuBLAS: matrix products were not measured"
        for file in files:
            try:
                return cls(ctypes.CDLL(file))
            except (OSError, RankError, AttributeError) as error:
                why = "cuBLAS cannot be used: {}".format(error)[:200]
        return why

    def _call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status:
            raise RankError("{} returned status {}".format(name, status))

    def product(self, kind, side, matrices, stream):
        """Return a function that queues the product of the first two matrices, into the third."""
        one, nothing, number = ctypes.c_float(1), ctypes.c_float(0), ctypes.c_int(_KINDS[kind])
        first, second, third = (ctypes.c_void_p(matrix) for matrix in matrices)
        count, plain = ctypes.c_int(side), ctypes.c_int(_NONE)
        self._call("cublasSetStream_v2", self.handle, stream)

        def multiply():
            self._call(
                "cublasGemmEx", self.handle, plain, plain, count, count, count, ctypes.byref(one), first, number, count,
                second, number, count, ctypes.byref(nothing), third, number, count, ctypes.c_int(_COMPUTE_32F),
                ctypes.c_int(_DEFAULT),
            )  # fmt: skip

        return multiply
