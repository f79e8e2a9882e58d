/* Stands in for libamdhip64, libhiprtc and librocblas: the devices of cuda.c by HIP's names. A device is the second digit
   of its PCI bus. What the compiler makes of a program is its text; STANDIN_CUDA as there, and hiprtc=STATUS, with which
   the compiler fails. */
#define cuInit hipInit
#define cuDriverGetVersion hipDriverGetVersion
#define cuDeviceGetCount hipGetDeviceCount
#define cuMemGetInfo_v2 hipMemGetInfo
#define cuMemAlloc_v2 hipMalloc
#define cuMemAllocHost_v2 hipMemAllocHost
#define cuMemcpyDtoH_v2 hipMemcpyDtoH
#define cuMemcpyHtoD_v2 hipMemcpyHtoD
#define cuMemcpyDtoD_v2 hipMemcpyDtoD
#define cuMemsetD8_v2 hipMemsetD8
#define cuStreamCreate hipStreamCreateWithFlags
#define cuEventCreate hipEventCreateWithFlags
#define cuEventRecord hipEventRecord
#define cuEventQuery hipEventQuery
#define cuEventElapsedTime hipEventElapsedTime
#define cuCtxGetDevice hipGetDevice
#define cuLaunchHostFunc hipLaunchHostFunc
#define cuModuleLoadData hipModuleLoadData
#define cuModuleGetFunction hipModuleGetFunction
#define cuLaunchKernel hipModuleLaunchKernel
#define cuMemcpyDtoDAsync_v2 hipMemcpyDtoDAsync
#define cuMemcpyHtoDAsync_v2 hipMemcpyHtoDAsync
#define cuMemcpyDtoHAsync_v2 hipMemcpyDtoHAsync
#define cuDeviceCanAccessPeer hipDeviceCanAccessPeer
#include "cuda.c"

const char *hipGetErrorString(int code) {
    const char *words;
    return cuGetErrorString(code, &words), words;
}
int hipDeviceGetByPCIBusId(int *device, const char *address) {
    return *device = address[6] - '0', *device < devices() ? OK : 101;
}
int hipSetDevice(int device) {
    contexts[device].device = device;
    return cuCtxSetCurrent(&contexts[device]);
}
int hipDeviceEnablePeerAccess(int device, unsigned flags) { return device < devices() && !flags ? OK : INVALID; }
int hipMemcpyPeerAsync(void *to, int there, const void *from, int here, size_t size, void *stream) {
    if (there == here || current->device != here) return INVALID;
    return cuMemcpyPeerAsync((uint64_t)to, NULL, (uint64_t)from, NULL, size, stream);
}

int hiprtcCreateProgram(void **program, const char *text, const char *name, int headers, const char **texts,
                        const char **names) {
    return *program = strdup(text), name && !headers && !texts && !names ? OK : INVALID;
}
int hiprtcCompileProgram(void *program, int count, const char **options) {
    return (void)program, count || options ? INVALID : (int)number("hiprtc", OK);
}
int hiprtcGetCodeSize(void *program, size_t *size) { return *size = strlen(program) + 1, OK; }
int hiprtcGetCode(void *program, char *code) { return strcpy(code, program), OK; }

int rocblas_create_handle(void **handle) { return cublasCreate_v2(handle); }
int rocblas_set_stream(void *handle, void *stream) { return cublasSetStream_v2(handle, stream); }
int rocblas_gemm_ex(void *handle, int turn_a, int turn_b, int m, int n, int k, const void *alpha, const void *a,
                    int kind_a, int lda, const void *b, int kind_b, int ldb, const void *beta, const void *c, int kind_c,
                    int ldc, void *d, int kind_d, int ldd, int computed_in, int algorithm, int solution,
                    unsigned flags) {
    if (turn_a != 111 || turn_b != 111 || computed_in != 151 || algorithm || solution || flags) return 11;
    if (c != d || kind_c != kind_d || ldc != ldd || !(kind_a == 151 || kind_a == 168)) return 11;
    int kind = kind_a == 168 ? 14 : 0;
    if (kind_b != kind_a || kind_c != kind_a) return 11;
    return cublasGemmEx(handle, 0, 0, m, n, k, alpha, a, kind, lda, b, kind, ldb, beta, d, kind, ldd, 68, -1);
}
