// Kernels that launch kernels (dynamic parallelism), a case at a time:
//
//     device_launches CASE
#include <cstring>
#include <vector>

#include "../check.h"

#define EXPECT(condition)                                      \
    do {                                                       \
        if (!(condition)) {                                    \
            printf("line %d: not %s\n", __LINE__, #condition); \
            exit(1);                                           \
        }                                                      \
    } while (0)

constexpr int kCount = 1000;

int *zeros(int count = kCount) {
    int *values;
    CHECK(cudaMalloc(&values, count * sizeof(int)));
    CHECK(cudaMemset(values, 0, count * sizeof(int)));
    return values;
}

std::vector<int> values_of(const int *values, int count = kCount) {
    std::vector<int> result(count);
    CHECK(cudaMemcpy(result.data(), values, count * sizeof(int), cudaMemcpyDeviceToHost));
    return result;
}

__global__ void add(int *values, int n, int amount) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] += amount;
}

__global__ void multiply(int *values, int n, int factor) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] *= factor;
}

// A launch from one thread of each block: sizes past a block's end, too.
__global__ void add_in_parts(int *values, int n, int part) {
    const int first = blockIdx.x * part;
    if (threadIdx.x == 0 && first < n) {
        const int count = min(part, n - first);
        add<<<(count + 31) / 32, 32>>>(values + first, count, blockIdx.x + 1);
    }
}

void each_block_launches() {
    int *values = zeros();
    add_in_parts<<<8, 64>>>(values, kCount, 150);
    CHECK(cudaDeviceSynchronize());
    const std::vector<int> result = values_of(values);
    for (int i = 0; i < kCount; ++i) EXPECT(result[i] == i / 150 + 1);
}

__global__ void every_thread_launches(int *values) {
    add<<<1, 1>>>(values + threadIdx.x, 1, threadIdx.x);
}

void each_thread_launches() {
    int *values = zeros();
    every_thread_launches<<<1, 100>>>(values);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 100; ++i) EXPECT(values_of(values)[i] == i);
}

// The order of work in a stream of a block is that of the calls.
__global__ void add_then_multiply(int *values, int n) {
    add<<<(n + 127) / 128, 128>>>(values, n, 2);
    multiply<<<(n + 127) / 128, 128>>>(values, n, 10);
    add<<<(n + 127) / 128, 128>>>(values, n, 3);
}

void order_in_a_stream() {
    int *values = zeros();
    add_then_multiply<<<1, 1>>>(values, kCount);
    CHECK(cudaDeviceSynchronize());
    EXPECT(values_of(values) == std::vector<int>(kCount, 23));
    // What comes behind the grid in its stream comes behind what it launched.
    multiply<<<8, 128>>>(values, kCount, 2);
    EXPECT(values_of(values) == std::vector<int>(kCount, 46));
}

__global__ void tail_first(int *values, int n) {
    multiply<<<(n + 127) / 128, 128, 0, cudaStreamTailLaunch>>>(values, n, 10);  // after the sum
    add<<<(n + 127) / 128, 128, 0, cudaStreamTailLaunch>>>(values, n, 4);        // and this after it
    add_in_parts<<<8, 32>>>(values, n, 125);
}

void tail_launches_come_last() {
    int *values = zeros();
    tail_first<<<1, 1>>>(values, kCount);
    CHECK(cudaDeviceSynchronize());
    const std::vector<int> result = values_of(values);
    for (int i = 0; i < kCount; ++i) EXPECT(result[i] == 10 * (i / 125 + 1) + 4);
}

