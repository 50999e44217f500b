"""A naive kernel in the place of any stage's: a thread computes whole rows, and nothing of any technique is in it."""

from flashladder.ladder.kernels import Kernel

BODY = """
    const int64_t rows = int64_t(params.B) * params.Hq * params.Nq, blocks = int64_t(gridDim.x) * gridDim.y * gridDim.z;
    const int64_t block = blockIdx.x + int64_t(gridDim.x) * (blockIdx.y + int64_t(gridDim.y) * blockIdx.z);
    for (int64_t at = block * blockDim.x + threadIdx.x; at < rows; at += blocks * blockDim.x) {
        const int64_t row = at % params.Nq, head = at / params.Nq % params.Hq, batch = at / params.Nq / params.Hq;
        const int64_t kv = head / (params.Hq / params.Hkv);
        const T *q = static_cast<const T *>(params.Q.data) + batch * params.Q.stride_batch +
                     head * params.Q.stride_head + row * params.Q.stride_row;
        const T *k = static_cast<const T *>(params.K.data) + batch * params.K.stride_batch + kv * params.K.stride_head;
        const T *v = static_cast<const T *>(params.V.data) + batch * params.V.stride_batch + kv * params.V.stride_head;
        T *o = static_cast<T *>(params.O.data) + batch * params.O.stride_batch + head * params.O.stride_head +
               row * params.O.stride_row;
        const int keys = params.causal ? min(int(row) + params.Nkv - params.Nq + 1, params.Nkv) : params.Nkv;
        float sum = 0, most = -INFINITY, acc[d_head];
        for (int x = 0; x < d_head; ++x) acc[x] = 0;
        for (int j = 0; j < keys; ++j) {
            float s = 0;
            for (int x = 0; x < d_head; ++x)
                s += float(q[x]) * float(k[j * params.K.stride_row + x]);
            s *= params.scale;
            const float before = most;
            most = fmaxf(most, s);
            const float old = before == -INFINITY ? 0.0f : expf(before - most), p = expf(s - most);
            sum = sum * old + p;
            for (int x = 0; x < d_head; ++x) acc[x] = acc[x] * old + p * float(v[j * params.V.stride_row + x]);
        }
        for (int x = 0; x < d_head; ++x) o[x] = T(sum > 0 ? acc[x] / sum : 0.0f);
        if (params.log_sum_exp) params.log_sum_exp[at] = sum > 0 ? most + logf(sum) : -INFINITY;
    }
"""


def naive(stage: Kernel) -> str:
    """The stage's kernel.cu with this body in its (last) kernel."""
    text = stage.kernel.read_text()
    begin = text.index("{", text.index("flash_kernel(", text.rindex("__global__"))) + 1
    end = text.index("\n}\n", begin)
    return text[:begin] + BODY + text[end + 1 :]
