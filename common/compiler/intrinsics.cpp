// The functions llvm.*: a table of those that are one instruction, one of those that are so for several types, and the
// others.
#include <algorithm>
#include <map>
#include <set>

#include "format.h"
#include "lowering_impl.h"

namespace compiler {

using ir::Instruction, ir::Kind, ir::Type;
using machine::Effect, machine::Register;

namespace {

// What has no name here is said so. %d is the result, %e the second one, %0 to %9 are the arguments.
struct Simple {
    const char *text;
    Effect effect = Effect::none;
};

const std::map<std::string_view, Simple> &simple_table() {
    static const std::map<std::string_view, Simple> table = {
        {"nvvm.read.ptx.sreg.tid.x", {"mov.u32 %d, %%tid.x"}},
        {"nvvm.read.ptx.sreg.tid.y", {"mov.u32 %d, %%tid.y"}},
        {"nvvm.read.ptx.sreg.tid.z", {"mov.u32 %d, %%tid.z"}},
        {"nvvm.read.ptx.sreg.ntid.x", {"mov.u32 %d, %%ntid.x"}},
        {"nvvm.read.ptx.sreg.ntid.y", {"mov.u32 %d, %%ntid.y"}},
        {"nvvm.read.ptx.sreg.ntid.z", {"mov.u32 %d, %%ntid.z"}},
        {"nvvm.read.ptx.sreg.ctaid.x", {"mov.u32 %d, %%ctaid.x"}},
        {"nvvm.read.ptx.sreg.ctaid.y", {"mov.u32 %d, %%ctaid.y"}},
        {"nvvm.read.ptx.sreg.ctaid.z", {"mov.u32 %d, %%ctaid.z"}},
        {"nvvm.read.ptx.sreg.nctaid.x", {"mov.u32 %d, %%nctaid.x"}},
        {"nvvm.read.ptx.sreg.nctaid.y", {"mov.u32 %d, %%nctaid.y"}},
        {"nvvm.read.ptx.sreg.nctaid.z", {"mov.u32 %d, %%nctaid.z"}},
        {"nvvm.read.ptx.sreg.laneid", {"mov.u32 %d, %%laneid"}},
        {"nvvm.read.ptx.sreg.warpid", {"mov.u32 %d, %%warpid", Effect::other}},
        {"nvvm.read.ptx.sreg.smid", {"mov.u32 %d, %%smid", Effect::other}},
        {"nvvm.read.ptx.sreg.clock", {"mov.u32 %d, %%clock", Effect::other}},
        {"nvvm.read.ptx.sreg.clock64", {"mov.u64 %d, %%clock64", Effect::other}},
        {"nvvm.read.ptx.sreg.globaltimer", {"mov.u64 %d, %%globaltimer", Effect::other}},
        {"nvvm.read.ptx.sreg.warpsize", {"mov.u32 %d, 32"}},
        {"nvvm.activemask", {"activemask.b32 %d", Effect::other}},
        {"nvvm.barrier.cta.sync.aligned.all", {"bar.sync %0", Effect::other}},
        {"nvvm.barrier.cta.sync.aligned.count", {"bar.sync %0, %1", Effect::other}},
        {"nvvm.barrier.cta.arrive.aligned.count", {"bar.arrive %0, %1", Effect::other}},
        {"nvvm.barrier.cta.sync.all", {"barrier.sync %0", Effect::other}},
        {"nvvm.barrier.cta.sync.count", {"barrier.sync %0, %1", Effect::other}},
        {"nvvm.barrier.cta.red.popc.aligned.all", {"bar.red.popc.u32 %d, %0, %1", Effect::other}},
        {"nvvm.barrier.cta.red.and.aligned.all", {"bar.red.and.pred %d, %0, %1", Effect::other}},
        {"nvvm.barrier.cta.red.or.aligned.all", {"bar.red.or.pred %d, %0, %1", Effect::other}},
        {"nvvm.bar.warp.sync", {"bar.warp.sync %0", Effect::other}},
        {"nvvm.membar.cta", {"membar.cta", Effect::other}},
        {"nvvm.membar.gl", {"membar.gl", Effect::other}},
        {"nvvm.membar.sys", {"membar.sys", Effect::other}},
        {"nvvm.nanosleep", {"nanosleep.u32 %0", Effect::other}},
        {"nvvm.exit", {"exit", Effect::other}},
        {"trap", {"trap", Effect::other}},
        {"debugtrap", {"brkpt", Effect::other}},
        {"nvvm.vote.all.sync", {"vote.sync.all.pred %d, %1, %0", Effect::other}},
        {"nvvm.vote.any.sync", {"vote.sync.any.pred %d, %1, %0", Effect::other}},
        {"nvvm.vote.uni.sync", {"vote.sync.uni.pred %d, %1, %0", Effect::other}},
        {"nvvm.vote.ballot.sync", {"vote.sync.ballot.b32 %d, %1, %0", Effect::other}},
        {"nvvm.match.any.sync.i32", {"match.any.sync.b32 %d, %1, %0", Effect::other}},
        {"nvvm.match.any.sync.i64", {"match.any.sync.b64 %d, %1, %0", Effect::other}},
        {"nvvm.redux.sync.add", {"redux.sync.add.s32 %d, %0, %1", Effect::other}},
        {"nvvm.redux.sync.min", {"redux.sync.min.s32 %d, %0, %1", Effect::other}},
        {"nvvm.redux.sync.max", {"redux.sync.max.s32 %d, %0, %1", Effect::other}},
        {"nvvm.redux.sync.umin", {"redux.sync.min.u32 %d, %0, %1", Effect::other}},
        {"nvvm.redux.sync.umax", {"redux.sync.max.u32 %d, %0, %1", Effect::other}},
        {"nvvm.redux.sync.and", {"redux.sync.and.b32 %d, %0, %1", Effect::other}},
        {"nvvm.redux.sync.or", {"redux.sync.or.b32 %d, %0, %1", Effect::other}},
        {"nvvm.redux.sync.xor", {"redux.sync.xor.b32 %d, %0, %1", Effect::other}},
        {"nvvm.prmt", {"prmt.b32 %d, %0, %1, %2"}},
        {"nvvm.sqrt.rn.f", {"sqrt.rn.f32 %d, %0"}},
        {"nvvm.sqrt.rn.ftz.f", {"sqrt.rn.ftz.f32 %d, %0"}},
        {"nvvm.sqrt.rn.d", {"sqrt.rn.f64 %d, %0"}},
        {"nvvm.sqrt.approx.f", {"sqrt.approx.f32 %d, %0"}},
        {"nvvm.rsqrt.approx.f", {"rsqrt.approx.f32 %d, %0"}},
        {"nvvm.rsqrt.approx.ftz.f", {"rsqrt.approx.ftz.f32 %d, %0"}},
        {"nvvm.rcp.rn.f", {"rcp.rn.f32 %d, %0"}},
        {"nvvm.rcp.approx.ftz.f", {"rcp.approx.ftz.f32 %d, %0"}},
        {"nvvm.div.approx.f", {"div.approx.f32 %d, %0, %1"}},
        {"nvvm.div.full", {"div.full.f32 %d, %0, %1"}},
        {"nvvm.div.rn.f", {"div.rn.f32 %d, %0, %1"}},
        {"nvvm.ex2.approx.f", {"ex2.approx.f32 %d, %0"}},
        {"nvvm.ex2.approx.f32", {"ex2.approx.f32 %d, %0"}},
        {"nvvm.ex2.approx.ftz.f", {"ex2.approx.ftz.f32 %d, %0"}},
        {"nvvm.ex2.approx.ftz.f32", {"ex2.approx.ftz.f32 %d, %0"}},
        {"nvvm.lg2.approx.f", {"lg2.approx.f32 %d, %0"}},
        {"nvvm.lg2.approx.ftz.f", {"lg2.approx.ftz.f32 %d, %0"}},
        {"nvvm.sin.approx.f", {"sin.approx.f32 %d, %0"}},
        {"nvvm.cos.approx.f", {"cos.approx.f32 %d, %0"}},
        {"nvvm.tanh.approx.f", {"tanh.approx.f32 %d, %0"}},
        {"nvvm.tanh.approx.f32", {"tanh.approx.f32 %d, %0"}},
        {"nvvm.add.rn.f", {"add.rn.f32 %d, %0, %1"}},
        {"nvvm.mul.rn.f", {"mul.rn.f32 %d, %0, %1"}},
        {"nvvm.fma.rn.f", {"fma.rn.f32 %d, %0, %1, %2"}},
        {"nvvm.f2i.rn", {"cvt.rni.s32.f32 %d, %0"}},
        {"nvvm.f2i.rz", {"cvt.rzi.s32.f32 %d, %0"}},
        {"nvvm.f2i.rm", {"cvt.rmi.s32.f32 %d, %0"}},
        {"nvvm.f2i.rp", {"cvt.rpi.s32.f32 %d, %0"}},
        {"nvvm.f2ui.rn", {"cvt.rni.u32.f32 %d, %0"}},
        {"nvvm.f2ui.rz", {"cvt.rzi.u32.f32 %d, %0"}},
        {"bitreverse.i32", {"brev.b32 %d, %0"}},
        {"bitreverse.i64", {"brev.b64 %d, %0"}},
    };
    return table;
}

// Of several types: which, by a letter each: h, b, s, d for half, bfloat, float, double; w, l for i32, i64.
struct Typed {
    const char *instruction;  // %t is the type
    const char *types;
};

const std::map<std::string_view, Typed> &typed_table() {
    static const std::map<std::string_view, Typed> table = {
        {"fma", {"fma.rn.%t", "hbsd"}},
        {"fmuladd", {"fma.rn.%t", "hbsd"}},
        {"fabs", {"abs.%t", "hbsd"}},
        {"sqrt", {"sqrt.rn.%t", "sd"}},
        {"minnum", {"min.%t", "hbsd"}},
        {"maxnum", {"max.%t", "hbsd"}},
        {"minimumnum", {"min.%t", "hbsd"}},
        {"maximumnum", {"max.%t", "hbsd"}},
        {"minimum", {"min.NaN.%t", "hbs"}},
        {"maximum", {"max.NaN.%t", "hbs"}},
        {"floor", {"cvt.rmi.%t.%T", "sd"}},
        {"ceil", {"cvt.rpi.%t.%T", "sd"}},
        {"trunc", {"cvt.rzi.%t.%T", "sd"}},
        {"rint", {"cvt.rni.%t.%T", "sd"}},
        {"nearbyint", {"cvt.rni.%t.%T", "sd"}},
        {"roundeven", {"cvt.rni.%t.%T", "sd"}},
        {"exp2", {"ex2.approx.%t", "s"}},
        {"smin", {"min.s%t", "wl"}},
        {"smax", {"max.s%t", "wl"}},
        {"umin", {"min.u%t", "wl"}},
        {"umax", {"max.u%t", "wl"}},
        {"abs", {"abs.s%t", "wl"}},
    };
    return table;
}

char letter_of(const Type *type) {
    switch (type->kind) {
        case Kind::half:
            return 'h';
        case Kind::bfloat:
            return 'b';
        case Kind::single:
            return 's';
        case Kind::real:
            return 'd';
        case Kind::integer:
            return type->bits == 32 ? 'w' : type->bits == 64 ? 'l' : '?';
        default:
            return '?';
    }
}

}  // namespace

// Shuffles are many with one form: llvm.nvvm.shfl.sync.KIND.TYPE[p](mask, value, lane, bounds).
static std::string shuffle_form(const std::string &name) {
    const std::string_view prefix = "nvvm.shfl.sync.";
    if (!name.starts_with(prefix)) return "";
    const std::string kind = name.substr(prefix.size(), name.find('.', prefix.size()) - prefix.size());
    return "shfl.sync." + kind + (name.ends_with("p") ? ".b32 %d|%e, %1, %2, %3, %0" : ".b32 %d, %1, %2, %3, %0");
}

bool Lowering::simple_intrinsic(const Instruction &one, const std::string &name) {
    std::string form = shuffle_form(name);
    Effect effect = Effect::other;
    if (form.empty()) {
        const auto row = simple_table().find(name);
        if (row == simple_table().end()) return false;
        form = row->second.text, effect = row->second.effect;
    }
    std::vector<uint32_t> results;
    for (const ir::Leaf &leaf : ir::leaves_of(one.type)) results.push_back(variable(register_of(leaf.type)));
    std::string text;
    for (size_t i = 0; i < form.size(); ++i) {
        if (form[i] != '%') {
            text += form[i];
            continue;
        }
        const char what = form[++i];
        if (what == '%') {
            text += '%';
        } else if (what == 'd' || what == 'e') {
            text += machine::kDefinition + std::to_string(results.at(what - 'd')) + machine::kEnd;
        } else {
            text += operand(one.operands.at(what - '0'));
        }
    }
    emit(std::move(text), effect);
    Texts found;
    for (const uint32_t result : results) found.push_back(use(result));
    define(one, std::move(found));
    return true;
}

bool Lowering::typed_intrinsic(const Instruction &one, const std::string &name) {
    const auto row = typed_table().find(name.substr(0, name.find('.')));
    if (row == typed_table().end()) return false;
    const bool has_flag = name.starts_with("abs.");
    const size_t count = one.operands.size() - 1 - has_flag;
    std::vector<Texts> arguments;
    for (size_t i = 0; i < count; ++i) arguments.push_back(operands(one.operands[i]));
    Texts found;
    const std::vector<ir::Leaf> leaves = ir::leaves_of(one.type);
    for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
        const Type *type = leaves[leaf].type;
        const bool is_integer = type->kind == Kind::integer;
        std::string instruction = row->second.instruction, all;
        std::string letters = row->second.types;
        const bool narrow = is_integer && type->bits > 1 && type->bits < 32 && letters == "wl";
        if (!narrow && letters.find(letter_of(type)) == std::string::npos)
            refuse("llvm." + name + " of " + ir::to_string(type));
        std::string word = is_integer ? narrow ? "32" : std::to_string(type->bits) : float_type(type);
        if (type->kind == Kind::real && instruction.starts_with("ex2")) refuse("llvm." + name);
        if (const size_t at = instruction.find("%t"); at != std::string::npos) instruction.replace(at, 2, word);
        if (const size_t at = instruction.find("%T"); at != std::string::npos)
            instruction.replace(at, 2, type->kind == Kind::real ? "f64" : "f32");
        const bool is_signed = instruction.find(".s32") != std::string::npos;
        for (size_t i = 0; i < count; ++i) {
            const std::string &value = arguments[i][leaf];
            all += (i ? ", " : "") + (narrow && is_signed ? with_sign(type, value) : value);
        }
        const std::string result = emit_to(register_of(type), instruction, all);
        found.push_back(narrow && is_signed ? narrowed(type, result) : result);
    }
    define(one, std::move(found));
    return true;
}