__global__ void in_streams(int *values, int n, int *errors) {
    cudaStream_t first, second;
    cudaEvent_t event;
    *errors += cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking) != cudaSuccess;
    *errors += cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking) != cudaSuccess;
    *errors += cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != cudaSuccess;
    *errors += first == second;
    add<<<(n + 127) / 128, 128, 0, first>>>(values, n, 5);
    *errors += cudaEventRecord(event, first) != cudaSuccess;
    *errors += cudaStreamWaitEvent(second, event, 0) != cudaSuccess;
    multiply<<<(n + 127) / 128, 128, 0, second>>>(values, n, 3);
    *errors += cudaStreamDestroy(first) != cudaSuccess;
    *errors += cudaStreamDestroy(second) != cudaSuccess;
    *errors += cudaEventDestroy(event) != cudaSuccess;
    add<<<1, 1, 0, cudaStreamFireAndForget>>>(errors, 1, 0);
    *errors += cudaGetLastError() != cudaSuccess;
}

void streams_and_events() {
    int *values = zeros(), *errors = zeros();
    in_streams<<<1, 1>>>(values, kCount, errors);
    CHECK(cudaDeviceSynchronize());
    EXPECT(values_of(errors)[0] == 0);
    EXPECT(values_of(values) == std::vector<int>(kCount, 15));
}

// A stream that one thread makes and others use.
__global__ void shared_stream(int *values) {
    __shared__ cudaStream_t stream;
    if (threadIdx.x == 0) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    __syncthreads();
    add<<<1, 1, 0, stream>>>(values + threadIdx.x, 1, 7);
}

void a_stream_for_a_block() {
    int *values = zeros();
    shared_stream<<<1, 40>>>(values);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 40; ++i) EXPECT(values_of(values)[i] == 7);
}

__global__ void countdown(int *values, int n) {
    values[n] = n + 1;
    if (n > 0) countdown<<<1, 1>>>(values, n - 1);
}

void launches_within_launches() {
    int *values = zeros();
    countdown<<<1, 1>>>(values, 20);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i <= 20; ++i) EXPECT(values_of(values)[i] == i + 1);
}

void launches_too_deep() {
    int *values = zeros();
    countdown<<<1, 1>>>(values, 30);
    EXPECT(cudaDeviceSynchronize() == cudaErrorLaunchMaxDepthExceeded);
}

template <class T>
__device__ void swap(T &a, T &b) {
    const T old = a;
    a = b;
    b = old;
}

// Sorts values[first..last] and launches itself for both sides.
__global__ void quicksort(int *values, int first, int last) {
    const int pivot = values[(first + last) / 2];
    int left = first, right = last;
    while (left <= right) {
        while (values[left] < pivot) ++left;
        while (values[right] > pivot) --right;
        if (left <= right) swap(values[left++], values[right--]);
    }
    if (first < right) quicksort<<<1, 1, 0, cudaStreamFireAndForget>>>(values, first, right);
    if (left < last) quicksort<<<1, 1, 0, cudaStreamFireAndForget>>>(values, left, last);
}

void recursion() {
    std::vector<int> numbers(200);
    for (int i = 0; i < 200; ++i) numbers[i] = i * 7919 % 200;
    int *values = zeros();
    CHECK(cudaMemcpy(values, numbers.data(), 800, cudaMemcpyHostToDevice));
    quicksort<<<1, 1>>>(values, 0, 199);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 200; ++i) EXPECT(values_of(values)[i] == i);
}

struct Large {
    char tag;
    double numbers[20];
    short end;
};

__global__ void read_large(Large large, int *out) {
    extern __shared__ int copy[];
    copy[threadIdx.x] = int(large.numbers[threadIdx.x]);
    __syncthreads();
    out[threadIdx.x] = copy[19 - threadIdx.x] + large.tag + large.end;
}

__global__ void launch_large(int *out) {
    Large large{};
    large.tag = 1;
    large.end = 100;
    for (int i = 0; i < 20; ++i) large.numbers[i] = i;
    read_large<<<1, 20, 20 * sizeof(int)>>>(large, out);
}

void parameters_and_dynamic_shared_memory() {
    int *values = zeros();
    launch_large<<<1, 1>>>(values);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 20; ++i) EXPECT(values_of(values)[i] == 19 - i + 101);
}

