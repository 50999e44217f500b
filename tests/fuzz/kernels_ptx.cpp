// Random kernels as PTX.
#include <cstdio>

#include "kernels.h"

namespace fuzz {
namespace {

std::string decimal(uint64_t value) {
    return std::to_string(value);
}

class Writer {
  public:
    explicit Writer(const Kernel &kernel) : kernel_(kernel) {}

    std::string text() {
        out_ = ".version 8.0\n.target sm_90\n.address_size 64\n";
        for (unsigned i = 0; i < 2; ++i) function(i);
        out_ +=
            ".visible .entry k(.param .u64 inputs, .param .u64 bins, .param .u64 rows, .param .u64 out)\n{\n"
            ".reg .b32 %v<8>, %t<8>, %n<4>, %me, %gid, %mask;\n.reg .b64 %w<2>, %a<4>, %row, %local, %generic;\n"
            ".reg .pred %p, %q;\n.local .align 16 .b8 mine[32];\n"
            ".shared .align 4 .b8 all[512];\n.shared .align 4 .b8 warps[512];\n.shared .align 16 .b8 sums[64];\n"
            ".shared .align 4 .b8 peers[512];\n.shared .align 16 .b8 staged[4096];\n.shared .align 8 .b8 bar[8];\n";
        line("mov.u32 %me, %tid.x");
        line("mov.u32 %t0, %ctaid.x");
        line("mad.lo.u32 %gid, %t0, " + decimal(kernel_.block) + ", %me");
        line("activemask.b32 %mask");
        line("ld.param.u64 %a0, [inputs]");
        line("mad.wide.u32 %a0, %gid, " + decimal(4 * kInputs) + ", %a0");
        for (unsigned i = 0; i < kVariables; ++i)
            line("ld.global.u32 %v" + decimal(i) + ", [%a0+" + decimal(4 * i) + "]");
        for (unsigned i = 0; i < kWide; ++i) line("mov.b64 %w" + decimal(i) + ", {%v0, %v" + decimal(i + 1) + "}");
        line("ld.param.u64 %row, [rows]");
        line("mad.wide.u32 %row, %gid, " + decimal(kRow) + ", %row");
        line("mov.u64 %local, mine");
        line("cvta.local.u64 %generic, %local");
        for (unsigned i = 0; i < kRow; i += 8) line("st.local.u64 [%local+" + decimal(i) + "], 0");
        statements(kernel_.body, 0);
        store_all();
        line("ret");
        return out_ + "}\n";
    }

  private:
    void line(const std::string &instruction) { out_ += instruction + ";\n"; }
    std::string label() { return "L" + decimal(labels_++); }
    static std::string var(unsigned index) { return "%v" + decimal(index); }

    static std::string of(const Operand &operand, bool is_float = false) {
        if (!operand.immediate) return var(operand.value);
        char digits[16];
        std::snprintf(digits, sizeof digits, is_float ? "0f%08X" : "0x%x", operand.value);
        return digits;
    }

    void function(unsigned index) {
        out_ += ".func (.param .b32 result) f" + decimal(index) + "(.param .b32 x, .param .b32 y)\n{\n" +
                ".reg .b32 %v<2>, %t<2>;\n";
        line("ld.param.b32 %v0, [x]");
        line("ld.param.b32 %v1, [y]");
        statements(kernel_.functions[index], 0);
        line("st.param.b32 [result], %v0");
        line("ret");
        out_ += "}\n";
    }

    void statements(const std::vector<Statement> &list, unsigned depth) {
        for (const Statement &s : list) statement(s, depth);
    }

    void compute(const Statement &s) {
        const Operation &operation = kOperations[s.operation];
        std::string text = std::string(operation.ptx) + ' ' + var(s.a) + ", " + of(s.x);
        if (operation.divides) {
            line("or.b32 %t0, " + of(s.y) + ", 1");
            return line(text + ", %t0");
        }
        if (operation.sources > 1) text += ", " + of(s.y, operation.is_float);
        if (operation.sources > 2) text += ", " + of(s.z, operation.is_float);
        line(text);
    }

    void widen(const Statement &s) {
        const WideOperation &operation = kWideOperations[s.operation];
        std::string text = std::string(operation.ptx) + " %w" + decimal(s.a) + ", " + of(s.x);
        if (operation.narrow > 1) text += ", " + of(s.y);
        if (operation.wide) text += ", %w" + decimal(s.b);
        line(text);
    }

