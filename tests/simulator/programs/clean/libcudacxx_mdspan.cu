// libcu++: a Jacobi step over mdspans of the row-major and the column-major kind, and a Fourier sum over complex
// numbers.
#include <cuda/std/complex>
#include <cuda/std/mdspan>

#include <cmath>
#include <complex>
#include <cstdio>
#include <utility>

#include "../check.h"

using Extents = cuda::std::dextents<int, 2>;
using Rows = cuda::std::mdspan<float, Extents>;
using Columns = cuda::std::mdspan<const float, Extents, cuda::std::layout_left>;
using Complex = cuda::std::complex<float>;

template <class In>
__global__ void jacobi(Rows out, In in) {
    const int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= in.extent(0) || j >= in.extent(1)) return;
    const bool edge = i == 0 || j == 0 || i == in.extent(0) - 1 || j == in.extent(1) - 1;
    out(i, j) = edge ? in(i, j) : 0.25f * (in(i - 1, j) + in(i + 1, j) + in(i, j - 1) + in(i, j + 1));
}

__global__ void fourier(Complex *out, const float *in, int n) {
    const int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= n) return;
    Complex sum = 0;
    for (int i = 0; i < n; ++i) sum += in[i] * cuda::std::polar(1.0f, -6.2831853f * (i * k % n) / n);
    out[k] = sum;
}

bool step(int rows, int columns) {
    float *in, *out;
    CHECK(cudaMallocManaged(&in, rows * columns * sizeof(float)));
    CHECK(cudaMallocManaged(&out, rows * columns * sizeof(float)));
    for (int i = 0; i < rows * columns; ++i) in[i] = i * 37 % 64;
    const dim3 block(16, 4), grid((columns + 15) / 16, (rows + 3) / 4);
    bool right = true;
    for (bool by_columns : {false, true}) {
        if (by_columns)
            jacobi<<<grid, block>>>(Rows(out, rows, columns), Columns(in, rows, columns));
        else
            jacobi<<<grid, block>>>(Rows(out, rows, columns), Rows(in, rows, columns));
        CHECK(cudaDeviceSynchronize());
        const auto at = [&](int i, int j) { return by_columns ? in[j * rows + i] : in[i * columns + j]; };
        for (int i = 0; i < rows; ++i)
            for (int j = 0; j < columns; ++j) {
                const bool edge = i == 0 || j == 0 || i == rows - 1 || j == columns - 1;
                const float want =
                    edge ? at(i, j) : 0.25f * (at(i - 1, j) + at(i + 1, j) + at(i, j - 1) + at(i, j + 1));
                right = right && out[i * columns + j] == want;
            }
    }
    CHECK(cudaFree(in));
    CHECK(cudaFree(out));
    return right;
}

bool transform(int n) {
    float *in;
    Complex *out;
    CHECK(cudaMallocManaged(&in, n * sizeof *in));
    CHECK(cudaMallocManaged(&out, n * sizeof *out));
    for (int i = 0; i < n; ++i) in[i] = i % 7 - 3;
    fourier<<<(n + 63) / 64, 64>>>(out, in, n);
    CHECK(cudaDeviceSynchronize());
    bool right = true;
    for (int k = 0; k < n; ++k) {
        std::complex<double> want = 0;
        for (int i = 0; i < n; ++i) want += std::polar(double(in[i]), -2 * M_PI * (i * k % n) / n);
        right = right && std::abs(want - std::complex<double>(out[k].real(), out[k].imag())) < 1e-3;
    }
    CHECK(cudaFree(in));
    CHECK(cudaFree(out));
    return right;
}

int main() {
    if (!step(3, 3) || !step(37, 50)) return std::printf("jacobi\n"), 1;
    if (!transform(5) || !transform(100)) return std::printf("fourier\n"), 1;
    std::printf("OK\n");
    return 0;
}
