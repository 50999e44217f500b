#include "instructions/mma/mma.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "core/names.h"
#include "instructions/arithmetic/numbers.h"
#include "machine/addresses.h"
#include "machine/lane_access.h"
#include "machine/tracking.h"

namespace warpsim {
namespace {

// How a shape is made of mma: `left` is its first factor, of 16 x k tiles (8 x k for f64), `right` its second, of
// k x 8.
struct Shape {
    std::string_view name;
    unsigned rows, left_tiles, right_tiles, k;
    bool swapped;         // B's transpose is the left factor, A's the right one
    unsigned packed = 1;  // elements of A and B in what counts as one
};
constexpr Shape kShapes[] = {
    {"m16n16k16", 16, 1, 2, 16, false},
    {"m32n8k16", 16, 2, 1, 16, false},
    {"m8n32k16", 16, 2, 1, 16, true},
    {"m16n16k8", 16, 1, 2, 8, false},
    {"m8n8k4", 8, 1, 1, 4, false},
    // Of 4 bits and of one bit: k counts words of 8 and of 32 elements.
    {"m8n8k32", 8, 1, 1, 4, false, 8},
    {"m8n8k128", 8, 1, 1, 4, false, 32},
};

struct Entry {
    char use;
    const Shape *shape;
    bool row;
    WmmaMatrix matrix;
};

// Row and column, in the product of left and right, of element e of a lane.
WmmaMatrix::Place place_of(const Shape &shape, char factor, unsigned bytes, unsigned e, unsigned lane) {
    const unsigned group = lane / 4, t = lane % 4, halves = shape.rows / 8;
    const auto place = [](unsigned row, unsigned column) {
        return WmmaMatrix::Place{static_cast<uint8_t>(row), static_cast<uint8_t>(column)};
    };
    if (factor == 'c') {
        const unsigned tile = e / (2 * halves), row = 8 * (e / 2 % halves) + group, column = 2 * t + e % 2;
        return shape.left_tiles > 1 ? place(shape.rows * tile + row, column) : place(row, 8 * tile + column);
    }
    const unsigned per_register = bytes < 4 ? 4 / bytes : 1, columns = 4 * per_register;
    const unsigned number = e / per_register, j = e % per_register;
    if (factor == 'a') {
        const unsigned tile_registers = halves * (shape.k / columns), i = number % tile_registers;
        return place(shape.rows * (number / tile_registers) + 8 * (i % halves) + group,
                     columns * (i / halves) + per_register * t + j);
    }
    const unsigned tile_registers = shape.k / columns;
    return place(columns * (number % tile_registers) + per_register * t + j, 8 * (number / tile_registers) + group);
}

WmmaMatrix make_matrix(char use, const Shape &shape, unsigned bytes, bool row) {
    const unsigned left = shape.rows * shape.left_tiles, right = 8 * shape.right_tiles;
    const unsigned m = shape.swapped ? right : left, n = shape.swapped ? left : right;
    const unsigned rows = use == 'b' ? shape.k : m, columns = use == 'a' ? shape.k : n;
    WmmaMatrix matrix;
    matrix.bytes = bytes;
    matrix.packed = use == 'c' ? 1 : shape.packed;
    matrix.elements = rows * columns / kLanes;
    matrix.lines = row ? rows : columns;
    matrix.line_elements = row ? columns : rows;
    const char factor = shape.swapped && use != 'c' ? (use == 'a' ? 'b' : 'a') : use;
    const bool by_row = row != shape.swapped;  // as the product of left and right sees it
    for (unsigned e = 0; e < matrix.elements; ++e) {
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            const WmmaMatrix::Place place = place_of(shape, factor, bytes, e, lane);
            matrix.held[e][lane] = by_row ? place : WmmaMatrix::Place{place.at, place.line};
        }
    }
    std::copy_n(&matrix.held[0][0], sizeof matrix.held / sizeof matrix.held[0][0], &matrix.moved[0][0]);
    const bool transposed = matrix.held[1][0].line != matrix.held[0][0].line;
    if (use != 'c' && bytes == 2 && transposed) {
        for (unsigned e = 0; e < matrix.elements; ++e)
            for (unsigned lane = 0; lane < kLanes; ++lane) {
                const unsigned row_of_tile = 2 * (lane % 4) + e % 2, column_of_tile = lane / 4;
                matrix.moved[e][lane] =
                    matrix.held[e - e % 2 + column_of_tile % 2][4 * row_of_tile + column_of_tile / 2];
            }
    }
    const auto side_by_side = [&](unsigned run) {
        for (unsigned e = 0; e < matrix.elements; ++e)
            for (unsigned lane = 0; lane < kLanes; ++lane) {
                const WmmaMatrix::Place first = matrix.moved[e - e % run][lane], place = matrix.moved[e][lane];
                if (first.at % run || place.line != first.line || place.at != first.at + e % run) return false;
            }
        return true;
    };
    matrix.run = 1;
    while (matrix.elements % (2 * matrix.run) == 0 && side_by_side(2 * matrix.run)) matrix.run *= 2;
    return matrix;
}

const std::vector<Entry> &entries() {
    static const std::vector<Entry> all = [] {
        std::vector<Entry> made;
        const auto add = [&](const Shape &shape, std::string_view uses, unsigned bytes) {
            for (char use : uses)
                for (bool row : {false, true}) made.push_back({use, &shape, row, make_matrix(use, shape, bytes, row)});
        };
        for (const Shape &shape : kShapes) {
            if (shape.k == 16) {
                add(shape, "abc", 2);
                add(shape, "ab", 1);
                add(shape, "c", 4);
            } else {
                add(shape, "abc", shape.k == 8 || shape.packed > 1 ? 4 : 8);
            }
        }
        return made;
    }();
    return all;
}

// What the warp's lanes say: the address of the first element and the distance of lines in elements.
struct Target {
    MemorySpace space = MemorySpace::global;  // or shared
    uint64_t address = 0;                     // an offset in shared memory
    uint64_t stride = 0;
    bool good = false;
};

Target find_target(Warp &w, const Op &op, const WmmaMatrix &matrix) {
    uint64_t address[kLanes];
    lane_addresses(w, op, address);
    const uint32_t *stride = w.lanes<uint32_t>(op.b);
    const int first = std::countr_zero(w.exec);
    Target target{space_of(op), address[first], stride[first], true};
    for (uint32_t rest = w.exec; rest; rest &= rest - 1) {
        const int lane = std::countr_zero(rest);
        if (address[lane] == target.address && stride[lane] == target.stride) continue;
        report_hazard(w, op, HazardKind::illegal_instruction, lane, address[lane],
                      "all lanes must name the same matrix of the " + instruction_at(*w.block->program, op.index) +
                          ": this one's address or stride is not lane " + std::to_string(first) + "'s");
        target.good = false;
        return target;
    }
    if (target.space == MemorySpace::shared && (op.a == kNoSlot || (op.extra & kBase32)))
        target.address = static_cast<uint32_t>(target.address);
    // A line, or 16 bytes of it.
    const unsigned alignment = std::min(16u, matrix.line_elements * matrix.bytes);
    const uint64_t line = target.stride * matrix.bytes;
    if (target.address % alignment || line % (uint64_t{alignment} * matrix.packed)) {
        report_hazard(w, op, HazardKind::misaligned, first, target.address,
                      "the matrix of the " + instruction_at(*w.block->program, op.index) + " begins at a multiple of " +
                          std::to_string(alignment) + " bytes, and so does each of its lines: the address is " +
                          std::to_string(target.address % alignment) + " past one, the stride is " +
                          std::to_string(line / matrix.packed) + " bytes");
        target.good = false;
    }
    target.stride /= matrix.packed;
    if (target.space == MemorySpace::generic) {
        const uint64_t window = target.address & kWindowMask;
        target.space = MemorySpace::global;
        if (window == kSharedWindow) {
            target.space = MemorySpace::shared;
            target.address &= ~kWindowMask;
        } else if (window == kLocalWindow || window == kParamWindow) {
            report_hazard(w, op, HazardKind::invalid_address, first, target.address,
                          "the matrix of the " + instruction_at(*w.block->program, op.index) +
                              " must lie in global or shared memory");
            target.good = false;
        }
    }
    return target;
}

// Calls move(lane, host address, place) for each run of elements of each lane that may be touched.
// values: by lane 16 bytes, those that are stored.
template <class Fill, class Move>
void for_each_run(Warp &w, const Op &op, const WmmaMatrix &matrix, const Target &target, Intent intent,
                  std::byte (*values)[16], Fill fill, Move move) {
    const unsigned bytes = matrix.run * matrix.bytes;
    for (unsigned e = 0; e < matrix.elements; e += matrix.run) {
        uint64_t address[kLanes];
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            const WmmaMatrix::Place place = matrix.moved[e][lane];
            address[lane] = target.address + (place.line * target.stride + place.at) * matrix.bytes;
        }
        fill(e);
        uint32_t exec = w.exec;
        if (target.space == MemorySpace::shared) {
            SharedAccess access;
            exec = access.exec = check_shared(w, op, intent, address, access.offset, bytes, exec);
            if (!exec) continue;
            StoredValues stored;
            stored.bytes = std::min(bytes, 4u);
            stored.components = bytes / stored.bytes;
            stored.stride = sizeof *values;
            for (unsigned c = 0; c < stored.components; ++c) stored.slot[c] = &values[0][c * stored.bytes];
            const bool writes = intent == Intent::write;
            account_shared(w, op, writes ? Access::write : Access::read, access, bytes, writes ? &stored : nullptr);
            for (unsigned lane = 0; lane < kLanes; ++lane)
                address[lane] = reinterpret_cast<uint64_t>(w.block->shared) + access.offset[lane];
        } else {
            Pattern pattern;
            if (!find_global(w, op, MemorySpace::global, intent, address, bytes, exec, pattern)) continue;
        }
        for (uint32_t rest = exec; rest; rest &= rest - 1) {
            const unsigned lane = static_cast<unsigned>(std::countr_zero(rest));
            move(lane, host_pointer(address[lane]), matrix.moved[e][lane]);
        }
    }
}

