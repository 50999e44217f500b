// Element-wise kernels of a training loop: GELU forward and backward, residual, AdamW, cross entropy, encoder, bias.
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define GELU_SCALING_FACTOR sqrtf(2.0f / M_PI)

inline void cudaCheck(cudaError_t error, const char *file, int line) {
    if (error != cudaSuccess) {
        printf("[CUDA ERROR] at file %s:%d: %s\n", file, line, cudaGetErrorString(error));
        exit(EXIT_FAILURE);
    }
}
#define cudaCheck(err) (cudaCheck(err, __FILE__, __LINE__))

__global__ void gelu_forward(float *out, const float *inp, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) {
        float xi = inp[i];
        float cube = 0.044715f * xi * xi * xi;
        out[i] = 0.5f * xi * (1.0f + tanhf(GELU_SCALING_FACTOR * (xi + cube)));
    }
}

__global__ void gelu_backward(float *dinp, const float *inp, const float *dout, const int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) {
        float x = inp[i];
        float cube = 0.044715f * x * x * x;
        float tanh_arg = GELU_SCALING_FACTOR * (x + cube);
        float tanh_out = tanhf(tanh_arg);
        float coshf_out = coshf(tanh_arg);
        float sech_out = 1.0f / (coshf_out * coshf_out);
        float local_grad =
            0.5f * (1.0f + tanh_out) + x * 0.5f * sech_out * GELU_SCALING_FACTOR * (1.0f + 3.0f * 0.044715f * x * x);
        dinp[i] = local_grad * dout[i];
    }
}

__device__ inline float lerp(float start, float end, float weight) {
    return fma(weight, end, fma(-weight, start, start));
}

__global__ void adamw(float *params, float *grads, float *m_memory, float *v_memory, long num_parameters,
                      float learning_rate, float beta1, float beta2, float beta1_correction, float beta2_correction,
                      float eps, float weight_decay) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= num_parameters) return;
    float grad = grads[i];
    float m = m_memory[i];
    float v = v_memory[i];
    m = lerp(grad, m, beta1);
    m_memory[i] = m;
    v = lerp(grad * grad, v, beta2);
    v_memory[i] = v;
    m /= beta1_correction;
    v /= beta2_correction;
    params[i] -= learning_rate * (m / (sqrtf(v) + eps) + weight_decay * params[i]);
}

__global__ void encoder(float *out, const int *inp, const float *wte, const float *wpe, int B, int T, int C) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < B * T * C) {
        int bt = idx / C, b = bt / T, t = bt % T, c = idx % C;
        out[idx] = wte[inp[b * T + t] * C + c] + wpe[t * C + c];
    }
}

__global__ void cross_entropy(float *losses, const float *probs, const int *targets, int B, int T, int V) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < B * T) {
        int b = i / T, t = i % T;
        losses[b * T + t] = -logf(probs[b * T * V + t * V + targets[b * T + t]]);
    }
}

// Column sums with one block for 32 columns, partial sums of the warps in shared memory.
__global__ void bias_backward(float *dbias, const float *dout, int rows, int cols) {
    __shared__ float sums[1024 / 32][32];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, col = blockIdx.x * 32 + lane;
    float sum = 0;
    for (int row = warp; row < rows; row += blockDim.x / 32) sum += dout[row * cols + col];
    sums[warp][lane] = sum;
    __syncthreads();
    if (warp == 0) {
        for (int w = 1; w < blockDim.x / 32; ++w) sum += sums[w][lane];
        dbias[col] += sum;
    }
}

template <class T>
struct Device {
    T *p;
    size_t n;
    explicit Device(const std::vector<T> &v) : n(v.size()) {
        cudaCheck(cudaMalloc(&p, n * sizeof(T)));
        cudaCheck(cudaMemcpy(p, v.data(), n * sizeof(T), cudaMemcpyHostToDevice));
    }
    ~Device() { cudaFree(p); }
    std::vector<T> get() const {
        std::vector<T> v(n);
        cudaCheck(cudaMemcpy(v.data(), p, n * sizeof(T), cudaMemcpyDeviceToHost));
        return v;
    }
};

static void expect(const char *what, size_t i, double got, double want, double tol) {
    if (std::fabs(got - want) <= tol * (1 + std::fabs(want))) return;
    printf("%s[%zu]: %.8g, want %.8g\n", what, i, got, want);
    exit(1);
}