std::string Lowering::funnel_shift(bool left, const Type *type, const Texts &a) {
    if (type->bits == 32)
        return emit_to(Register::b32, left ? "shf.l.wrap.b32" : "shf.r.wrap.b32",
                       format("{}, {}, {}", a[1], a[0], a[2]));
    if (type->bits == 64) {
        const std::string amount = integer_width(a[2], 64, 32, false);
        const std::string by = emit_to(Register::b32, "and.b32", amount + ", 63");
        const std::string rest = emit_to(Register::b32, "xor.b32", by + ", 63");
        // One of the two is shifted by one more than `rest`, in two steps: never by 64.
        const std::string near = emit_to(Register::b64, left ? "shl.b64" : "shr.u64", a[left ? 0 : 1] + ", " + by);
        const std::string half = emit_to(Register::b64, left ? "shr.u64" : "shl.b64", a[left ? 1 : 0] + ", 1");
        const std::string far = emit_to(Register::b64, left ? "shr.u64" : "shl.b64", half + ", " + rest);
        return emit_to(Register::b64, "or.b64", near + ", " + far);
    }
    if (type->bits != 8 && type->bits != 16) refuse("a funnel shift of " + ir::to_string(type));
    const std::string high = emit_to(Register::b32, "shl.b32", format("{}, {}", a[0], type->bits));
    const std::string both = emit_to(Register::b32, "or.b32", high + ", " + a[1]);
    const std::string by = emit_to(Register::b32, "and.b32", format("{}, {}", a[2], type->bits - 1));
    std::string found = emit_to(Register::b32, left ? "shl.b32" : "shr.u32", both + ", " + by);
    if (left) found = emit_to(Register::b32, "shr.u32", format("{}, {}", found, type->bits));
    return narrowed(type, found);
}