template <class T>
constexpr unsigned kPerRegister = sizeof(T) < 4 ? 4 / sizeof(T) : 1;

// Register i of the fragment, from the matrix line by line.
template <class T>
struct FragmentRegister {
    alignas(64) T element[kLanes * kPerRegister<T>] = {};
    FragmentRegister(const WmmaMatrix &matrix, const T *dense, unsigned i) {
        for (unsigned j = 0; j < kPerRegister<T>; ++j) {
            const WmmaMatrix::Place *held = matrix.held[(i * kPerRegister<T> + j) % matrix.elements];
            for (unsigned lane = 0; lane < kLanes; ++lane)
                element[lane * kPerRegister<T> + j] = dense[held[lane].line * matrix.line_elements + held[lane].at];
        }
    }
};

template <class T>
void load(Warp &w, const Op &op, const WmmaMatrix &matrix) {
    const Target target = find_target(w, op, matrix);
    alignas(64) T dense[kLanes * WmmaMatrix::kMostElements] = {};  // line by line
    alignas(64) T undefined[kLanes * WmmaMatrix::kMostElements] = {};
    std::byte unused[kLanes][16];
    bool tracked = false;
    if (target.good) {
        for_each_run(
            w, op, matrix, target, Intent::read, unused, [](unsigned) {},
            [&](unsigned, const std::byte *from, WmmaMatrix::Place place) {
                const size_t at = place.line * matrix.line_elements + place.at;
                std::memcpy(&dense[at], from, matrix.run * sizeof(T));
                if (target.space != MemorySpace::shared || !tracks_shared(w)) return;
                tracked = true;
                w.block->shadow->undefined_bits(uint32_t(from - w.block->shared), matrix.run * sizeof(T),
                                                reinterpret_cast<uint8_t *>(&undefined[at]));
            });
    }
    const uint32_t *slots = w.block->program->operand_list.data() + op.list;
    for (unsigned i = 0; i < op.list_count; ++i) {
        constexpr unsigned bytes = kPerRegister<T> * sizeof(T);
        const FragmentRegister<T> fragment(matrix, dense, i);
        for (uint32_t rest = w.exec; rest; rest &= rest - 1) {
            const unsigned lane = static_cast<unsigned>(std::countr_zero(rest));
            std::memcpy(w.regs + slots[i] + lane * bytes, &fragment.element[lane * kPerRegister<T>], bytes);
        }
        if (!tracked) continue;
        uint32_t from[kLanes];
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            const WmmaMatrix::Place held = matrix.held[i * kPerRegister<T> % matrix.elements][lane];
            from[lane] = uint32_t(target.address + (held.line * target.stride + held.at) * matrix.bytes);
        }
        note_loaded_fragment(w, op, {slots[i], bytes}, FragmentRegister<T>(matrix, undefined, i).element, from);
    }
}

