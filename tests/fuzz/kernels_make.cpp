// Draws random kernels.
#include "kernels.h"

namespace fuzz {
namespace {

class Maker {
  public:
    explicit Maker(uint64_t seed) : random_(seed) {}

    Kernel kernel() {
        Kernel kernel;
        kernel.cluster = cluster_ = random_.one_in(3) ? 2 : 1;
        kernel.grid = kernel.cluster * (1 + below(kernel.cluster == 1 ? 3 : 2));
        full_warps_ = !random_.one_in(4);
        kernel.block = full_warps_ ? 32 * (1 + below(4)) : 32 + below(90);
        sums_in_global_ = random_.one_in(3);
        for (auto &function : kernel.functions)
            for (unsigned n = 1 + below(4); n > 0; --n) function.push_back(compute(2));
        left_ = 4 + below(40);
        kernel.body = list(true, 0, 1 + below(20));
        return kernel;
    }

  private:
    unsigned below(unsigned n) { return static_cast<unsigned>(random_.below(n)); }
    unsigned variable() { return below(kVariables); }
    uint32_t number() { return static_cast<uint32_t>(edge_number(random_)); }

    Operand variable_of(unsigned count) { return {false, below(count)}; }
    Operand operand(unsigned count = kVariables) {
        return random_.one_in(4) ? Operand{true, number()} : variable_of(count);
    }

    Statement compute(unsigned variables) {
        Statement s{.what = Do::compute, .a = below(variables), .operation = below(unsigned(kOperations.size()))};
        s.x = variable_of(variables), s.y = operand(variables), s.z = operand(variables);
        return s;
    }

    // collective: all threads of the block come here together.
    std::vector<Statement> list(bool collective, unsigned depth, unsigned count) {
        std::vector<Statement> statements;
        for (; count > 0 && left_ > 0; --count) {
            --left_;
            statements.push_back(statement(collective, depth));
            if (statements.back().what == Do::leave) collective = false;
        }
        return statements;
    }

    Statement statement(bool collective, unsigned depth) {
        Statement s;
        s.a = variable(), s.b = variable();
        s.x = variable_of(kVariables), s.y = operand(), s.z = operand();
        s.compare = below(unsigned(kComparisons.size()));
        s.kind = below(8);
        s.flag = random_.one_in(2);
        const unsigned way = below(collective ? 24 : 14);
        if (way < 4) return compute(kVariables);
        switch (way) {
            case 4:
                s.what = Do::widen, s.a = below(kWide), s.b = below(kWide);
                s.operation = below(unsigned(kWideOperations.size()));
                break;
            case 5:
                s.what = Do::narrow, s.b = below(kWide);
                break;
            case 6:
                s.what = Do::select;
                break;
            case 7:
                s.what = Do::call, s.kind = below(2);
                break;
            case 8:
            case 9:
                s.what = below(2) ? Do::row_store : Do::row_load;
                s.count = 1u << below(5);
                break;
            case 10:
                s.what = sums_in_global_ ? Do::global_bins : Do::select;
                break;
            case 11:
            case 12:
                if (depth > 3) return compute(kVariables);
                s.what = Do::branch;
                s.flag = s.flag && collective;  // then on the block's number, the same for all
                s.body = list(s.flag, depth + 1, 1 + below(5));
                if (random_.one_in(2)) s.other = list(s.flag, depth + 1, 1 + below(5));
                break;
            case 13:
                if (depth > 2) return compute(kVariables);
                s.what = Do::loop;
                s.flag = s.flag && collective;  // then as often for all
                s.count = s.flag ? 1 + below(3) : 7;
                s.body = list(s.flag, depth + 1, 1 + below(4));
                break;
            case 14:
                s.what = Do::exchange, s.count = 1 + 2 * below(8), s.operation = below(64);
                break;
            case 15:
                s.what = Do::warp_share, s.count = below(32);
                break;
            case 16:
                s.what = Do::bins;
                break;
            case 17:
                if (!full_warps_) return compute(kVariables);
                s.what = Do::shuffle, s.count = 32u >> below(4), s.kind = below(4);
                break;
            case 18:
                s.what = Do::vote, s.kind = below(11);
                break;
            case 19:
                s.what = Do::leader;
                break;
            case 20:
                s.what = Do::barrier, s.kind = below(full_warps_ ? 4 : 3), s.count = below(16);
                break;
            case 21:
                s.what = Do::bulk, s.count = 1 + 2 * below(8), s.operation = below(64);
                break;
            case 22:
                // Only where the blocks of the cluster come together: not behind a branch on the block's number.
                if (depth > 0 || cluster_ == 1) return compute(kVariables);
                s.what = Do::peer, s.count = 1 + 2 * below(8), s.operation = below(64);
                break;
            default:
                // Not from within: what comes behind would miss the lanes.
                if (depth > 0) return compute(kVariables);
                s.what = Do::leave;
        }
        return s;
    }

    Random random_;
    bool full_warps_ = true, sums_in_global_ = false;
    unsigned left_ = 0, cluster_ = 1;
};

}  // namespace

Kernel make_kernel(uint64_t seed) {
    return Maker(seed).kernel();
}

}  // namespace fuzz
