"""The kernels, in PTX that the driver compiles: for every GPU from Maxwell on; and in HIP for those of AMD.

All blocks compute the same, so one processor that computes otherwise is seen without a second GPU. The operations and
their order are fixed, so that every GPU of one model gives the same bits.
"""

NAMES = ("integers", "floats", "nothing")
THREADS, CHAINS, UNROLLED = 256, 8, 4
FLOPS = 2 * CHAINS * UNROLLED  # of one thread in one round of `floats`
_CONSTANTS = (
    0xBFFD70A4,
    0xBFFC28F6,
    0xBFFAE148,
    0xBFF9999A,
    0xBFF851EC,
    0xBFF70A3D,
    0xBFF5C28F,
    0xBFF47AE1,
)  # -1.98 to -1.91

_HEAD = """.version 6.0
.target sm_50
.address_size 64

"""

# out[block * THREADS + thread] gets what a thread computed.
_BEGIN = """.visible .entry {name}(.param .u64 out, .param .u32 rounds)
{{
    .reg .pred %p;
    .reg .b32 %r<16>;
    .reg .f32 %f<20>;
    .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [rounds];
    cvta.to.global.u64 %rd1, %rd1;
    mov.u32 %r2, %tid.x;
    mov.u32 %r3, %ctaid.x;
"""
_END = """    mad.lo.u32 %r4, %r3, {threads}, %r2;
    mul.wide.u32 %rd2, %r4, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r5;
    ret;
}}

"""
_LOOP = """{label}:
{body}    sub.u32 %r1, %r1, 1;
    setp.ne.u32 %p, %r1, 0;
    @%p bra {label};
"""


def _integers() -> str:
    body = (
        "    mad.lo.u32 %r5, %r5, 1664525, 1013904223;\n"
        "    shr.u32 %r6, %r5, 13;\n"
        "    xor.b32 %r5, %r5, %r6;\n"
        "    mul.hi.u32 %r7, %r5, 2654435761;\n"
        "    add.u32 %r5, %r5, %r7;\n"
    )
    start = "    mad.lo.u32 %r5, %r2, 2654435761, 12345;\n"
    return _kernel("integers", start + _LOOP.format(label="AGAIN", body=body * UNROLLED))


def _floats() -> str:
    """Each chain is x = x * x + c, which stays below 2 and is chaotic for these c: one wrong bit is never forgotten."""
    start = "    cvt.rn.f32.u32 %f0, %r2;\n    mul.rn.f32 %f0, %f0, 0f3B800000;\n"  # the thread's number / 256
    for chain, bits in enumerate(_CONSTANTS, 1):
        start += "    mov.f32 %f{0}, %f0;\n    mov.f32 %f{1}, 0f{2:08X};\n".format(chain, chain + CHAINS, bits)
    step = "    fma.rn.f32 %f{0}, %f{0}, %f{0}, %f{1};\n"
    once = "".join(step.format(chain, chain + CHAINS) for chain in range(1, CHAINS + 1))
    ending = "    mov.b32 %r5, %f1;\n"
    for chain in range(2, CHAINS + 1):
        ending += "    mov.b32 %r6, %f{0};\n    shf.l.wrap.b32 %r5, %r5, %r5, 5;\n    xor.b32 %r5, %r5, %r6;\n".format(
            chain
        )
    return _kernel("floats", start + _LOOP.format(label="AGAIN", body=once * UNROLLED) + ending)


def _kernel(name: str, body: str) -> str:
    return _BEGIN.format(name=name) + body + _END.format(threads=THREADS)


PTX = _HEAD + _integers() + _floats() + ".visible .entry nothing()\n{\n    ret;\n}\n"

_HIP = """extern "C" __global__ void nothing() {{}}

extern "C" __global__ void integers(unsigned *out, unsigned rounds) {{
    unsigned x = threadIdx.x * 2654435761u + 12345u;
    for (; rounds; rounds--) {{
        #pragma unroll
        for (int step = 0; step < {unrolled}; step++) {{
            x = x * 1664525u + 1013904223u;
            x ^= x >> 13;
            x += __umulhi(x, 2654435761u);
        }}
    }}
    out[blockIdx.x * {threads} + threadIdx.x] = x;
}}

extern "C" __global__ void floats(unsigned *out, unsigned rounds) {{
    const unsigned constants[{chains}] = {{{constants}}};
    float x[{chains}];
    #pragma unroll
    for (int chain = 0; chain < {chains}; chain++) x[chain] = threadIdx.x * 0.00390625f;
    for (; rounds; rounds--) {{
        #pragma unroll
        for (int step = 0; step < {unrolled} * {chains}; step++)
            x[step % {chains}] =
                __builtin_fmaf(x[step % {chains}], x[step % {chains}], __uint_as_float(constants[step % {chains}]));
    }}
    unsigned found = __float_as_uint(x[0]);
    #pragma unroll
    for (int chain = 1; chain < {chains}; chain++) found = ((found << 5) | (found >> 27)) ^ __float_as_uint(x[chain]);
    out[blockIdx.x * {threads} + threadIdx.x] = found;
}}
"""


def hip() -> str:
    """Return the same kernels in HIP, for its own compiler."""
    constants = ", ".join(map(hex, _CONSTANTS))
    return _HIP.format(threads=THREADS, chains=CHAINS, unrolled=UNROLLED, constants=constants)
