// A 1D stencil with halo in shared memory, a 2D heat step with early exit, constant coefficients, a double pointer
// swap.
#include <stdio.h>
#include <stdlib.h>

#define RADIUS 3
#define BLOCK_SIZE 96

__constant__ float coef[2 * RADIUS + 1];

__global__ void stencil_1d(const float *in, float *out, int n) {
    __shared__ float temp[BLOCK_SIZE + 2 * RADIUS];
    int gindex = threadIdx.x + blockIdx.x * blockDim.x;
    int lindex = threadIdx.x + RADIUS;
    temp[lindex] = gindex < n ? in[gindex] : 0.f;
    if (threadIdx.x < RADIUS) {
        temp[lindex - RADIUS] = gindex >= RADIUS ? in[gindex - RADIUS] : 0.f;
        temp[lindex + BLOCK_SIZE] = gindex + BLOCK_SIZE < n ? in[gindex + BLOCK_SIZE] : 0.f;
    }
    __syncthreads();
    float result = 0;
    for (int offset = -RADIUS; offset <= RADIUS; offset++) result += coef[offset + RADIUS] * temp[lindex + offset];
    if (gindex < n) out[gindex] = result;
}

__global__ void heat(float *next, const float *now, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    if (x == 0 || y == 0 || x == w - 1 || y == h - 1) {
        next[y * w + x] = now[y * w + x];
        return;
    }
    next[y * w + x] = now[y * w + x] + 0.2f * (now[y * w + x - 1] + now[y * w + x + 1] + now[(y - 1) * w + x] +
                                               now[(y + 1) * w + x] - 4 * now[y * w + x]);
}

int main() {
    const int n = 1000;
    static float in[n], out[n], c[2 * RADIUS + 1] = {0.05f, 0.1f, 0.2f, 0.3f, 0.2f, 0.1f, 0.05f};
    for (int i = 0; i < n; i++) in[i] = rand() % 100;
    float *d_in, *d_out;
    cudaMalloc((void **)&d_in, sizeof in);
    cudaMalloc((void **)&d_out, sizeof out);
    cudaMemcpy(d_in, in, sizeof in, cudaMemcpyHostToDevice);
    cudaMemcpyToSymbol(coef, c, sizeof c);
    stencil_1d<<<(n + BLOCK_SIZE - 1) / BLOCK_SIZE, BLOCK_SIZE>>>(d_in, d_out, n);
    cudaMemcpy(out, d_out, sizeof out, cudaMemcpyDeviceToHost);
    for (int i = 0; i < n; i++) {
        float want = 0;
        for (int k = -RADIUS; k <= RADIUS; k++) {
            if (i + k >= 0 && i + k < n) want += c[k + RADIUS] * in[i + k];
        }
        if (!(abs(want - out[i]) < 1e-3f)) {
            printf("stencil %d: %f, want %f\n", i, out[i], want);
            return 1;
        }
    }
    const int w = 70, h = 45, steps = 10;
    float *a, *b, *host = (float *)malloc(w * h * 4), *other = (float *)malloc(w * h * 4),
                  *got = (float *)malloc(w * h * 4);
    for (int i = 0; i < w * h; i++) host[i] = rand() % 1000 / 10.f;
    cudaMalloc((void **)&a, w * h * 4);
    cudaMalloc((void **)&b, w * h * 4);
    cudaMemcpy(a, host, w * h * 4, cudaMemcpyHostToDevice);
    for (int s = 0; s < steps; s++) {
        heat<<<dim3((w + 15) / 16, (h + 15) / 16), dim3(16, 16)>>>(b, a, w, h);
        float *t = a;
        a = b;
        b = t;
        for (int y = 0; y < h; y++) {
            for (int x = 0; x < w; x++) {
                float v = host[y * w + x];
                if (x && y && x < w - 1 && y < h - 1) {
                    v += 0.2f * (host[y * w + x - 1] + host[y * w + x + 1] + host[(y - 1) * w + x] +
                                 host[(y + 1) * w + x] - 4 * v);
                }
                other[y * w + x] = v;
            }
        }
        float *u = host;
        host = other;
        other = u;
    }
    if (cudaDeviceSynchronize() != cudaSuccess) return 2;
    cudaMemcpy(got, a, w * h * 4, cudaMemcpyDeviceToHost);
    for (int i = 0; i < w * h; i++) {
        if (!(abs(got[i] - host[i]) < 1e-2f)) {
            printf("heat %d: %f, want %f\n", i, got[i], host[i]);
            return 1;
        }
    }
    printf("OK\n");
    return 0;
}
