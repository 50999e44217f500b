// ld, ldu, st, prefetch and the like. atom and red: instructions/memory/atomics.cpp.
#include <algorithm>
#include <string_view>

#include "instructions/convert/convert.h"
#include "instructions/memory/loads_stores.h"
#include "instructions/rows.h"
#include "lower/lowering.h"
#include "machine/addresses.h"
#include "machine/core_ops.h"
#include "machine/tracking.h"

namespace warpsim {

namespace {

// discard, applypriority: Op::b bytes of global memory must be there.
void exec_check_address(Warp &w, const Op &op) {
    uint64_t address[kLanes];
    lane_addresses(w, op, address);
    resolve_global(w, op, MemorySpace::global, Intent::read, address, op.b, w.exec);
}

using ptx::Instruction;
using ptx::Operand;
using ptx::Type;

struct SpaceName {
    const char *modifier;
    MemorySpace space;
};
constexpr SpaceName kSpaces[] = {
    {"global", MemorySpace::global},
    {"shared", MemorySpace::shared},
    {"shared::cta", MemorySpace::shared},
    {"local", MemorySpace::local},
    {"const", MemorySpace::constant},
    {"param", MemorySpace::param},
    {"param::entry", MemorySpace::param},
    {"param::func", MemorySpace::param},
    // Of peers, where it leads there: exec_remote.
    {"shared::cluster", MemorySpace::shared},
};

MemorySpace named_space(const Instruction &in) {
    for (const SpaceName &name : kSpaces)
        if (in.has(name.modifier)) return name.space;
    return MemorySpace::generic;
}

uint32_t order_bits(const Instruction &in) {
    uint32_t bits = 0;
    for (const char *strong : {"volatile", "relaxed", "acquire", "release", "mmio"})
        if (in.has(strong)) bits |= kStrong;
    if (in.has("acquire")) bits |= kAcquire;
    if (in.has("release")) bits |= kRelease;
    if (in.has("cta") || in.has("cluster")) bits |= kTeamScope;
    if (in.has("sys") || in.has("volatile") || in.has("mmio")) bits |= kSystemScope;
    if (in.has("nc")) bits |= kNoncoherent;
    return bits;
}

// Of volatile, relaxed, acquire and release accesses.
Flow strong_flow(Lowering &l, MemorySpace space) {
    const bool elsewhere = space == MemorySpace::global || space == MemorySpace::generic;
    return elsewhere && l.program().communicates ? Flow::ordered : Flow::yield;
}

OpClass load_class(MemorySpace space) {
    switch (space) {
        case MemorySpace::global:
            return OpClass::load_global;
        case MemorySpace::shared:
            return OpClass::load_shared;
        case MemorySpace::local:
            return OpClass::load_local;
        case MemorySpace::constant:
            return OpClass::load_constant;
        case MemorySpace::param:
            return OpClass::load_param;
        default:
            return OpClass::load_generic;
    }
}

OpClass store_class(MemorySpace space) {
    switch (space) {
        case MemorySpace::global:
            return OpClass::store_global;
        case MemorySpace::shared:
            return OpClass::store_shared;
        case MemorySpace::local:
            return OpClass::store_local;
        case MemorySpace::param:
            return OpClass::store_param;
        default:
            return OpClass::store_generic;
    }
}

// What one lane moves, in elements of at most 8 bytes: one of 16 bytes is two, and so is its register.
struct Elements {
    Type type = Type::none;  // of the memory
    std::vector<Operand> operands;
    bool halved = false;  // 16-byte elements, as two of 8
    unsigned bytes() const { return halved ? 8 : ptx::type_bytes(type); }
};

Elements elements_of(Lowering &l, const Instruction &in, const Operand &operand) {
    Elements e;
    e.type = in.modifiers.empty() ? Type::none : ptx::type_from_name(in.modifiers.back());
    if (ptx::type_bytes(e.type) == 0) l.unsupported(in, "elements of 1, 2, 4, 8 or 16 bytes are known");
    e.halved = ptx::type_bytes(e.type) == 16;
    const bool vector = operand.kind == Operand::Kind::vector;
    e.operands = vector ? operand.elements : std::vector<Operand>{operand};
    const size_t named = in.has("v2") ? 2 : in.has("v4") ? 4 : in.has("v8") ? 8 : 1;
    if (e.operands.size() != named || (vector && named == 1))
        l.unsupported(in, "the vector has another number of elements");
    if (named * ptx::type_bytes(e.type) > 32) l.unsupported(in, "a lane moves at most 32 bytes");
    return e;
}

Type bits_type(unsigned bytes) {
    return bytes == 16  ? Type::b128
           : bytes == 8 ? Type::b64
           : bytes == 4 ? Type::b32
           : bytes == 2 ? Type::b16
                        : Type::b8;
}

// The slots of one operand's register, or of its two halves.
void add_slots(std::vector<uint32_t> &slots, uint32_t slot, bool halved) {
    slots.push_back(slot);
    if (halved) slots.push_back(slot + kLanes * 8);
}

void set_data(Op &op, uint32_t &single, const std::vector<uint32_t> &slots, uint32_t list) {
    single = slots[0];
    op.list = list;
    op.list_count = slots.size() > 1 ? static_cast<uint16_t>(slots.size()) : 0;
}

// The width that all registers among the operands share; 0 if there are none or they differ.
unsigned common_register_bytes(Lowering &l, const Instruction &in, const Elements &e, bool &mixed) {
    unsigned common = 0;
    mixed = false;
    for (const Operand &operand : e.operands) {
        const unsigned bytes = l.register_bytes(operand);
        if (bytes == 0) continue;
        if (bytes < ptx::type_bytes(e.type)) l.unsupported(in, "the register is narrower than the element");
        mixed |= common && bytes != common;
        common = bytes;
    }
    return mixed ? 0 : common;
}

// Where .param leads: the kernel's own parameters, or a place in the frame's local memory.
MemorySpace resolve_param_space(MemorySpace space, const Lowering::Address &address) {
    return space == MemorySpace::param && !address.kernel_parameter ? MemorySpace::local : space;
}

void set_address(Op &op, const Lowering::Address &address, uint32_t bits) {
    op.a = address.slot;
    op.imm = address.offset;
    op.extra = bits | (address.slot_bytes == 4 ? kBase32 : 0);
}

// What the rows cannot say: which modifiers go together. vector_bytes: what a lane moves.
void check_modifiers(Lowering &l, const Instruction &in, MemorySpace space, unsigned vector_bytes, size_t operands) {
    const auto begins_with = [&](std::string_view start) {
        return std::any_of(in.modifiers.begin(), in.modifiers.end(),
                           [&](const std::string &modifier) { return modifier.starts_with(start); });
    };
    const auto any_of = [&](std::initializer_list<const char *> names) {
        return std::any_of(names.begin(), names.end(), [&](const char *name) { return in.has(name); });
    };
    const auto refuse_unless = [&](bool good, const char *why) {
        if (!good) l.unsupported(in, why);
    };
    const bool ordered = any_of({"relaxed", "acquire", "release"}), is_volatile = in.has("volatile");
    const bool scoped = any_of({"cta", "cluster", "gpu", "sys"}), mmio = in.has("mmio"), nc = in.has("nc");
    const bool cached = any_of({"ca", "cg", "cs", "lu", "cv", "wb", "wt"}), level1 = begins_with("L1::");
    const bool global = space == MemorySpace::global || space == MemorySpace::generic;
    refuse_unless(ordered == scoped,
                  ordered ? "it needs .cta, .cluster, .gpu or .sys" : "only .relaxed and the like have a scope");
    refuse_unless(!(ordered || is_volatile) || global || space == MemorySpace::shared,
                  "only global and shared memory has order");
    refuse_unless(!mmio || (in.has("relaxed") && in.has("sys") && global),
                  ".mmio is .relaxed, .sys and of global memory");
    refuse_unless(!cached || !(ordered || is_volatile || level1), "a cache operator goes with .weak alone");
    refuse_unless(!level1 || !is_volatile, ".volatile has no hint for L1");
    refuse_unless(!nc || (space == MemorySpace::global && !ordered && !is_volatile && !in.has("weak")),
                  ".nc loads from .global and is not .weak, .volatile or ordered");
    refuse_unless(!nc || !any_of({"lu", "cv"}), ".nc goes with .ca, .cg and .cs");
    refuse_unless(global || !(level1 || begins_with("L2::")), "hints for caches are of global memory");
    refuse_unless(!in.has("L2::cache_hint") || !is_volatile, ".volatile has no cache policy");
    refuse_unless(in.has("L2::cache_hint") == (operands == 3), "a cache policy is what .L2::cache_hint takes");
    refuse_unless(vector_bytes <= 16 || global, "a lane moves at most 16 bytes, or 32 of global memory");
    refuse_unless(!begins_with("L2::evict_") || vector_bytes == 32, ".L2::evict_* goes with 32 bytes");
    refuse_unless(vector_bytes < 32 || in.has("v8") || ptx::type_bytes(ptx::type_from_name(in.modifiers.back())) == 8,
                  "a vector of two has at most 16 bytes");
}

void lower_load(Lowering &l, const Instruction &in) {
    const Elements to = elements_of(l, in, in.operands[0]);
    const Lowering::Address address = l.address(in.operands[1]);
    const MemorySpace named = named_space(in), space = resolve_param_space(named, address);
    check_modifiers(l, in, named, unsigned(to.operands.size()) * ptx::type_bytes(to.type), in.operands.size());

    bool mixed = false;  // registers of different widths
    unsigned width = common_register_bytes(l, in, to, mixed);
    if (to.halved && (mixed || width > 16)) l.unsupported(in);
    if (width == 0) width = ptx::type_bytes(to.type);
    std::vector<uint32_t> slots;
    for (const Operand &operand : to.operands) {
        add_slots(slots, mixed ? l.scratch(bits_type(width)) : l.destination(operand, bits_type(width)), to.halved);
    }
    const AccessShape shape{to.bytes(), to.halved ? 8 : width, unsigned(slots.size()), ptx::is_signed(to.type)};
    const int64_t bytes = int64_t(shape.bytes) * shape.count;
    const bool known = space == MemorySpace::param && address.slot == kNoSlot && address.offset >= 0 &&
                       address.offset <= int64_t(l.program().parameter_bytes) - bytes && address.offset % bytes == 0;
    const Handler handler = known ? load_known_param_handler(shape) : load_handler(space, shape);
    if (!handler) l.unsupported(in, "no such combination of width and vector");
    const uint32_t list = slots.size() > 1 ? l.list(slots) : 0;
    const bool remote = may_be_remote(l, in, space == MemorySpace::generic);
    const uint32_t scratch = remote ? l.scratch(Type::b64) : kNoSlot;
    const uint32_t all_bytes = static_cast<uint32_t>((uint64_t{1} << bytes) - 1), order = order_bits(in);
    const bool partly = (in.used_bytes & all_bytes) != all_bytes && !(order & kStrong) && !known && !remote &&
                        (space == MemorySpace::shared || space == MemorySpace::global || space == MemorySpace::generic);
    Op &op = l.emit(in, partly ? exec_load_of_used_bytes : handler, load_class(named));
    const bool lockstep = in.has("volatile") && !l.in_waiting_loop();
    set_address(op, address, order | (partly ? packed_shape(space, shape) : 0) | (lockstep ? kLockstep : 0));
    if (partly) op.c = in.used_bytes;
    if (op.extra & kStrong) op.flow = strong_flow(l, space);
    set_data(op, op.dst, slots, list);
    if (remote) make_remote(l, op, scratch, space == MemorySpace::generic);
    if (space == MemorySpace::shared && !remote && !partly) op.target = l.shared_variable(in.operands[1]);

    for (size_t i = 0; mixed && i < to.operands.size(); ++i) {
        const unsigned register_bytes = l.register_bytes(to.operands[i]);
        if (register_bytes == 0) continue;
        const uint32_t slot = l.destination(to.operands[i], bits_type(register_bytes));
        Op &widen = l.emit(in, widen_handler({shape.bytes, register_bytes, 1, shape.sign}), OpClass::move);
        widen.dst = slot;
        widen.a = slots[i];
    }
}

void lower_store(Lowering &l, const Instruction &in) {
    const Elements from = elements_of(l, in, in.operands[1]);
    const Lowering::Address address = l.address(in.operands[0]);
    const MemorySpace named = named_space(in), space = resolve_param_space(named, address);
    check_modifiers(l, in, named, unsigned(from.operands.size()) * ptx::type_bytes(from.type), in.operands.size());

    // Where registers differ in width, source() brings all to the memory's.
    bool mixed = false;
    unsigned width = common_register_bytes(l, in, from, mixed);
    if (width == 0) width = ptx::type_bytes(from.type);
    std::vector<uint32_t> slots;
    for (const Operand &operand : from.operands) add_slots(slots, l.source(operand, bits_type(width)), from.halved);
    const AccessShape shape{from.bytes(), from.halved ? 8 : width, unsigned(slots.size()), false};
    const Handler handler = store_handler(space, shape);
    if (!handler) l.unsupported(in, "no such combination of state space, width and vector");
    const uint32_t list = slots.size() > 1 ? l.list(slots) : 0;
    const bool remote = may_be_remote(l, in, space == MemorySpace::generic);
    const uint32_t scratch = remote ? l.scratch(Type::b64) : kNoSlot;
    Op &op = l.emit(in, handler, store_class(named));
    set_address(op, address, order_bits(in) | (in.has("volatile") ? kLockstep : 0));
    if ((op.extra & kStrong) && strong_flow(l, space) == Flow::ordered) op.flow = Flow::ordered;
    set_data(op, op.b, slots, list);
    if (remote) make_remote(l, op, scratch, space == MemorySpace::generic);
    if (space == MemorySpace::shared && !remote) op.target = l.shared_variable(in.operands[0]);
}

// discard.global.L2 [a], 128 and applypriority: hints as well, but of memory that must be there.
void lower_address_check(Lowering &l, const Instruction &in) {
    if (in.operands[1].integer != 128) l.unsupported(in, "the size must be 128");
    const Lowering::Address address = l.address(in.operands[0]);
    Op &op = l.emit_row(in);
    set_address(op, address, 0);
    op.b = static_cast<uint32_t>(in.operands[1].integer);
}

// Cache policies have no effect: any value will do.
void lower_createpolicy(Lowering &l, const Instruction &in) {
    const uint32_t zero = l.constant(0, Type::b64), dst = l.destination(in.operands[0], Type::b64);
    Op &op = l.emit(in, move_handler(8), OpClass::move);
    op.dst = dst;
    op.a = zero;
}

#define L1_HINTS "{.L1::evict_normal,.L1::evict_unchanged,.L1::evict_first,.L1::evict_last,.L1::no_allocate}"
#define L2_HINTS "{.L2::evict_normal,.L2::evict_first,.L2::evict_last}{.L2::cache_hint}"
#define L2_PRIORITY \
    "{L2::evict_last,L2::evict_normal,L2::evict_first,L2::evict_unchanged}{.L2::evict_first,.L2::evict_unchanged}"
#define MEMORY_TYPE ".{b8,b16,b32,b64,b128,u8,u16,u32,u64,s8,s16,s32,s64,f32,f64}"

constexpr InstructionRow kRows[] = {
    // Memory. The class of loads and stores is that of their state space.
    {"ld{.weak,.volatile,.relaxed,.acquire}{.mmio}" SCOPE "{.global," SHARED
     ",.local,.const,.param,.param::entry,.param::func}{.ca,.cg,.cs,.lu,.cv}{.nc}" L1_HINTS L2_HINTS PREFETCH_SIZE
         VECTOR MEMORY_TYPE,
     "d, [a].unified{, b}", OpClass::load_generic, Flow::straight, nullptr, lower_load, passes_load},
    {"ldu{.global}" VECTOR MEMORY_TYPE, "d, [a]", OpClass::load_generic, Flow::straight, nullptr, lower_load,
     passes_load},
    {"st{.weak,.volatile,.relaxed,.release}{.mmio}" SCOPE "{.global," SHARED
     ",.local,.param,.param::func}{.wb,.cg,.cs,.wt}" L1_HINTS L2_HINTS VECTOR MEMORY_TYPE,
     "[a], b{, c}", OpClass::store_generic, Flow::straight, nullptr, lower_store, passes_store},
    {"prefetch{.global,.local}.{L1,L2}", "[a]", OpClass::other, Flow::straight, exec_nothing, lower_plain},
    {"prefetch{.global}.{L2::evict_last,L2::evict_normal}", "[a]", OpClass::other, Flow::straight, exec_nothing,
     lower_plain},
    {"prefetch{.const,.param}.tensormap", "[a]", OpClass::other, Flow::straight, exec_nothing, lower_plain},
    {"prefetchu.L1", "[a]", OpClass::other, Flow::straight, exec_nothing, lower_plain},
    {"discard{.global}.L2", "[a], i", OpClass::other, Flow::straight, exec_check_address, lower_address_check},
    {"applypriority{.global}.L2::evict_normal", "[a], i", OpClass::other, Flow::straight, exec_check_address,
     lower_address_check},
    {"createpolicy.fractional!." L2_PRIORITY ".b64", "d{, a}", OpClass::move, Flow::straight, nullptr,
     lower_createpolicy},
    {"createpolicy.range!{.global}." L2_PRIORITY ".b64", "d, [a], b, c", OpClass::move, Flow::straight, nullptr,
     lower_createpolicy},
    {"createpolicy.cvt!.L2.b64", "d, a", OpClass::move, Flow::straight, nullptr, lower_createpolicy},
};

}  // namespace

std::span<const InstructionRow> memory_rows() {
    return kRows;
}

}  // namespace warpsim