// Of one integer; empty: it is none of these.
std::string Lowering::on_bits(const std::string &base, const Type *type, const Texts &a) {
    const bool is_64 = type->bits > 32;
    const std::string wide = is_64 ? "64" : "32";
    const unsigned spare = (is_64 ? 64 : 32) - type->bits;
    const Register kind = register_of(type);
    const auto widened = [&](const std::string &count) {
        return is_64 ? emit_to(Register::b64, "cvt.u64.u32", count) : count;
    };
    if (base == "ctpop") return widened(emit_to(Register::b32, "popc.b" + wide, a[0]));
    if (base == "ctlz") {
        const std::string count = emit_to(Register::b32, "clz.b" + wide, a[0]);
        return widened(spare ? emit_to(Register::b32, "sub.s32", format("{}, {}", count, spare)) : count);
    }
    if (base == "cttz") {
        std::string value = a[0];
        if (spare)  // a bit behind the last ends the search
            value = emit_to(kind, "or.b" + wide, format("{}, {}", value, uint64_t{1} << type->bits));
        return widened(emit_to(Register::b32, "clz.b" + wide, emit_to(kind, "brev.b" + wide, value)));
    }
    if (base == "bitreverse") {
        const std::string all = emit_to(kind, "brev.b" + wide, a[0]);
        return spare ? emit_to(kind, "shr.u" + wide, format("{}, {}", all, spare)) : all;
    }
    if (base == "bswap" && !is_64) {
        const std::string all = emit_to(Register::b32, "prmt.b32", a[0] + ", 0, 291");  // 0x0123
        return spare ? emit_to(kind, "shr.u32", format("{}, {}", all, spare)) : all;
    }
    if (base == "fshl" || base == "fshr") return funnel_shift(base == "fshl", type, a);
    if (base == "usub.sat")
        return emit_to(kind, "sub.s" + wide, emit_to(kind, "max.u" + wide, a[0] + ", " + a[1]) + ", " + a[1]);
    if (base == "uadd.sat" && !spare) {
        const std::string room = emit_to(kind, "not.b" + wide, a[1]);
        return emit_to(kind, "add.s" + wide, emit_to(kind, "min.u" + wide, a[0] + ", " + room) + ", " + a[1]);
    }
    return "";
}