template <class T>
void store(Warp &w, const Op &op, const WmmaMatrix &matrix) {
    const Target target = find_target(w, op, matrix);
    if (!target.good) return;
    const uint32_t *slots = w.block->program->operand_list.data() + op.list;
    std::byte values[kLanes][16], undefined[kLanes][16] = {};
    const auto take = [&](const std::byte *regs, unsigned e, std::byte(*to)[16]) {
        for (unsigned j = 0; j < matrix.run; ++j) {
            const T *from = reinterpret_cast<const T *>(regs + slots[(e + j) / kPerRegister<T>]);
            for (unsigned lane = 0; lane < kLanes; ++lane)
                std::memcpy(&to[lane][j * sizeof(T)], &from[lane * kPerRegister<T> + (e + j) % kPerRegister<T>],
                            sizeof(T));
        }
    };
    const bool tracked = target.space == MemorySpace::shared && tracks_shared(w);
    const uint32_t origin = tracked && w.undefined ? first_origin(w, op) : 0;
    for_each_run(
        w, op, matrix, target, Intent::write, values,
        [&](unsigned e) {
            take(w.regs, e, values);
            if (tracked && w.undefined) take(w.undefined->bits(), e, undefined);
        },
        [&](unsigned lane, std::byte *to, WmmaMatrix::Place) {
            std::memcpy(to, values[lane], matrix.run * sizeof(T));
            if (tracked)
                w.block->shadow->stored().set(size_t(to - w.block->shared), matrix.run * sizeof(T),
                                              reinterpret_cast<uint8_t *>(undefined[lane]), origin);
        });
}

}  // namespace

