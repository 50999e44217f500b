// Textures over the program's own memory: rows with a pitch, and a long row that tex1Dfetch reads beyond its ends.
#include <vector>

#include "../check.h"

__global__ void shift_pitched(float *out, cudaTextureObject_t image, int width, int height, int by) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x < width) out[y * width + x] = tex2D<float>(image, (x + by) / float(width) + 0.001f, (y + 0.5f) / height);
}

__global__ void sum_rows(int *out, cudaTextureObject_t values, cudaTextureObject_t starts, int rows) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    int sum = 0;
    for (int k = tex1Dfetch<int>(starts, row); k < tex1Dfetch<int>(starts, row + 1); ++k)
        sum += tex1Dfetch<short>(values, k);
    out[row] = sum + tex1Dfetch<short>(values, -1 - row) + tex1Dfetch<short>(values, 1000000 + row);
}

int main() {
    const int width = 100, height = 6, by = 13;
    std::vector<float> image(width * height), got(width * height);
    for (int i = 0; i < width * height; ++i) image[i] = float(i);
    float *pitched, *out;
    size_t pitch;
    CHECK(cudaMallocPitch(&pitched, &pitch, width * sizeof(float), height));
    CHECK(cudaMalloc(&out, width * height * sizeof(float)));
    CHECK(cudaMemcpy2D(pitched, pitch, image.data(), width * sizeof(float), width * sizeof(float), height,
                       cudaMemcpyHostToDevice));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D.devPtr = pitched;
    resource.res.pitch2D.desc = cudaCreateChannelDesc<float>();
    resource.res.pitch2D.width = width;
    resource.res.pitch2D.height = height;
    resource.res.pitch2D.pitchInBytes = pitch;
    cudaTextureDesc sampling = {};
    sampling.normalizedCoords = true;
    sampling.addressMode[0] = sampling.addressMode[1] = cudaAddressModeWrap;
    cudaTextureObject_t texture;
    CHECK(cudaCreateTextureObject(&texture, &resource, &sampling, nullptr));
    shift_pitched<<<dim3(2, height), 64>>>(out, texture, width, height, by);
    CHECK(cudaMemcpy(got.data(), out, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < width * height; ++i) {
        const float want = image[i / width * width + (i % width + by) % width];
        if (got[i] != want) return printf("pixel %d: %g, not %g\n", i, got[i], want), 1;
    }

    const int rows = 50;
    std::vector<int> starts(rows + 1);
    for (int r = 0; r < rows; ++r) starts[r + 1] = starts[r] + r % 7;
    std::vector<short> values(starts[rows]);
    for (size_t i = 0; i < values.size(); ++i) values[i] = short(i * 31 - 700);
    short *device_values;
    int *device_starts, *sums;
    CHECK(cudaMalloc(&device_values, values.size() * sizeof(short)));
    CHECK(cudaMalloc(&device_starts, starts.size() * sizeof(int)));
    CHECK(cudaMalloc(&sums, rows * sizeof(int)));
    CHECK(cudaMemcpy(device_values, values.data(), values.size() * sizeof(short), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_starts, starts.data(), starts.size() * sizeof(int), cudaMemcpyHostToDevice));
    cudaTextureObject_t linear[2];
    for (int k = 0; k < 2; ++k) {
        cudaResourceDesc row = {};
        row.resType = cudaResourceTypeLinear;
        row.res.linear.devPtr = k ? (void *)device_starts : (void *)device_values;
        row.res.linear.desc = k ? cudaCreateChannelDesc<int>() : cudaCreateChannelDesc<short>();
        row.res.linear.sizeInBytes = k ? starts.size() * sizeof(int) : values.size() * sizeof(short);
        cudaTextureDesc plain = {};
        CHECK(cudaCreateTextureObject(&linear[k], &row, &plain, nullptr));
    }
    sum_rows<<<1, 64>>>(sums, linear[0], linear[1], rows);
    std::vector<int> summed(rows);
    CHECK(cudaMemcpy(summed.data(), sums, rows * sizeof(int), cudaMemcpyDeviceToHost));
    for (int r = 0; r < rows; ++r) {
        int want = 0;
        for (int k = starts[r]; k < starts[r + 1]; ++k) want += values[k];
        if (summed[r] != want) return printf("row %d: %d, not %d\n", r, summed[r], want), 1;
    }
    CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaDestroyTextureObject(linear[0]));
    CHECK(cudaDestroyTextureObject(linear[1]));
    printf("OK\n");
    return 0;
}