    void compare(const Statement &s) {
        const Comparison &comparison = kComparisons[s.compare];
        line(std::string("setp.") + comparison.ptx + " %p, " + of(s.x) + ", " + of(s.y, comparison.is_float));
    }

    void branch(const Statement &s, unsigned depth) {
        const std::string other = label(), end = label();
        if (s.flag) {
            line("mov.u32 %t0, %ctaid.x");
            line("setp.eq.u32 %p, %t0, 1");
        } else {
            compare(s);
        }
        line("@!%p bra " + other);
        statements(s.body, depth);
        line("bra " + end);
        out_ += other + ":\n";
        statements(s.other, depth);
        out_ += end + ":\n";
    }

    void loop(const Statement &s, unsigned depth) {
        const std::string top = label(), end = label(), counter = "%n" + decimal(depth);
        line(s.flag ? "mov.u32 " + counter + ", " + decimal(s.count)
                    : "and.b32 " + counter + ", " + var(s.a) + ", " + decimal(s.count));
        out_ += top + ":\n";
        line("setp.eq.u32 %p, " + counter + ", 0");
        line("@%p bra " + end);
        statements(s.body, depth + 1);
        line("sub.u32 " + counter + ", " + counter + ", 1");
        line("bra " + top);
        out_ += end + ":\n";
    }

    // %a0 = the place in the thread's row; gives the instruction's state space.
    std::string row_place(const Statement &s) {
        static const char *const kBases[] = {"%local", "%row", "%row", "%generic"};
        static const char *const kSpaces[] = {".local", ".global", "", ""};
        line("and.b32 %t0, " + of(s.z) + ", " + decimal(kRow / s.count - 1));
        line("mad.wide.u32 %a0, %t0, " + decimal(s.count) + ", " + kBases[s.kind % 4]);
        return kSpaces[s.kind % 4];
    }

    void row_store(const Statement &s) {
        const std::string space = row_place(s);
        line("mov.b32 %t1, " + of(s.x));
        line("mov.b32 %t2, " + of(s.y));
        if (s.count == 8)
            line("st" + space + ".v2.b32 [%a0], {%t1, %t2}");
        else if (s.count == 16)
            line("st" + space + ".v4.b32 [%a0], {%t1, %t2, %t2, %t1}");
        else
            line("st" + space + ".b" + decimal(8 * s.count) + " [%a0], %t1");
    }

    void row_load(const Statement &s) {
        const std::string space = row_place(s);
        if (s.count == 8) {
            line("ld" + space + ".v2.u32 {%t1, %t2}, [%a0]");
            line("sub.u32 " + var(s.a) + ", %t1, %t2");
        } else if (s.count == 16) {
            line("ld" + space + ".v4.u32 {%t1, %t2, %t3, %t4}, [%a0]");
            line("sub.u32 %t1, %t1, %t2");
            line("sub.u32 %t3, %t3, %t4");
            line("xor.b32 " + var(s.a) + ", %t1, %t3");
        } else {
            line("ld" + space + (s.flag ? ".s" : ".u") + decimal(8 * s.count) + ' ' + var(s.a) + ", [%a0]");
        }
    }

    // %t1 = base + 4 * index
    void shared_place(const char *base, const std::string &index) {
        line(std::string("mov.u32 %t1, ") + base);
        line("mad.lo.u32 %t1, " + index + ", 4, %t1");
    }

    void exchange(const Statement &s) {
        line("bar.sync 0");
        shared_place("all", "%me");
        line("st.shared.b32 [%t1], " + of(s.x));
        line("bar.sync 0");
        other_thread(s);
        shared_place("all", "%t0");
        line("ld.shared.u32 " + var(s.a) + ", [%t1]");
    }

    void warp_share(const Statement &s) {
        line("bar.warp.sync %mask");
        shared_place("warps", "%me");
        line("st.shared.b32 [%t1], " + of(s.x));
        line("bar.warp.sync %mask");
        line("xor.b32 %t0, %me, " + decimal(s.count));
        line("setp.lt.u32 %p, %t0, " + decimal(kernel_.block));
        line("selp.b32 %t0, %t0, %me, %p");
        shared_place("warps", "%t0");
        line("ld.shared.u32 " + var(s.a) + ", [%t1]");
    }