__global__ void copy_and_fill(int *to, const int *from, int n) {
    cudaMemsetAsync(to, 0xff, n * sizeof(int));
    cudaMemcpyAsync(to, from, n / 2 * sizeof(int), cudaMemcpyDeviceToDevice, 0);
    add<<<(n + 127) / 128, 128>>>(to, n, 1);
}

void copies_and_fills() {
    int *to = zeros(), *from = zeros();
    add<<<8, 128>>>(from, kCount, 8);
    copy_and_fill<<<1, 1>>>(to, from, kCount);
    CHECK(cudaDeviceSynchronize());
    const std::vector<int> result = values_of(to);
    for (int i = 0; i < kCount; ++i) EXPECT(result[i] == (i < kCount / 2 ? 9 : 0));
}

__global__ void use_heap(int *out) {
    int *piece = nullptr;
    out[0] = cudaMalloc(&piece, 64);
    piece[3] = 5;
    out[1] = piece[3];
    out[2] = cudaFree(piece);
    int count = 0, device = -1;
    cudaGetDeviceCount(&count);
    cudaGetDevice(&device);
    out[3] = count * 10 + device;
}

void memory_and_questions() {
    int *values = zeros();
    use_heap<<<1, 1>>>(values);
    CHECK(cudaDeviceSynchronize());
    EXPECT((values_of(values, 4) == std::vector<int>{0, 5, 0, 10}));
}

__global__ void wrong_launches(int *errors, int *values) {
    add<<<0, 32>>>(values, 1, 1);
    errors[0] = cudaGetLastError();
    errors[1] = cudaGetLastError();
    add<<<1, 2000>>>(values, 1, 1);
    errors[2] = cudaPeekAtLastError();
    errors[3] = cudaGetLastError();
    add<<<1, 1, 0, reinterpret_cast<cudaStream_t>(0x1234)>>>(values, 1, 1);
    errors[4] = cudaGetLastError();
    add<<<1, 1>>>(values, 1, 1);
    errors[5] = cudaGetLastError();
}

__device__ void copy_text(char *to, const char *text) {
    do *to++ = *text;
    while (*text++);
}

__global__ void name_errors(char *out) {
    copy_text(out, cudaGetErrorName(cudaErrorInvalidConfiguration));
    copy_text(out + 128, cudaGetErrorString(cudaErrorInvalidConfiguration));
    copy_text(out + 256, cudaGetErrorString(cudaSuccess));
    if (cudaGetErrorName(cudaErrorAssert) != cudaGetErrorName(cudaErrorAssert)) *out = 0;
}

void names_of_errors() {
    char *out, got[384];
    CHECK(cudaMalloc(&out, sizeof got));
    name_errors<<<1, 1>>>(out);
    CHECK(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
    EXPECT(!strcmp(got, "cudaErrorInvalidConfiguration"));
    EXPECT(!strcmp(got + 128, cudaGetErrorString(cudaErrorInvalidConfiguration)));
    EXPECT(!strcmp(got + 256, cudaGetErrorString(cudaSuccess)));
}

void what_is_refused() {
    int *errors = zeros(), *values = zeros();
    wrong_launches<<<1, 1>>>(errors, values);
    CHECK(cudaDeviceSynchronize());
    const std::vector<int> wanted{cudaErrorInvalidConfiguration,  cudaSuccess,
                                  cudaErrorInvalidConfiguration,  cudaErrorInvalidConfiguration,
                                  cudaErrorInvalidResourceHandle, cudaSuccess};
    EXPECT(values_of(errors, 6) == wanted);
    EXPECT(values_of(values)[0] == 1);
}

__global__ void many(int *values, int *refused) {
    add<<<1, 1>>>(values + threadIdx.x, 1, 1);
    if (cudaGetLastError() == cudaErrorLaunchPendingCountExceeded) atomicAdd(refused, 1);
}

void too_many_pending() {
    size_t limit = 0;
    CHECK(cudaDeviceGetLimit(&limit, cudaLimitDevRuntimePendingLaunchCount));
    EXPECT(limit == 2048);
    CHECK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 10));
    int *values = zeros(), *refused = zeros();
    many<<<1, 32>>>(values, refused);
    CHECK(cudaDeviceSynchronize());
    int done = 0;
    for (int value : values_of(values)) done += value;
    EXPECT(done == 10 && values_of(refused)[0] == 22);
}

