// Several streams and events: overlapped chunks from pinned memory, a pipeline ordered by events, priorities,
// callbacks.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../check.h"

__global__ void scale(float *a, int offset, int n, float f) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[offset + i] = a[offset + i] * f + 1.0f;
}
__global__ void add(float *a, const float *b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] += b[i];
}

static int calls;
static void CUDART_CB count_call(void *data) {
    calls += *(int *)data;
}

int main() {
    const int n = 1 << 12, kStreams = 4, chunk = n / kStreams;
    float *a, *d_a, *d_b, *pageable = (float *)malloc(n * 4);
    CHECK(cudaMallocHost((void **)&a, n * 4));
    CHECK(cudaMalloc((void **)&d_a, n * 4));
    CHECK(cudaMalloc((void **)&d_b, n * 4));
    cudaStream_t stream[kStreams];
    for (auto &s : stream) CHECK(cudaStreamCreate(&s));
    // Depth first: copy, kernel, copy for each stream.
    for (int i = 0; i < n; i++) a[i] = i;
    for (int i = 0; i < kStreams; i++) {
        int offset = i * chunk;
        CHECK(cudaMemcpyAsync(&d_a[offset], &a[offset], chunk * 4, cudaMemcpyHostToDevice, stream[i]));
        scale<<<chunk / 256, 256, 0, stream[i]>>>(d_a, offset, chunk, 2.0f);
        CHECK(cudaMemcpyAsync(&a[offset], &d_a[offset], chunk * 4, cudaMemcpyDeviceToHost, stream[i]));
    }
    for (auto &s : stream) CHECK(cudaStreamSynchronize(s));
    for (int i = 0; i < n; i++)
        if (a[i] != 2.0f * i + 1) return printf("depth first %d: %f\n", i, a[i]), 1;
    // Breadth first, on non-blocking streams, waiting for an event that was recorded behind the last work of each.
    cudaStream_t high, low;
    int least, greatest;
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CHECK(cudaStreamCreateWithPriority(&high, cudaStreamNonBlocking, greatest));
    CHECK(cudaStreamCreateWithFlags(&low, cudaStreamNonBlocking));
    cudaEvent_t ready, done;
    CHECK(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
    CHECK(cudaEventCreate(&done));
    memset(a, 0, n * 4);
    CHECK(cudaMemsetAsync(d_a, 0, n * 4, high));
    scale<<<n / 256, 256, 0, high>>>(d_a, 0, n, 1.0f);
    CHECK(cudaEventRecord(ready, high));
    for (int i = 0; i < n; i++) a[i] = 5;
    CHECK(cudaMemcpyAsync(d_b, a, n * 4, cudaMemcpyHostToDevice, low));
    CHECK(cudaStreamWaitEvent(low, ready, 0));
    add<<<n / 256, 256, 0, low>>>(d_a, d_b, n);
    int one = 1;
    CHECK(cudaLaunchHostFunc(low, count_call, &one));
    CHECK(cudaEventRecord(done, low));
    while (cudaEventQuery(done) == cudaErrorNotReady) {
    }
    if (calls != 1) return printf("host function ran %d times\n", calls), 1;
    CHECK(cudaMemcpy(pageable, d_a, n * 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        if (pageable[i] != 6) return printf("events %d: %f\n", i, pageable[i]), 1;
    // The legacy default stream waits for blocking streams, and they for it.
    scale<<<n / 256, 256, 0, stream[0]>>>(d_a, 0, n, 2.0f);
    add<<<n / 256, 256>>>(d_a, d_b, n);
    scale<<<n / 256, 256, 0, stream[1]>>>(d_a, 0, n, 10.0f);
    CHECK(cudaStreamSynchronize(stream[1]));
    CHECK(cudaMemcpy(pageable, d_a, n * 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        if (pageable[i] != 181) return printf("default stream %d: %f\n", i, pageable[i]), 1;
    // A pageable source may be reused as soon as the call returns.
    for (int i = 0; i < n; i++) pageable[i] = 3;
    CHECK(cudaMemcpyAsync(d_b, pageable, n * 4, cudaMemcpyHostToDevice, stream[2]));
    for (int i = 0; i < n; i++) pageable[i] = -1;
    CHECK(cudaMemcpyAsync(pageable, d_b, n * 4, cudaMemcpyDeviceToHost, stream[2]));
    CHECK(cudaStreamSynchronize(stream[2]));
    for (int i = 0; i < n; i++)
        if (pageable[i] != 3) return printf("pageable %d: %f\n", i, pageable[i]), 1;
    float ms = -1;
    cudaEvent_t start;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventRecord(start, low));
    CHECK(cudaEventRecord(done, low));
    CHECK(cudaEventSynchronize(done));
    CHECK(cudaEventElapsedTime(&ms, start, done));
    if (!(ms >= 0)) return 1;
    for (auto &s : stream) CHECK(cudaStreamDestroy(s));
    CHECK(cudaStreamDestroy(high));
    CHECK(cudaStreamDestroy(low));
    CHECK(cudaEventDestroy(ready));
    CHECK(cudaEventDestroy(done));
    CHECK(cudaFreeHost(a));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaDeviceReset());
    printf("OK\n");
    return 0;
}