    void bins(const Statement &s) {
        line("bar.sync 0");
        shared_place("sums", "%me");
        line("setp.lt.u32 %p, %me, " + decimal(kBins));
        line("@%p st.shared.u32 [%t1], 0");
        line("bar.sync 0");
        line("and.b32 %t0, " + of(s.x) + ", 15");
        shared_place("sums", "%t0");
        line("red.shared.add.u32 [%t1], " + of(s.y));
        if (s.flag) line("fence.proxy.async");
        line("bar.sync 0");
        if (s.flag) {
            line("setp.eq.u32 %p, %me, 0");
            line("ld.param.u64 %a0, [bins]");
            line("@%p cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%a0], [sums], 64");
            line("@%p cp.async.bulk.commit_group");
            line("@%p cp.async.bulk.wait_group 0");
        }
        line("and.b32 %t0, " + of(s.z) + ", 15");
        shared_place("sums", "%t0");
        line("ld.shared.u32 " + var(s.a) + ", [%t1]");
    }

    // %t0 = the number of another thread of the block, or the thread's own
    void other_thread(const Statement &s) {
        line("mad.lo.u32 %t0, %me, " + decimal(s.count) + ", " + decimal(s.operation));
        line("rem.u32 %t0, %t0, " + decimal(kernel_.block));
    }

    void bulk(const Statement &s) {
        const std::string again = label(), bytes = decimal(uint64_t{kernel_.block} * kInputs * 4);
        line("bar.sync 0");
        line("setp.eq.u32 %p, %me, 0");
        line("@%p mbarrier.init.shared.b64 [bar], " + decimal(s.flag ? kernel_.block : 1));
        line("@%p fence.mbarrier_init.release.cluster");
        line("bar.sync 0");
        line("mov.u32 %t0, %ctaid.x");
        line("ld.param.u64 %a0, [inputs]");
        line("mad.wide.u32 %a0, %t0, " + bytes + ", %a0");
        line(s.flag ? "@%p mbarrier.expect_tx.relaxed.cta.shared.b64 [bar], " + bytes
                    : "@%p mbarrier.arrive.expect_tx.shared.b64 _, [bar], " + bytes);
        line("@%p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [staged], [%a0], " + bytes +
             ", [bar]");
        if (s.flag) line("mbarrier.arrive.shared.b64 _, [bar]");
        out_ += again + ":\n";
        line("mbarrier.try_wait.parity.shared.b64 %q, [bar], 0");
        line("@!%q bra " + again);
        other_thread(s);
        line("mad.lo.u32 %t0, %t0, " + decimal(kInputs) + ", " + decimal(s.kind));
        shared_place("staged", "%t0");
        line("ld.shared.u32 " + var(s.a) + ", [%t1]");
        line("bar.sync 0");
        line("@%p mbarrier.inval.shared.b64 [bar]");
    }

    void peer(const Statement &s) {
        line("ld.param.u64 %a0, [inputs]");
        line("mad.wide.u32 %a0, %gid, " + decimal(4 * kInputs) + ", %a0");
        line("ld.global.u32 %t0, [%a0+" + decimal(4 * s.kind) + "]");
        shared_place("peers", "%me");
        line("st.shared.b32 [%t1], %t0");
        line("barrier.cluster.arrive");
        line("barrier.cluster.wait");
        other_thread(s);
        shared_place("peers", "%t0");
        line("mov.u32 %t0, %cluster_ctarank");
        line("xor.b32 %t0, %t0, 1");
        line("mapa.shared::cluster.u32 %t1, %t1, %t0");
        line("ld.shared::cluster.u32 " + var(s.a) + ", [%t1]");
        line("barrier.cluster.arrive");
        line("barrier.cluster.wait");
    }

    void global_bins(const Statement &s) {
        line("ld.param.u64 %a0, [bins]");
        line("and.b32 %t0, " + of(s.x) + ", 15");
        line("mad.wide.u32 %a0, %t0, 4, %a0");
        line("red.global.add.u32 [%a0], " + of(s.y));
    }

    void shuffle(const Statement &s) {
        static const char *const kKinds[] = {"up", "down", "bfly", "idx"};
        const unsigned clamp = (32 - s.count) << 8 | (s.kind == 0 ? 0 : 0x1f);
        line(std::string("shfl.sync.") + kKinds[s.kind] + ".b32 %t0|%p, " + of(s.x) + ", " + of(s.y) + ", " +
             decimal(clamp) + ", 0xffffffff");
        line("@!%p xor.b32 %t0, %t0, " + of(s.z));
        line("mov.b32 " + var(s.a) + ", %t0");
    }