// The parent goes on before what it launched is done, and sees nothing of it.
__global__ void look_too_early(int *values, int *seen) {
    add<<<1, 1>>>(values, 1, 5);
    *seen = *reinterpret_cast<volatile int *>(values);
}

void late_means_late() {
    int *values = zeros(), *seen = zeros();
    look_too_early<<<1, 1>>>(values, seen);
    CHECK(cudaDeviceSynchronize());
    EXPECT(values_of(seen)[0] == 0 && values_of(values)[0] == 5);
}

__global__ void wait_for_the_child(int *values) {
    add<<<1, 1>>>(values, 1, 5);
    while (atomicAdd(values, 0) == 0) {
    }
}

void a_parent_that_waits() {
    int *values = zeros();
    wait_for_the_child<<<1, 1>>>(values);
    EXPECT(cudaDeviceSynchronize() == cudaErrorLaunchFailure);
}

__global__ void past_the_end(int *values, int n) {
    values[n + threadIdx.x] = 1;
}

__global__ void launch_past_the_end(int *values, int n) {
    past_the_end<<<1, 4>>>(values, n);
    add<<<1, 1, 0, cudaStreamTailLaunch>>>(values, 1, 1);
}

void a_child_with_a_hazard() {
    int *values = zeros(100);
    launch_past_the_end<<<1, 1>>>(values, 98);
    EXPECT(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
}

__global__ void __launch_bounds__(64) bounded(int *out) {
    out[threadIdx.x] = 1;
}

__global__ void launch_too_many(int *out) {
    bounded<<<1, 128>>>(out);
}

void a_child_that_the_device_refuses() {
    int *values = zeros();
    launch_too_many<<<1, 1>>>(values);
    EXPECT(cudaDeviceSynchronize() == cudaErrorInvalidValue);
}

// With WARPSIM_DEVICES=2: what a kernel launches runs on its own device, whichever the host has chosen by then.
void on_another_device() {
    CHECK(cudaSetDevice(1));
    int *values = zeros();
    tail_first<<<1, 1>>>(values, kCount);
    cudaEvent_t event;
    CHECK(cudaEventCreate(&event));
    CHECK(cudaEventRecord(event));
    CHECK(cudaSetDevice(0));
    CHECK(cudaEventSynchronize(event));
    CHECK(cudaSetDevice(1));
    const std::vector<int> result = values_of(values);
    for (int i = 0; i < kCount; ++i) EXPECT(result[i] == 10 * (i / 125 + 1) + 4);
}

#define CASE(name) {#name, name}
constexpr struct {
    const char *name;
    void (*run)();
} kCases[] = {
    CASE(each_block_launches),
    CASE(each_thread_launches),
    CASE(order_in_a_stream),
    CASE(tail_launches_come_last),
    CASE(streams_and_events),
    CASE(a_stream_for_a_block),
    CASE(launches_within_launches),
    CASE(launches_too_deep),
    CASE(recursion),
    CASE(parameters_and_dynamic_shared_memory),
    CASE(copies_and_fills),
    CASE(memory_and_questions),
    CASE(what_is_refused),
    CASE(names_of_errors),
    CASE(too_many_pending),
    CASE(late_means_late),
    CASE(a_parent_that_waits),
    CASE(a_child_with_a_hazard),
    CASE(a_child_that_the_device_refuses),
    {"on_another_device", on_another_device},
};

int main(int, char **argv) {
    for (const auto &one : kCases) {
        if (strcmp(one.name, argv[1])) continue;
        one.run();
        printf("passed\n");
        return 0;
    }
    return 2;
}