int find_wmma_matrix(char use, std::string_view shape, unsigned element_bytes, bool row) {
    for (const Entry &entry : entries()) {
        if (entry.use == use && entry.shape->name == shape && entry.matrix.bytes == element_bytes && entry.row == row)
            return static_cast<int>(&entry - entries().data());
    }
    return -1;
}

const WmmaMatrix &wmma_matrix(unsigned index) {
    return entries()[index].matrix;
}

void exec_wmma_load(Warp &w, const Op &op) {
    const WmmaMatrix &matrix = wmma_matrix(op.extra >> kWmmaMatrixShift);
    matrix.bytes == 1   ? load<uint8_t>(w, op, matrix)
    : matrix.bytes == 2 ? load<uint16_t>(w, op, matrix)
    : matrix.bytes == 4 ? load<uint32_t>(w, op, matrix)
                        : load<uint64_t>(w, op, matrix);
}

void exec_wmma_store(Warp &w, const Op &op) {
    const WmmaMatrix &matrix = wmma_matrix(op.extra >> kWmmaMatrixShift);
    matrix.bytes == 2   ? store<uint16_t>(w, op, matrix)
    : matrix.bytes == 4 ? store<uint32_t>(w, op, matrix)
                        : store<uint64_t>(w, op, matrix);
}

void exec_wmma_widen(Warp &w, const Op &op) {
    const uint32_t *pairs = w.lanes<uint32_t>(op.a);
    write_lanes<float>(w, op.dst, [=](unsigned i) { return f16_to_float(static_cast<uint16_t>(pairs[i])); });
    write_lanes<float>(w, op.b, [=](unsigned i) { return f16_to_float(static_cast<uint16_t>(pairs[i] >> 16)); });
}

void exec_wmma_narrow(Warp &w, const Op &op) {
    const float *even = w.lanes<float>(op.a), *odd = w.lanes<float>(op.b);
    write_lanes<uint32_t>(w, op.dst, [=](unsigned i) {
        return float_to_f16(even[i]) | static_cast<uint32_t>(float_to_f16(odd[i])) << 16;
    });
}

}  // namespace warpsim