    void vote(const Statement &s) {
        static const char *const kVotes[] = {"all", "any", "uni"};
        static const char *const kSums[] = {"add.u32", "min.u32", "max.s32", "and.b32", "or.b32", "xor.b32"};
        if (s.kind == 0) {
            compare(s);
            line("vote.sync.ballot.b32 " + var(s.a) + ", %p, %mask");
        } else if (s.kind < 4) {
            compare(s);
            line(std::string("vote.sync.") + kVotes[s.kind - 1] + ".pred %q, %p, %mask");
            line("selp.b32 " + var(s.a) + ", " + of(s.y) + ", " + of(s.z) + ", %q");
        } else if (s.kind < 10) {
            line(std::string("redux.sync.") + kSums[s.kind - 4] + ' ' + var(s.a) + ", " + of(s.x) + ", %mask");
        } else {
            line("match.any.sync.b32 " + var(s.a) + ", " + of(s.x) + ", %mask");
        }
    }

    void leader(const Statement &s) {
        const std::string end = label();
        compare(s);
        line("mov.b32 %t3, " + of(s.z));
        line("vote.sync.ballot.b32 %t0, %p, %mask");
        line("@!%p bra " + end);
        line("brev.b32 %t1, %t0");
        line("clz.b32 %t1, %t1");
        line("shfl.sync.idx.b32 " + var(s.a) + ", %t3, %t1, 0x1f, %t0");
        line("popc.b32 " + var(s.b) + ", %t0");
        out_ += end + ":\n";
    }

    void barrier(const Statement &s) {
        const std::string number = decimal(s.count);
        if (s.kind == 0) return line("bar.sync " + number);
        if (s.kind == 3) return line("barrier.sync " + number + ", " + decimal(kernel_.block));
        compare(s);
        if (s.kind == 1) return line("bar.red.popc.u32 " + var(s.a) + ", " + number + ", %p");
        line("bar.red.and.pred %q, " + number + ", %p");
        line("selp.b32 " + var(s.a) + ", 1, 0, %q");
    }

    void call(const Statement &s) {
        out_ += "{\n.param .b32 x;\n.param .b32 y;\n.param .b32 r;\n";
        line("st.param.b32 [x], " + of(s.x));
        line("st.param.b32 [y], " + of(s.y));
        line("call.uni (r), f" + decimal(s.kind) + ", (x, y)");
        line("ld.param.b32 " + var(s.a) + ", [r]");
        out_ += "}\n";
    }

    void store_all() {
        line("ld.param.u64 %a0, [out]");
        line("mad.wide.u32 %a0, %gid, " + decimal(4 * kVariables) + ", %a0");
        for (unsigned i = 0; i < kVariables; ++i) line("st.global.u32 [%a0+" + decimal(4 * i) + "], %v" + decimal(i));
    }

    void leave(const Statement &s) {
        const std::string end = label();
        compare(s);
        line("@!%p bra " + end);
        store_all();
        line("exit");
        out_ += end + ":\n";
    }

    void statement(const Statement &s, unsigned depth) {
        switch (s.what) {
            case Do::compute:
                return compute(s);
            case Do::widen:
                return widen(s);
            case Do::narrow:
                line("mov.b64 {%t0, %t1}, %w" + decimal(s.b));
                return line("xor.b32 " + var(s.a) + ", %t0, %t1");
            case Do::select:
                compare(s);
                return line("selp.b32 " + var(s.a) + ", " + of(s.z) + ", " + var(s.a) + ", %p");
            case Do::branch:
                return branch(s, depth);
            case Do::loop:
                return loop(s, depth);
            case Do::row_store:
                return row_store(s);
            case Do::row_load:
                return row_load(s);
            case Do::exchange:
                return exchange(s);
            case Do::warp_share:
                return warp_share(s);
            case Do::bins:
                return bins(s);
            case Do::global_bins:
                return global_bins(s);
            case Do::shuffle:
                return shuffle(s);
            case Do::vote:
                return vote(s);
            case Do::leader:
                return leader(s);
            case Do::barrier:
                return barrier(s);
            case Do::call:
                return call(s);
            case Do::bulk:
                return bulk(s);
            case Do::peer:
                return peer(s);
            case Do::leave:
                return leave(s);
        }
    }

    const Kernel &kernel_;
    std::string out_;
    unsigned labels_ = 0;
};

}  // namespace

std::string ptx_of(const Kernel &kernel) {
    return Writer(kernel).text();
}

}  // namespace fuzz
