/* Stands in for libnccl.so.2 where only its version is asked; built with -DCODE=21903 -DTEXT='"2.19.3+cuda12.3"'. */
const char *const told = "NCCL version " TEXT;

int ncclGetVersion(int *version) {
    if (!version) return 4;
    *version = CODE;
    return 0;
}
