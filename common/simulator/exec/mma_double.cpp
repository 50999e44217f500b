// mma.sync of f64: each element is fma(a[K-1], b[K-1], ... fma(a[1], b[1], fma(a[0], b[0], c))), rounded to nearest
// even every time. Fragments as in exec/mma.h, a register holding one element.
#include <cmath>

#include "core/program.h"
#include "core/warp.h"
#include "exec/mma.h"

namespace warpsim {
namespace {

template <unsigned Rows, unsigned K>
void exec_mma_double(Warp &w, const Op &op) {
    constexpr unsigned kHalves = Rows / 8, kA = kHalves * K / 4, kB = K / 4, kD = 2 * kHalves;
    const uint32_t *slots = w.block->program->operand_list.data() + op.list;
    const uint32_t *a = slots + kD, *b = a + kA, *c = b + kB;
    double sums[kD][kLanes];
    for (unsigned i = 0; i < kD; ++i) {
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            const unsigned group = lane / 4, column = 2 * (lane % 4) + i % 2;
            double sum = w.lanes<double>(c[i])[lane];
            for (unsigned k = 0; k < K; ++k)
                sum = std::fma(w.lanes<double>(a[i / 2 + kHalves * (k / 4)])[4 * group + k % 4],
                               w.lanes<double>(b[k / 4])[4 * column + k % 4], sum);
            sums[i][lane] = sum;
        }
    }
    for (unsigned i = 0; i < kD; ++i) write_lanes<double>(w, slots[i], [&](unsigned lane) { return sums[i][lane]; });
}

constexpr MmaForm kForms[] = {
    {"m8n8k4.row.col.f64.f64.f64.f64", exec_mma_double<8, 4>, 2, 1, 1, 2},
    {"m16n8k4.row.col.f64.f64.f64.f64", exec_mma_double<16, 4>, 4, 2, 1, 4},
    {"m16n8k8.row.col.f64.f64.f64.f64", exec_mma_double<16, 8>, 4, 4, 2, 4},
    {"m16n8k16.row.col.f64.f64.f64.f64", exec_mma_double<16, 16>, 4, 8, 4, 4},
};

}  // namespace

const MmaForm *find_mma_double(std::string_view name) {
    for (const MmaForm &form : kForms)
        if (form.name == name) return &form;
    return nullptr;
}

}  // namespace warpsim