int main() {
    const int N = 3000;
    std::vector<float> x(N), dy(N), zero(N, 0.f), p(N), g(N), m(N), v(N);
    for (int i = 0; i < N; ++i) {
        x[i] = (rand() % 20001 - 10000) / 1500.f;
        dy[i] = (rand() % 2001 - 1000) / 1000.f;
        p[i] = (rand() % 2001 - 1000) / 1000.f;
        g[i] = (rand() % 2001 - 1000) / 500.f;
        m[i] = (rand() % 2001 - 1000) / 3000.f;
        v[i] = (rand() % 1000) / 1000.f;
    }
    Device<float> dx(x), ddy(dy), out(zero), dinp(zero), dp(p), dg(g), dm(m), dv(v);
    const int blocks = (N + 255) / 256;
    gelu_forward<<<blocks, 256>>>(out.p, dx.p, N);
    gelu_backward<<<blocks, 256>>>(dinp.p, dx.p, ddy.p, N);
    adamw<<<blocks, 256>>>(dp.p, dg.p, dm.p, dv.p, N, 1e-2f, 0.9f, 0.999f, 1 - 0.9f, 1 - 0.999f, 1e-8f, 0.1f);
    cudaCheck(cudaGetLastError());
    auto y = out.get(), dxv = dinp.get(), pv = dp.get();
    const double k = std::sqrt(2 / M_PI);
    for (int i = 0; i < N; ++i) {
        double xi = x[i], t = std::tanh(k * (xi + 0.044715 * xi * xi * xi)),
               sech = 1 / std::cosh(k * (xi + 0.044715 * xi * xi * xi));
        expect("gelu", i, y[i], 0.5 * xi * (1 + t), 1e-5);
        double grad = 0.5 * (1 + t) + xi * 0.5 * sech * sech * k * (1 + 3 * 0.044715 * xi * xi);
        expect("gelu'", i, dxv[i], grad * dy[i], 1e-4);
        double mi = 0.9 * m[i] + 0.1 * g[i], vi = 0.999 * v[i] + 0.001 * g[i] * g[i];
        double want = p[i] - 1e-2 * (mi / 0.1 / (std::sqrt(vi / 0.001) + 1e-8) + 0.1 * p[i]);
        expect("adamw", i, pv[i], want, 1e-5);
    }
    const int B = 2, T = 10, C = 24, V = 50;
    std::vector<int> tokens(B * T), targets(B * T);
    std::vector<float> wte(V * C), wpe(T * C), probs(B * T * V);
    for (int &t : tokens) t = rand() % V;
    for (int &t : targets) t = rand() % V;
    for (auto *w : {&wte, &wpe})
        for (float &f : *w) f = rand() / float(RAND_MAX);
    for (float &f : probs) f = (rand() % 1000 + 1) / 1001.f;
    Device<int> dtok(tokens), dtar(targets);
    Device<float> dwte(wte), dwpe(wpe), dprobs(probs), enc(std::vector<float>(B * T * C)),
        loss(std::vector<float>(B * T));
    encoder<<<(B * T * C + 127) / 128, 128>>>(enc.p, dtok.p, dwte.p, dwpe.p, B, T, C);
    cross_entropy<<<1, 32>>>(loss.p, dprobs.p, dtar.p, B, T, V);
    cudaCheck(cudaDeviceSynchronize());
    auto e = enc.get(), l = loss.get();
    for (int i = 0; i < B * T * C; ++i)
        expect("encoder", i, e[i], double(wte[tokens[i / C] * C + i % C]) + wpe[i / C % T * C + i % C], 1e-6);
    for (int i = 0; i < B * T; ++i) expect("loss", i, l[i], -std::log(double(probs[i * V + targets[i]])), 1e-5);
    const int rows = 33, cols = 64;
    std::vector<float> d(rows * cols);
    for (float &f : d) f = (rand() % 201 - 100) / 100.f;
    Device<float> dd(d), db(std::vector<float>(cols, 1.f));
    bias_backward<<<cols / 32, 256>>>(db.p, dd.p, rows, cols);
    cudaCheck(cudaGetLastError());
    auto b = db.get();
    for (int c = 0; c < cols; ++c) {
        double sum = 1;
        for (int r = 0; r < rows; ++r) sum += d[r * cols + c];
        expect("bias", c, b[c], sum, 1e-5);
    }
    printf("OK\n");
    return 0;
}