bool Lowering::bits_intrinsic(const Instruction &one, const std::string &base) {
    static const std::set<std::string_view> known = {"ctpop", "ctlz", "cttz",     "bitreverse", "bswap",
                                                     "fshl",  "fshr", "usub.sat", "uadd.sat"};
    if (!known.contains(base)) return false;
    const bool has_flag = base == "ctlz" || base == "cttz";
    std::vector<Texts> arguments;
    for (size_t i = 0; i + 1 + has_flag < one.operands.size(); ++i) arguments.push_back(operands(one.operands[i]));
    Texts found;
    const std::vector<ir::Leaf> leaves = ir::leaves_of(one.type);
    for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
        if (leaves[leaf].type->bits == 1) refuse("llvm." + base + " of i1");
        Texts own;
        for (const Texts &argument : arguments) own.push_back(argument[leaf]);
        found.push_back(on_bits(base, leaves[leaf].type, own));
        if (found.back().empty()) refuse("llvm." + base + " of " + ir::to_string(leaves[leaf].type));
    }
    define(one, std::move(found));
    return true;
}

void Lowering::intrinsic(const Instruction &one, const std::string &full) {
    const std::string name = full.substr(5);  // without "llvm."
    const auto begins = [&](std::string_view prefix) { return name.starts_with(prefix); };
    if (begins("lifetime.") || begins("dbg.") || begins("assume") || begins("experimental.noalias.scope") ||
        begins("donothing") || begins("sideeffect") || begins("prefetch") || begins("invariant."))
        return;
    if (begins("memcpy.") || begins("memmove.")) return copy_memory(one);
    if (begins("memset.")) return set_memory(one);
    if (simple_intrinsic(one, name)) return;
    const std::string base = name.substr(0, name.rfind('.'));
    if (bits_intrinsic(one, base)) return;
    if (begins("copysign.")) {
        const Type *type = one.type;
        if (type->kind != Kind::single && type->kind != Kind::real) refuse(full);
        const std::string instruction = type->kind == Kind::single ? "copysign.f32" : "copysign.f64";
        const std::string sign = operand(one.operands[1]);
        return define(one, {emit_to(register_of(type), instruction, sign + ", " + operand(one.operands[0]))});
    }
    if (begins("fptosi.sat.") || begins("fptoui.sat.")) {  // as cvt does it
        if (one.type->bits != 32 && one.type->bits != 64) refuse(full);
        const std::string opcode = name.substr(0, 6);
        const Type *from = one.operands[0]->type;
        return define(one, {convert(opcode, from, one.type, operand(one.operands[0]))});
    }
    if (begins("is.constant.")) refuse(full);
    if (!typed_intrinsic(one, name)) refuse("the function " + full);
}

}  // namespace compiler
