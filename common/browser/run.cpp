#include "run.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <json_writer.h>
#include <tensor_maps.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>

#include "../host/device_array.h"
#include "../host/reference.h"
#include "device_params.h"
#include "request.h"
#include "runtime/runtime.h"

namespace browser {
namespace {

using flash::CudaError, flash::DeviceArray, flash::must;

cudaLibrary_t loaded(std::string_view ptx) {
    cudaLibrary_t library = nullptr;
    const std::string text(ptx);  // with its null character
    must(cudaLibraryLoadData(&library, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0), "the PTX");
    return library;
}

void launch(cudaLibrary_t library, const Launch &one, void **arguments) {
    cudaKernel_t kernel = nullptr;
    must(cudaLibraryGetKernel(&kernel, library, one.symbol.c_str()), "kernel " + one.symbol);
    const void *entry = reinterpret_cast<const void *>(kernel);
    must(cudaFuncSetAttribute(entry, cudaFuncAttributeMaxDynamicSharedMemorySize, int(one.shared_bytes)),
         "shared memory for the kernel");
    cudaLaunchAttribute early{};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(one.grid[0], one.grid[1], one.grid[2]);
    config.blockDim = dim3(one.threads);
    config.dynamicSmemBytes = one.shared_bytes;
    config.attrs = &early;
    config.numAttrs = one.early;
    must(cudaLaunchKernelExC(&config, entry, arguments), "kernel launch");
}

void launch_all(const Request &request, std::string_view ptx, const FlashParams &params) {
    cudaLibrary_t library = loaded(ptx);
    DeviceParams device = device_params(params);
    TensorMaps maps;
    if (request.Q_box_rows &&
        flash::make_tensor_maps(params, request.Q_box_rows, request.KV_box_rows, maps) != FLASH_OK)
        throw CudaError(flash_last_error());
    void *arguments[] = {&device, &maps};  // as many as the kernel takes are read
    for (const Launch &one : request.launches) launch(library, one, arguments);
    must(cudaDeviceSynchronize(), "the kernel failed");
}

struct Verdict {
    flash::Comparison output;
    std::optional<flash::Comparison> log_sum_exp;
};

std::vector<char> content(const char *name) {
    std::ifstream file(name, std::ios::binary);
    if (!file) throw std::invalid_argument(std::string("there is no file ") + name);
    return {std::istreambuf_iterator<char>(file), {}};
}

void write(const char *name, const DeviceArray &array) {
    const std::vector<char> bytes = array.to_host<char>();
    std::ofstream(name, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// Of tensors that lie in files, with any strides; of e4m3 there are files Q_scales, K_scales and V_scales besides. The
// file O has what O's memory is to hold before the run, and gets what it holds after it; so does log_sum_exp.
void run_given(const Request &request, std::string_view ptx) {
    const DeviceArray Q(content("Q")), K(content("K")), V(content("V")), O(content("O")),
        workspace(request.workspace_bytes),
        log_sum_exp(request.log_sum_exp ? request.problem.rows() * sizeof(float) : 0);
    const bool is_scaled = request.problem.dtype == FLASH_E4M3;
    const auto scales = [&](const char *name) { return is_scaled ? content(name) : std::vector<char>(); };
    const DeviceArray Q_scales(scales("Q_scales")), K_scales(scales("K_scales")), V_scales(scales("V_scales"));
    FlashParams params = request.problem.params(Q.data(), K.data(), V.data(), O.data());
    params.Q_scales = static_cast<const float *>(Q_scales.data());
    params.K_scales = static_cast<const float *>(K_scales.data());
    params.V_scales = static_cast<const float *>(V_scales.data());
    FlashTensor *const tensors[] = {&params.Q, &params.K, &params.V, &params.O};
    for (size_t i = 0; i < request.tensors.size(); ++i) {
        const Strides &strides = request.tensors[i];
        *tensors[i] = {tensors[i]->data, strides.batch, strides.head, strides.row};
    }
    params.log_sum_exp = static_cast<float *>(log_sum_exp.data());
    params.workspace = workspace.data();
    params.workspace_bytes = request.workspace_bytes;
    launch_all(request, ptx, params);
    write("O", O);
    if (request.log_sum_exp) write("log_sum_exp", log_sum_exp);
}

// The device memory of a call, by name.
class CallMemory {
  public:
    explicit CallMemory(const Request &request) : request_(request) {
        for (const Memory &one : request.memory) {
            const std::vector<char> bytes = content(one.name.c_str());
            if (bytes.size() != one.bytes)
                throw std::invalid_argument("the file " + one.name + " has " + std::to_string(bytes.size()) +
                                            " bytes, not " + std::to_string(one.bytes));
            arrays_.emplace(one.name, bytes);
        }
        if (!request.workspace_bytes) return;
        const DeviceArray &workspace = arrays_.emplace("workspace", request.workspace_bytes).first->second;
        must(cudaMemset(workspace.data(), 0, request.zeroed_bytes), "cudaMemset");
    }

    uint64_t at(const Place &place) const {
        const auto found = arrays_.find(place.name);
        if (found == arrays_.end()) throw std::invalid_argument("the request has no memory " + place.name);
        return reinterpret_cast<uintptr_t>(found->second.data()) + place.offset;
    }

    // What is not as it has to be after the call, in the words of running/worker.py; empty where nothing is.
    std::string left_in_workspace() const {
        if (!request_.zeroed_bytes) return {};
        std::vector<char> bytes = arrays_.find("workspace")->second.to_host<char>();
        bytes.resize(request_.zeroed_bytes);
        const size_t found = bytes.size() - std::count(bytes.begin(), bytes.end(), 0);
        if (!found) return {};
        return std::to_string(found) + " of " + std::to_string(bytes.size()) +
               " bytes of the workspace are not zero after the call";
    }

    void write_outputs() const {
        for (const Memory &one : request_.memory) {
            if (one.is_output) write(one.name.c_str(), arrays_.find(one.name)->second);
        }
    }

  private:
    const Request &request_;
    std::map<std::string, DeviceArray> arrays_;
};

void put_map(const Map &map, uint64_t address, unsigned char *to) {
    CUtensorMap made;
    const auto [type, interleave, swizzle, promotion, fill] = map.kinds;
    const CUresult result = cuTensorMapEncodeTiled(
        &made, CUtensorMapDataType(type), map.rank, reinterpret_cast<void *>(uintptr_t(address)), map.size.data(),
        map.stride.data(), map.box.data(), map.step.data(), CUtensorMapInterleave(interleave),
        CUtensorMapSwizzle(swizzle), CUtensorMapL2promotion(promotion), CUtensorMapFloatOOBfill(fill));
    if (result != CUDA_SUCCESS) throw std::invalid_argument("the request has a tensor map that cannot be");
    std::memcpy(to, &made, sizeof made);
}

// Of launches with arguments of their own: the inputs lie in files, and the outputs go there.
void run_call(const Request &request, std::string_view ptx) {
    const CallMemory memory(request);
    cudaLibrary_t library = loaded(ptx);
    for (const Launch &one : request.launches) {
        std::vector<std::vector<unsigned char>> bytes;
        for (const Argument &argument : one.arguments) {
            std::vector<unsigned char> &own = bytes.emplace_back(argument.bytes);
            for (const auto &[offset, place] : argument.pointers) {
                const uint64_t address = memory.at(place);
                std::memcpy(&own[offset], &address, sizeof address);
            }
            for (const auto &[offset, map] : argument.maps) put_map(map, memory.at(map.place), &own[offset]);
        }
        std::vector<void *> arguments;
        for (std::vector<unsigned char> &own : bytes) arguments.push_back(own.data());
        launch(library, one, arguments.data());
    }
    must(cudaDeviceSynchronize(), "the kernel failed");
    if (const std::string wrong = memory.left_in_workspace(); !wrong.empty()) throw CudaError(wrong);
    memory.write_outputs();
}

Verdict run_and_compare(const Request &request, std::string_view ptx) {
    const flash::Problem &problem = request.problem;
    const flash::Inputs inputs = flash::random_inputs(problem, request.seed);
    const auto bytes = [&](const std::vector<uint16_t> &patterns) { return flash::memory(patterns, problem.dtype); };
    const DeviceArray Q(bytes(inputs.Q)), K(bytes(inputs.K)), V(bytes(inputs.V)),
        O(std::vector<uint16_t>(problem.q_elements(), flash::poison)), workspace(request.workspace_bytes),
        log_sum_exp(request.log_sum_exp ? problem.rows() * sizeof(float) : 0);
    const DeviceArray Q_scales(inputs.Q_scales), K_scales(inputs.K_scales), V_scales(inputs.V_scales);
    FlashParams params = problem.params(Q.data(), K.data(), V.data(), O.data());
    params.log_sum_exp = static_cast<float *>(log_sum_exp.data());
    params.Q_scales = static_cast<const float *>(Q_scales.data());
    params.K_scales = static_cast<const float *>(K_scales.data());
    params.V_scales = static_cast<const float *>(V_scales.data());
    params.workspace = workspace.data();
    params.workspace_bytes = request.workspace_bytes;
    launch_all(request, ptx, params);
    const flash::Reference reference = flash::reference(problem, inputs, 1);
    Verdict verdict{compare(problem, O.to_host<uint16_t>(), reference), {}};
    if (request.log_sum_exp) {
        verdict.log_sum_exp = compare_log_sum_exp(problem, log_sum_exp.to_host<float>(), reference);
        verdict.output.passed &= verdict.log_sum_exp->passed;
        verdict.output.message += "; " + verdict.log_sum_exp->message;
    }
    return verdict;
}

// The report of a simulator that has come to life, and the trace where one is wanted, as fields of an object.
void write_report(json::Writer &w) {
    warpsim::rt::Runtime *const runtime = warpsim::rt::Runtime::get();
    w.key("report").raw(runtime ? runtime->reports.text() : "null");
    if (runtime && runtime->traces.wanted()) w.key("trace").raw(runtime->traces.text());
}

std::string failure(const char *status, const std::string &message, bool alive = true) {
    json::Writer w;
    w.open('{').key("status").string(status).key("message").string(message);
    if (alive) {
        write_report(w);
    } else {
        w.key("report").raw("null");
    }
    return w.close('}').take();
}

}  // namespace

std::string run(std::string_view ptx, std::string_view text) {
    bool alive = false;
    try {
        const Request request = parse_request(text);
        for (const auto &[name, value] : request.settings) setenv(name.c_str(), value.c_str(), 1);
        alive = true;
        json::Writer w;
        if (request.given || !request.memory.empty()) {
            request.given ? run_given(request, ptx) : run_call(request, ptx);
            w.open('{').key("status").string("ran").key("message").string("");
            write_report(w);
            return w.close('}').take();
        }
        const auto [output, log_sum_exp] = run_and_compare(request, ptx);
        w.open('{').key("status").string(output.passed ? "right" : "wrong").key("message").string(output.message);
        w.key("passed").boolean(output.passed).key("frobenius").real(output.frobenius);
        w.key("worst").real(output.worst);
        if (log_sum_exp) w.key("log_sum_exp_worst").real(log_sum_exp->worst);
        write_report(w);
        return w.close('}').take();
    } catch (const CudaError &error) {
        return failure("failed", error.what());
    } catch (const std::bad_alloc &) {
        return failure("refused", "there is not enough memory for this problem and its reference", alive);
    } catch (const std::exception &error) {
        return failure("refused", error.what(), alive);
    }
}

}  // namespace browser

extern "C" const char *browser_run(const char *ptx, const char *request) {
    static std::string result;
    result = browser::run(ptx, request);
    return result.c_str();
}
