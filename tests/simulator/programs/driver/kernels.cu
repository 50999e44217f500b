// Kernels that the programs here load as PTX and as a fat binary.
extern "C" {

__device__ int counter = 5;
__constant__ float factors[4] = {1, 2, 3, 4};
__managed__ int shared_count = 7;

__global__ void add(const float *a, const float *b, float *c, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}

// One element past the end where n is the number of elements.
__global__ void add_one_too_many(const float *a, const float *b, float *c, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) c[i] = a[i] + b[i];
}

// A char before what must be aligned: offsets of parameters that are no sums of sizes.
__global__ void mixed_parameters(char small, double large, short middle, double *out) {
    *out = small + large + middle;
}

__global__ void read_globals(float *out) {
    for (int i = 0; i < 4; ++i) out[i] = factors[i] * counter;
}

__global__ void with_dynamic_shared(int *out, int n) {
    extern __shared__ int values[];
    values[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = values[n - 1 - threadIdx.x];
}

__global__ void __launch_bounds__(128) bounded(int *out) {
    out[threadIdx.x] = blockDim.x;
}

__global__ void read_texture(cudaTextureObject_t texture, float *out, int width) {
    out[threadIdx.y * width + threadIdx.x] = tex2D<float>(texture, threadIdx.x + 0.5f, threadIdx.y + 0.5f);
}

__global__ void cluster_ranks(unsigned *out) {
    unsigned rank = 0;
#if __CUDA_ARCH__ >= 900
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
    if (threadIdx.x == 0) out[blockIdx.x] = rank;
}

__global__ void wait_for_the_kernel_before(int *value) {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
    *value += 1;
}

// All blocks meet, then each adds up what the others wrote.
__global__ void meet(unsigned *arrived, int *parts, int *sums) {
    parts[blockIdx.x] = blockIdx.x + 1;
    __threadfence();
    atomicAdd(arrived, 1u);
    while (atomicAdd(arrived, 0u) < gridDim.x) {
    }
    __threadfence();
    int sum = 0;
    for (unsigned i = 0; i < gridDim.x; ++i) sum += reinterpret_cast<volatile int *>(parts)[i];
    sums[blockIdx.x] = sum;
}
}
