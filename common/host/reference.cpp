#include "reference.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <future>
#include <limits>
#include <thread>

#include "bounds.h"

namespace flash {
namespace {

const Bounds &bounds_of(FlashDtype dtype) {
    return dtype == FLASH_FP16 ? bounds_fp16 : dtype == FLASH_BF16 ? bounds_bf16 : bounds_e4m3;
}

// What a head's elements are multiplied by.
double scale_of(const std::vector<float> &scales, size_t head) {
    return scales.empty() ? 1.0 : scales[head];
}

// A row's largest magnitude in each group of numbers that the tensor cores sum at once.
void group_maxima(const double *row, int d, double *maxima) {
    std::fill(maxima, maxima + (d + score_group - 1) / score_group, 0.0);
    for (int x = 0; x < d; ++x) maxima[x / score_group] = std::max(maxima[x / score_group], std::fabs(row[x]));
}

// What the logarithm of the sum of rounded weights may be off by (bounds.h). The first `visible` weights, of which the
// largest is 1, and their sum.
double rounded_sum_error(const Bounds &bounds, const std::vector<double> &weights, int visible, double sum) {
    const double others = 1 - 1 / sum;
    double part = bounds.unit_roundoff * others + std::min(others, sum_error_unit);
    for (int j = 0; j < visible; ++j) part += fine(bounds, weights[j]) / sum;
    return part / (1 - part);
}

// All rows of one batch and head. K, V: [Nkv, d_head] in float64.
void one_head(const Problem &p, int b, int h, const Inputs &inputs, double scale, Reference &out) {
    const int d = p.d_head, kv_head = h / (p.Hq / p.Hkv);
    const Bounds &bounds = bounds_of(p.dtype);
    const bool e4m3 = p.dtype == FLASH_E4M3;
    const int groups = (d + score_group - 1) / score_group;
    const size_t kv = size_t(b) * p.Hkv + kv_head;
    const double Q_scale = scale_of(inputs.Q_scales, size_t(b) * p.Hq + h);
    const double K_scale = scale_of(inputs.K_scales, kv), V_scale = scale_of(inputs.V_scales, kv);
    std::vector<double> K(size_t(p.Nkv) * d), V(size_t(p.Nkv) * d), q(d), weights(p.Nkv), errors(p.Nkv);
    std::vector<double> K_maxima(size_t(p.Nkv) * groups), q_maxima(groups);
    for (int j = 0; j < p.Nkv; ++j) {
        for (int x = 0; x < d; ++x) {
            K[size_t(j) * d + x] = K_scale * to_float(inputs.K[p.kv_offset(b, kv_head, j) + x], p.dtype);
            V[size_t(j) * d + x] = V_scale * to_float(inputs.V[p.kv_offset(b, kv_head, j) + x], p.dtype);
        }
        group_maxima(&K[size_t(j) * d], d, &K_maxima[size_t(j) * groups]);
    }
    for (int i = 0; i < p.Nq; ++i) {
        const size_t row = p.q_offset(b, h, i);
        for (int x = 0; x < d; ++x) q[x] = Q_scale * to_float(inputs.Q[row + x], p.dtype);
        group_maxima(q.data(), d, q_maxima.data());
        const int visible = p.causal ? std::clamp(i + 1 + p.Nkv - p.Nq, 0, p.Nkv) : p.Nkv;
        double row_max = -std::numeric_limits<double>::infinity(), row_sum = 0, largest = 0;
        double score_error = 0;  // the largest of any key
        for (int j = 0; j < visible; ++j) {
            double dot = 0, size = 0, error = 0;
            for (int g = 0; g < groups; ++g) {
                const double before = dot;
                for (int x = g * score_group; x < std::min(d, (g + 1) * score_group); ++x) {
                    const double product = q[x] * K[size_t(j) * d + x];
                    dot += product, size += std::fabs(product);
                }
                const double product = q_maxima[g] * K_maxima[size_t(j) * groups + g];
                error += std::max({product, std::fabs(before), std::fabs(dot)});
            }
            errors[j] = e4m3 ? score_error_unit * std::fabs(scale) * error : 0;
            score_error = std::max(score_error, errors[j]);
            weights[j] = scale * dot;
            row_max = std::max(row_max, weights[j]);
            largest = std::max(largest, std::fabs(scale) * size);
        }
        for (int j = 0; j < visible; ++j) row_sum += weights[j] = std::exp(weights[j] - row_max);
        const size_t sums_row = (size_t(b) * p.Hq + h) * p.Nq + i;
        out.log_sum_exp[sums_row] = visible ? row_max + std::log(row_sum) : row_max;
        out.log_sum_exp_bound[sums_row] = log_sum_exp_unit * (d * largest + p.Nkv / 16.0 + 64) + score_error;
        if (e4m3 && visible) out.log_sum_exp_bound[sums_row] += rounded_sum_error(bounds, weights, visible, row_sum);
        double moved_sum = 0;  // what the sum of the weights is off by, and all elements with it
        for (int j = 0; j < visible; ++j) {
            const double weight = weights[j] / row_sum, moved = fine(bounds, weights[j]) / row_sum + weight * errors[j];
            if (e4m3) moved_sum += moved;
            for (int x = 0; x < d; ++x) {
                out.O[row + x] += weight * V[size_t(j) * d + x];
                out.magnitude[row + x] += weight * std::fabs(V[size_t(j) * d + x]);
                out.fine[row + x] += moved * std::fabs(V[size_t(j) * d + x]);
            }
        }
        for (int x = 0; x < d; ++x) {
            out.fine[row + x] += moved_sum * out.magnitude[row + x];
            if (e4m3) out.magnitude[row + x] += std::fabs(out.O[row + x]);  // the sum is of rounded weights
        }
    }
}

std::string element(const Problem &p, size_t at, double got, double want, double bound) {
    const size_t d = p.d_head, row = at / d;
    size_t b, h, n;
    if (p.layout == Layout::bhnd) {
        n = row % p.Nq, h = row / p.Nq % p.Hq, b = row / p.Nq / p.Hq;
    } else {
        h = row % p.Hq, n = row / p.Hq % p.Nq, b = row / p.Hq / p.Nq;
    }
    char text[200];
    std::snprintf(text, sizeof text, "O[%zu, %zu, %zu, %zu] = %.6g, reference %.6g, off by %.3g (bound %.3g)", b, h, n,
                  at % d, std::isnan(got) ? std::fabs(got) : got, want, std::fabs(got - want), bound);
    return text;
}

}  // namespace

Reference reference(const Problem &problem, const Inputs &inputs, unsigned threads) {
    Reference out;
    out.O.assign(problem.q_elements(), 0.0);
    out.magnitude.assign(problem.q_elements(), 0.0);
    out.fine.assign(problem.q_elements(), 0.0);
    out.log_sum_exp.resize(problem.rows());
    out.log_sum_exp_bound.resize(problem.rows());
    const double scale = problem.params(nullptr, nullptr, nullptr, nullptr).scale;
    const int heads = problem.B * problem.Hq;
    std::atomic<int> next{0};
    const auto work = [&] {
        for (int at; (at = next++) < heads;) {
            one_head(problem, at / problem.Hq, at % problem.Hq, inputs, scale, out);
        }
    };
    if (threads == 1) {
        work();
        return out;
    }
    // Futures and not threads: what a worker throws, e.g. bad_alloc, comes out of get(); and where the system has no
    // thread left, std::async works in this one.
    std::vector<std::future<void>> workers;
    if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
    for (unsigned i = 0; i < threads; ++i) workers.push_back(std::async(work));
    for (std::future<void> &worker : workers) worker.get();
    return out;
}

Comparison compare(const Problem &problem, const std::vector<uint16_t> &O, const Reference &reference) {
    const Bounds &bounds = bounds_of(problem.dtype);
    const FlashDtype type = output_type(problem.dtype);
    const double u = bounds.unit_roundoff, floor = bounds_of(type).half_smallest, limit = bounds.frobenius;
    double error_squares = 0, squares = 0, fine_squares = 0;
    size_t first = 0, worst = 0, wrong = 0, unwritten = 0;
    Comparison result;
    const auto bound = [&](size_t i) {
        return bounds.element * u * reference.magnitude[i] + reference.fine[i] + floor;
    };
    for (size_t i = 0; i < O.size(); ++i) {
        const double got = to_float(O[i], type), want = reference.O[i], error = std::fabs(got - want);
        const double ratio = std::isfinite(got) ? error / bound(i) : std::numeric_limits<double>::infinity();
        error_squares += error * error;
        squares += want * want;
        fine_squares += reference.fine[i] * reference.fine[i];
        unwritten += O[i] == poison;
        if (ratio > 1 && wrong++ == 0) first = i;
        if (ratio > result.worst) result.worst = ratio, worst = i;
    }
    // (fabs: a NaN may have a sign, and nobody wants to read "-nan".)
    result.frobenius = std::fabs(squares > 0 ? std::sqrt(error_squares / squares) : std::sqrt(error_squares));
    const double room = bounds.room * std::sqrt(fine_squares) + floor * std::sqrt(double(O.size()));
    result.passed = result.worst <= 1 && std::sqrt(error_squares) <= limit * std::sqrt(squares) + room;

    char text[200];
    std::snprintf(text, sizeof text, "relative Frobenius error %.3g (limit %g), worst element at %.2f of its bound",
                  result.frobenius, limit, result.worst);
    result.message = text;
    if (wrong > 0) {
        const auto at = [&](size_t i) { return element(problem, i, to_float(O[i], type), reference.O[i], bound(i)); };
        result.message += "; " + std::to_string(wrong) + " of " + std::to_string(O.size()) +
                          " elements beyond their bound; first " + at(first) + "; worst " + at(worst);
    }
    if (unwritten > 0) result.message += "; " + std::to_string(unwritten) + " elements were never written";
    return result;
}

Comparison compare_log_sum_exp(const Problem &problem, const std::vector<float> &sums, const Reference &reference) {
    Comparison result;
    size_t first = 0, wrong = 0;
    for (size_t i = 0; i < sums.size(); ++i) {
        const double got = sums[i], want = reference.log_sum_exp[i];
        const double error = got == want ? 0 : std::fabs(got - want);  // -infinity is equal to itself
        const double ratio =
            std::isfinite(error) ? error / reference.log_sum_exp_bound[i] : std::numeric_limits<double>::infinity();
        if (ratio > 1 && wrong++ == 0) first = i;
        result.worst = std::max(result.worst, ratio);
    }
    result.passed = wrong == 0;
    char text[200];
    if (result.passed) {
        std::snprintf(text, sizeof text, "log-sum-exp at %.1g of its bound", result.worst);
    } else {
        const size_t n = problem.Nq, h = problem.Hq;
        std::snprintf(text, sizeof text,
                      "%zu of %zu rows' log-sum-exp beyond their bound; first log_sum_exp[%zu, %zu, %zu] = %.7g, "
                      "reference %.7g (bound %.3g)",
                      wrong, sums.size(), first / n / h, first / n % h, first % n, sums[first],
                      reference.log_sum_exp[first], reference.log_sum_exp_bound[first]);
    }
    result.message = text;
    return result;
}

}  // namespace flash
