// wmma.load, wmma.mma, wmma.store: see instructions/mma/mma.h.
#include <algorithm>
#include <string>

#include "instructions/convert/convert.h"
#include "instructions/mma/mma.h"
#include "instructions/rows.h"
#include "lower/lowering.h"
#include "machine/addresses.h"
#include "machine/tracking.h"

namespace warpsim {

namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

std::string layout_of(const Instruction &in) {
    return in.has("row") ? "row" : "col";
}

std::string shape_of(const Instruction &in) {
    for (const char *shape : {"m16n16k16", "m32n8k16", "m8n32k16", "m16n16k8", "m8n8k4", "m8n8k32", "m8n8k128"})
        if (in.has(shape)) return shape;
    return "";
}

// .f16 fragments of A and B have 8 registers in every shape; all others as many as their elements need.
size_t register_count(const WmmaMatrix &matrix, char use, const std::string &type) {
    if (type == "f16" && use != 'c') return 8;
    return matrix.bytes < 4 ? matrix.elements * matrix.bytes / 4 : matrix.elements;
}

// Of elements narrower than a byte.
bool narrow(const std::string &shape) {
    return shape == "m8n8k32" || shape == "m8n8k128";
}

// Bytes of what counts as an element: a word where elements are narrower than a byte.
unsigned element_bytes(const std::string &type) {
    return type == "s4" || type == "u4" || type == "b1" ? 4 : ptx::type_bytes(ptx::type_from_name(type));
}

bool type_fits(char use, const std::string &shape, const std::string &type) {
    const auto one_of = [&](std::initializer_list<const char *> types) {
        return std::find(types.begin(), types.end(), type) != types.end();
    };
    if (shape == "m8n8k4") return type == "f64";
    if (shape == "m8n8k32") return use == 'c' ? type == "s32" : one_of({"s4", "u4"});
    if (shape == "m8n8k128") return use == 'c' ? type == "s32" : type == "b1";
    if (shape == "m16n16k8") return use == 'c' ? type == "f32" : type == "tf32";
    return use == 'c' ? one_of({"f16", "f32", "s32"}) : one_of({"f16", "bf16", "s8", "u8"});
}

// wmma.load.{a,b,c}.sync.aligned.layout.shape{.ss}.type r, [p] {, stride}       wmma.store.d...: [p], r {, stride}
void lower_move(Lowering &l, const Instruction &in, bool loads) {
    const std::string name = in.modifiers[1], layout = layout_of(in);
    const std::string shape = shape_of(in), type = in.modifiers.back();
    const char use = loads ? name[0] : 'c';
    MemorySpace space = MemorySpace::generic;
    std::vector<std::string> want = {loads ? "load" : "store", name, "sync", "aligned", layout, shape};
    for (const char *place : {"global", "shared", "shared::cta"}) {
        if (!in.has(place)) continue;
        space = place == std::string("global") ? MemorySpace::global : MemorySpace::shared;
        want.push_back(place);
    }
    want.push_back(type);
    if (in.modifiers != want) l.unsupported(in, "no such combination of modifiers is known to warpsim");
    const int index =
        type_fits(use, shape, type) ? find_wmma_matrix(use, shape, element_bytes(type), layout == "row") : -1;
    if (index < 0) l.unsupported(in, "no such shape or type is known to warpsim");
    if (narrow(shape) && use != 'c' && layout != (use == 'a' ? "row" : "col"))
        l.unsupported(in, "matrices of elements narrower than a byte are A by rows, B by columns");
    const WmmaMatrix &matrix = wmma_matrix(static_cast<unsigned>(index));
    const Operand &place = in.operands[loads ? 1 : 0];
    const std::vector<Operand> fragment = registers_of(in.operands[loads ? 0 : 1]);
    expect_count(l, in, "the fragment", fragment.size(), register_count(matrix, use, type));

    const Lowering::Address address = l.address(place);
    if (space == MemorySpace::generic && address.space_of_symbol == ptx::Space::shared) space = MemorySpace::shared;
    const uint32_t stride = in.operands.size() == 3
                                ? l.source(in.operands[2], Type::b32)
                                : l.constant(uint64_t{matrix.line_elements} * matrix.packed, Type::b32);
    const Type width = matrix.bytes == 8 ? Type::b64 : Type::b32;
    std::vector<uint32_t> slots;
    for (const Operand &operand : fragment)
        slots.push_back(loads ? l.destination(operand, width) : l.source(operand, width));
    const uint32_t list = l.list(slots);
    const OpClass cls = space == MemorySpace::shared   ? (loads ? OpClass::load_shared : OpClass::store_shared)
                        : space == MemorySpace::global ? (loads ? OpClass::load_global : OpClass::store_global)
                                                       : (loads ? OpClass::load_generic : OpClass::store_generic);
    Op &op = l.emit_row(in);
    op.cls = cls;
    op.list = list;
    op.list_count = static_cast<uint16_t>(slots.size());
    op.a = address.slot;
    op.imm = address.offset;
    op.b = stride;
    op.extra = (address.slot_bytes == 4 ? kBase32 : 0) | static_cast<uint32_t>(space) << kSpaceShift |
               static_cast<uint32_t>(index) << kWmmaMatrixShift;
}

// The types of D, A, B and C.
struct Types {
    std::string d, a, b, c;
};

Types types_of(Lowering &l, const Instruction &in, const std::vector<std::string> &m) {
    size_t count = m.size();
    while (count > 0 && (m[count - 1] == "satfinite" || m[count - 1] == "rn")) --count;
    if (count == 8) return {m[6], "f16", "f16", m[7]};
    if (count != 10) l.unsupported(in);
    return {m[6], m[7], m[8], m[9]};
}

// wmma.mma.sync.aligned.alayout.blayout.shape.types d, a, b, c
void lower_wmma_mma(Lowering &l, const Instruction &in) {
    // wmma.mma.op.popc of single bits: op and popc stand where mma has them, behind the rest.
    std::vector<std::string> modifiers = in.modifiers;
    std::string bit_operation;
    if (in.has("popc")) {
        if (modifiers.size() < 3 || modifiers[2] != "popc") l.unsupported(in, ".popc stands behind .xor or .and");
        bit_operation = "." + modifiers[1] + ".popc";
        modifiers.erase(modifiers.begin() + 1, modifiers.begin() + 3);
    }
    const Types types = types_of(l, in, modifiers);
    const std::string shape = shape_of(in);
    const bool integers = types.c == "s32", doubles = types.c == "f64", halves = types.a == "f16";
    for (size_t i : {3, 4})
        if (modifiers[i] != "row" && modifiers[i] != "col") l.unsupported(in);
    std::vector<std::string> want = {"mma", "sync", "aligned", modifiers[3], modifiers[4], shape};
    if (halves) {
        want.insert(want.end(), {types.d, types.c});
    } else {
        want.insert(want.end(), {types.d, types.a, types.b, types.c});
    }
    if (integers && bit_operation.empty() && in.has("satfinite")) want.push_back("satfinite");
    if (doubles && in.has("rn")) want.push_back("rn");
    if (modifiers != want || types.a != types.b || (narrow(shape) && (modifiers[3] != "row" || modifiers[4] != "col")))
        l.unsupported(in, "no such combination of modifiers is known to warpsim");
    const auto index = [&](char use, const std::string &type) {
        return type_fits(use, shape, type) ? find_wmma_matrix(use, shape, element_bytes(type), true) : -1;
    };
    const int a_index = index('a', types.a), b_index = index('b', types.b), c_index = index('c', types.c);
    const int d_index = index('c', types.d);
    // What is multiplied is 32 bits an accumulator, or f16 where both are: see exec_wmma_widen for the mixed forms.
    const std::string sum = types.c == types.d ? types.c : "f32";
    const MmaForm *form = nullptr;
    if (a_index >= 0 && b_index >= 0 && c_index >= 0 && d_index >= 0) {
        const std::string tile = narrow(shape) || doubles ? shape : shape == "m16n16k8" ? "m16n8k8" : "m16n8k16";
        form = find_mma(tile + ".row.col." + sum + "." + types.a + "." + types.b + "." + sum + bit_operation);
    }
    if (!form || (types.c != types.d && !halves))
        l.unsupported(in, "no such shape or combination of types is known to warpsim");

    const std::vector<Operand> d = registers_of(in.operands[0]), a = registers_of(in.operands[1]),
                               b = registers_of(in.operands[2]), c = registers_of(in.operands[3]);
    const auto expect = [&](const char *what, const std::vector<Operand> &have, int matrix, char use,
                            const std::string &type) {
        expect_count(l, in, what, have.size(), register_count(wmma_matrix(static_cast<unsigned>(matrix)), use, type));
    };
    expect("D", d, d_index, 'c', types.d);
    expect("A", a, a_index, 'a', types.a);
    expect("B", b, b_index, 'b', types.b);
    expect("C", c, c_index, 'c', types.c);
    const Type width = doubles ? Type::b64 : Type::b32;
    const auto sources = [&](const std::vector<Operand> &operands) {
        std::vector<uint32_t> slots;
        for (const Operand &operand : operands) slots.push_back(l.source(operand, width));
        return slots;
    };
    std::vector<uint32_t> left = sources(a), right = sources(b), added = sources(c), written, results;
    for (const Operand &operand : d) written.push_back(l.destination(operand, width));
    if (shape == "m8n32k16") std::swap(left, right);

    if (types.c != sum) {
        std::vector<uint32_t> wide;
        for (uint32_t pair : added) {
            wide.insert(wide.end(), {l.scratch(Type::b32), l.scratch(Type::b32)});
            Op &op = l.emit(in, exec_wmma_widen, OpClass::tensor);
            op.a = pair;
            op.dst = wide[wide.size() - 2];
            op.b = wide.back();
        }
        added = wide;
    }
    // One mma writes before the next one reads.
    const bool overwrites = std::any_of(written.begin(), written.end(), [&](uint32_t slot) {
        const auto in_list = [&](const std::vector<uint32_t> &slots) {
            return std::find(slots.begin(), slots.end(), slot) != slots.end();
        };
        return in_list(left) || in_list(right) || (written != added && in_list(added));
    });
    results = written;
    if (types.d != sum || overwrites) {
        results.clear();
        for (size_t i = 0; i < added.size(); ++i) results.push_back(l.scratch(width));
    }
    const unsigned tiles = narrow(shape) || doubles ? 1 : 2;
    const bool left_tiles = shape == "m32n8k16" || shape == "m8n32k16";
    for (unsigned tile = 0; tile < tiles; ++tile) {
        std::vector<uint32_t> slots;
        const auto take = [&](const std::vector<uint32_t> &from, size_t first, size_t count) {
            slots.insert(slots.end(), from.begin() + std::ptrdiff_t(first),
                         from.begin() + std::ptrdiff_t(first + count));
        };
        take(results, tile * form->d, form->d);
        take(left, left_tiles ? tile * form->a : 0, form->a);
        take(right, left_tiles ? 0 : tile * form->b, form->b);
        take(added, tile * form->c, form->c);
        const uint32_t list = l.list(slots);
        Op &op = l.emit_row(in, form->fn);
        op.list = list;
        op.list_count = static_cast<uint16_t>(slots.size());
        op.extra = in.has("satfinite") ? kMmaSaturate : 0;
        op.imm = pack<int64_t>(MmaFragments{form->d, form->a, form->b, form->c});
    }
    if (results == written) return;
    for (size_t i = 0; i < written.size(); ++i) {
        if (types.d != sum) {
            Op &op = l.emit(in, exec_wmma_narrow, OpClass::tensor);
            op.dst = written[i];
            op.a = results[2 * i];
            op.b = results[2 * i + 1];
        } else {
            Op &op = l.emit(in, move_handler(ptx::type_bytes(width)), OpClass::tensor);
            op.dst = written[i];
            op.a = results[i];
        }
    }
}

void lower_wmma_load(Lowering &l, const Instruction &in) {
    lower_move(l, in, true);
}

void lower_wmma_store(Lowering &l, const Instruction &in) {
    lower_move(l, in, false);
}

#define WMMA_SHAPE "{m16n16k16,m32n8k16,m8n32k16,m16n16k8,m8n8k4,m8n8k32,m8n8k128}"
#define WMMA_TYPE "{f16,bf16,tf32,f32,f64,s8,u8,s4,u4,b1,s32}"

constexpr InstructionRow kRows[] = {
    {"wmma.load.{a,b,c}!.sync.aligned.{row,col}." WMMA_SHAPE "{.global,.shared,.shared::cta}." WMMA_TYPE, "d, [a]{, b}",
     OpClass::load_generic, Flow::warp_sync, exec_wmma_load, lower_wmma_load, passes_load},
    {"wmma.store.d!.sync.aligned.{row,col}." WMMA_SHAPE "{.global,.shared,.shared::cta}." WMMA_TYPE, "[a], b{, c}",
     OpClass::store_generic, Flow::warp_sync, exec_wmma_store, lower_wmma_store, passes_store},
    {"wmma.mma{.xor,.and}{.popc}!.sync.aligned*", "d, a, b, c", OpClass::tensor, Flow::warp_sync, nullptr,
     lower_wmma_mma, passes_mma},
};

}  // namespace

std::span<const InstructionRow> wmma_rows() {
    return kRows;
}

}  // namespace warpsim
