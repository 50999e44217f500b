// Runs one stage from the command line: inputs, launch, comparison with the reference, and times where asked for.

#include <cstdio>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>

#include "device_array.h"
#include "json_writer.h"
#include "options.h"
#include "reference.h"
#include "timing.h"

using namespace flash;

namespace {

enum ExitStatus { right = 0, wrong = 1, wrong_usage = 2, unsupported = 3, cuda_error = 4 };

struct Refused : std::runtime_error {
    ExitStatus exit_status;
    explicit Refused(const std::string &text, ExitStatus exit_status = unsupported)
        : std::runtime_error(text), exit_status(exit_status) {}
};

using flash::must;
void must(FlashStatus status) {
    if (status == FLASH_CUDA_ERROR) throw CudaError(flash_last_error());
    if (status == FLASH_INVALID_ARGUMENT) throw Refused(flash_last_error(), wrong_usage);
    if (status != FLASH_OK) throw Refused(flash_last_error());
}

void print_description(const FlashDescription &d, bool json) {
    if (json) {
        json::Writer w;
        w.open('{').key("title").string(d.title);
        w.key("min_compute").integer(d.min_compute).key("Br").integer(d.Br).key("Bc").integer(d.Bc);
        w.key("threads").integer(d.threads).key("shared_bytes").integer(d.shared_bytes).key("grid").triple(d.grid);
        w.key("log_sum_exp").boolean(d.supports_log_sum_exp);
        w.key("multiple_Nq").integer(d.multiple_Nq).key("multiple_Nkv").integer(d.multiple_Nkv);
        w.key("causal").boolean(d.supports_causal).key("gqa").boolean(d.supports_gqa);
        w.key("positive_scale").boolean(d.positive_scale);
        w.key("registers").integer(d.registers).key("spill_bytes").integer(d.spill_bytes);
        w.key("resident_blocks").integer(d.resident_blocks).key("workspace_bytes").number(d.workspace_bytes);
        if (d.configuration) w.key("configuration").string(d.configuration);
        std::printf("%s\n", w.close('}').take().c_str());
        return;
    }
    std::printf("%s\n", d.title);
    std::printf("  needs             compute capability %d.%d\n", d.min_compute / 10, d.min_compute % 10);
    if (d.configuration) std::printf("  configuration     %s\n", d.configuration);
    if (d.Br) std::printf("  tile              Br = %d, Bc = %d\n", d.Br, d.Bc);
    std::printf("  launch            %d x %d x %d blocks of %d threads\n", d.grid[0], d.grid[1], d.grid[2], d.threads);
    std::printf("  shared memory     %d bytes a block\n", d.shared_bytes);
    std::printf("  registers         %d a thread, %d bytes of local memory\n", d.registers, d.spill_bytes);
    std::printf("  resident blocks   %d a multiprocessor\n", d.resident_blocks);
    if (d.supports_log_sum_exp) std::printf("  also writes       the log-sum-exp of each row\n");
    if (d.workspace_bytes) std::printf("  workspace         %zu bytes\n", d.workspace_bytes);
    std::printf("  limits            Nq a multiple of %d, Nkv of %d; causal: %s; Hq != Hkv: %s; scale: %s\n",
                d.multiple_Nq, d.multiple_Nkv, d.supports_causal ? "yes" : "no", d.supports_gqa ? "yes" : "no",
                d.positive_scale ? "above 0" : "any");
}

int run(const Options &options) {
    const Problem &problem = options.problem;
    const char *configuration = options.configuration.empty() ? nullptr : options.configuration.c_str();
    FlashParams params = problem.params(nullptr, nullptr, nullptr, nullptr);
    params.configuration = configuration;
    FlashDescription description;
    must(flash_describe(&params, &description));
    if (options.describe) {
        print_description(description, options.json);
        return right;
    }

    int device = 0;
    cudaDeviceProp properties{};
    must(cudaGetDevice(&device), "no usable CUDA device");
    must(cudaGetDeviceProperties(&properties, device), "device properties");
    const bool simulated = std::strstr(properties.name, "warpsim") != nullptr;  // "NVIDIA H200 (warpsim)"
    if (options.bench && simulated) {
        throw Refused(
            "--bench needs a GPU: the simulator's time says nothing (`make stage-NN profile` shows counters)");
    }
#ifndef NDEBUG
    if (options.bench) throw Refused("--bench needs a release build: this is a debug build");
#endif

    const Inputs inputs = random_inputs(problem, options.seed);
    const auto bytes = [&](const std::vector<uint16_t> &patterns) { return memory(patterns, problem.dtype); };
    DeviceArray Q(bytes(inputs.Q)), K(bytes(inputs.K)), V(bytes(inputs.V));
    DeviceArray O(std::vector<uint16_t>(problem.q_elements(), poison));
    DeviceArray Q_scales(inputs.Q_scales), K_scales(inputs.K_scales), V_scales(inputs.V_scales);
    DeviceArray workspace(description.workspace_bytes);
    DeviceArray log_sum_exp(description.supports_log_sum_exp ? problem.rows() * sizeof(float) : 0);  // all NaN
    params = problem.params(Q.data(), K.data(), V.data(), O.data());
    params.log_sum_exp = static_cast<float *>(log_sum_exp.data());
    params.Q_scales = static_cast<const float *>(Q_scales.data());
    params.K_scales = static_cast<const float *>(K_scales.data());
    params.V_scales = static_cast<const float *>(V_scales.data());
    params.workspace = workspace.data();
    params.workspace_bytes = description.workspace_bytes;
    params.configuration = configuration;
    must(flash_forward(&params, nullptr));
    if (const cudaError_t error = cudaDeviceSynchronize(); error != cudaSuccess) {
        throw CudaError(std::string("the kernel failed") + (simulated ? ", as the simulator says above" : "") + ": " +
                        cudaGetErrorString(error));
    }
    if (options.once) return right;

    const Reference right_result = reference(problem, inputs);
    Comparison comparison = compare(problem, O.to_host<uint16_t>(), right_result);
    Comparison sums{.passed = true};
    if (description.supports_log_sum_exp) {
        sums = compare_log_sum_exp(problem, log_sum_exp.to_host<float>(), right_result);
        comparison.passed &= sums.passed;
        comparison.message += "; " + sums.message;
    }
    Timing timing;
    if (options.bench && comparison.passed) {
        timing = time_on_gpu([&] { must(flash_forward(&params, nullptr)); }, 3, options.iterations);
    }
    const double tflops = timing.median_ms > 0 ? problem.flops() / timing.median_ms * 1e-9 : 0;
    if (options.json) {
        json::Writer w;
        w.open('{').key("title").string(description.title).key("device").string(properties.name);
        w.key("passed").boolean(comparison.passed);
        w.key("frobenius").real(comparison.frobenius).key("worst").real(comparison.worst);
        if (description.supports_log_sum_exp) w.key("log_sum_exp_worst").real(sums.worst);
        if (tflops > 0) {
            w.key("median_ms").real(timing.median_ms).key("p20_ms").real(timing.p20_ms);
            w.key("p80_ms").real(timing.p80_ms).key("tflops").real(tflops);
        }
        std::printf("%s\n", w.close('}').take().c_str());
    } else {
        std::printf("%s on %s, %s: %s: %s\n", description.title, properties.name, problem.text().c_str(),
                    comparison.passed ? "right" : "WRONG", comparison.message.c_str());
        if (tflops > 0) {
            std::printf("%.4f ms (%.4f to %.4f), %.1f TFLOP/s\n", timing.median_ms, timing.p20_ms, timing.p80_ms,
                        tflops);
        }
    }
    return comparison.passed ? right : wrong;
}

}  // namespace

int main(int argc, char **argv) {
    const Options options = parse_options(argc, argv);
    try {
        return run(options);
    } catch (const Refused &error) {
        std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
        return error.exit_status;
    } catch (const std::bad_alloc &) {
        std::fprintf(stderr, "%s: the host has not enough memory for this problem and its reference\n", argv[0]);
        return unsupported;
    } catch (const CudaError &error) {
        std::fprintf(stderr, "%s: CUDA error: %s\n", argv[0], error.what());
        return cuda_error;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
        return cuda_error;
    }
}
