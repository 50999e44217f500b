#include "compile.h"

#include <algorithm>
#include <set>

#include "debug_lines.h"
#include "errors.h"
#include "format.h"
#include "lowering.h"
#include "merging.h"
#include "parser.h"
#include "printing.h"

namespace compiler {
namespace {

using ir::Function, ir::Global, ir::Kind, ir::Module, ir::Type, ir::Value, ir::ValueKind;

class Program {
  public:
    explicit Program(const Module &module) : module_(module), lines_(module) {}

    std::string text() {
        std::vector<const Function *> wanted;
        for (const Function &one : module_.functions)
            if (one.is_kernel && !one.is_declaration) wanted.push_back(&one);
        if (wanted.empty()) throw Refusal("there is no kernel");
        std::string kernels, functions, declarations;
        for (size_t i = 0; i < wanted.size(); ++i) {  // grows by those that are called
            const Function &one = *wanted[i];
            const std::string head = this->head(one);
            if (!one.is_kernel) declarations += (one.is_declaration ? ".extern " : "") + head + ";\n";
            if (one.is_declaration) continue;
            machine::Function body = lower(module_, one, symbols_, wanted);
            merge_accesses(body);
            (one.is_kernel ? kernels : functions) +=
                (one.is_kernel ? ".visible " : "") + head + "\n" + directives(one) + print_body(body, lines_) + "\n";
        }
        return target(*wanted[0]) + variables(kernels + functions) + declarations + "\n" + functions + kernels +
               lines_.files() + lines_.strings();
    }

  private:
    static std::string target(const Function &kernel) {
        const auto attribute = [&](const char *name) {
            const auto found = kernel.attributes.find(name);
            return found == kernel.attributes.end() ? std::string() : found->second;
        };
        const std::string cpu = attribute("target-cpu"), features = attribute("target-features");
        const size_t at = features.find("+ptx");
        if (cpu.empty() || at == std::string::npos || features.size() < at + 6)
            throw Refusal("the IR says neither -target-cpu nor -target-feature +ptxNN");
        return format(".version {}.{}\n.target {}\n.address_size 64\n\n", features[at + 4], features[at + 5], cpu);
    }

    std::string head(const Function &function) const {
        const std::string &name = symbols_[function.name];
        std::string text = function.is_kernel ? ".entry " : ".func ";
        if (!function.is_kernel && function.returns->kind != Kind::nothing)
            text += "(" + parameter_declaration(function.returns, 1, false, "result") + ") ";
        text += name + "(";
        for (size_t i = 0; i < function.parameters.size(); ++i) {
            const ir::Parameter &one = function.parameters[i];
            const bool by_value = one.byval && function.is_kernel;
            text += i ? ",\n" : "\n";
            text += parameter_declaration(by_value ? one.byval : one.value->type, one.alignment, function.is_kernel,
                                          format("{}_param_{}", name, i));
        }
        return text + ")";
    }

    std::string directives(const Function &function) const {
        static const std::pair<const char *, const char *> known[] = {
            {"nvvm.maxntid", ".maxntid"},
            {"nvvm.reqntid", ".reqntid"},
            {"nvvm.minctasm", ".minnctapersm"},
            {"nvvm.maxnreg", ".maxnreg"},
            {"nvvm.cluster_dim", ".explicitcluster\n.reqnctapercluster"},
            {"nvvm.maxclusterrank", ".maxclusterrank"}};
        std::string text;
        for (const auto &[attribute, directive] : known)
            if (const auto found = function.attributes.find(attribute); found != function.attributes.end())
                text += format("{} {}\n", directive, found->second);
        if (const std::string size = cluster_size(function); !size.empty())
            text += ".explicitcluster\n.reqnctapercluster " + size + "\n";
        return text;
    }

    // What `__cluster_dims__` says (include/cuda_runtime.h): for GPUs of NVIDIA clang keeps an annotation of it alone.
    std::string cluster_size(const Function &function) const {
        static const std::string begin = "cluster_dims ";
        for (const Global &one : module_.globals) {
            if (one.name != "llvm.global.annotations" || !one.initialiser) continue;
            for (const Value *entry : one.initialiser->operands) {
                const auto found = module_.global_of.find(entry->operands.at(1));
                if (entry->operands.at(0)->text != function.name || found == module_.global_of.end()) continue;
                const std::string &text = found->second->initialiser->text;  // with its null character
                if (!text.starts_with(begin)) continue;
                const std::string size = text.substr(begin.size(), text.size() - begin.size() - 1);
                if (size.find_first_not_of("0123456789, ") != std::string::npos)
                    throw Refusal("__cluster_dims__(" + size + "), which are no plain numbers");
                return size;
            }
        }
        return "";
    }

    // ---- variables ----

    void bytes_of(const Value *value, uint64_t offset, std::vector<uint8_t> &bytes) const {
        const Type *type = value->type;
        if (value->kind == ValueKind::zero || value->kind == ValueKind::undefined) return;
        if (value->kind == ValueKind::number) {
            for (uint64_t i = 0; i < ir::size_of(type); ++i) bytes.at(offset + i) = uint8_t(value->bits >> 8 * i);
        } else if (value->kind == ValueKind::bytes) {
            std::copy(value->text.begin(), value->text.end(), bytes.begin() + static_cast<int64_t>(offset));
        } else if (value->kind == ValueKind::aggregate) {
            for (size_t i = 0; i < value->operands.size(); ++i)
                bytes_of(value->operands[i], offset + ir::offset_of(type, i), bytes);
        } else {
            throw Refusal("a variable whose first value is an address");
        }
    }

    std::string variable(const Global &one) const {
        static const std::pair<unsigned, const char *> spaces[] = {
            {0, ".global"}, {1, ".global"}, {3, ".shared"}, {4, ".const"}};
        const auto *space = std::find_if(std::begin(spaces), std::end(spaces),
                                         [&](const auto &pair) { return pair.first == one.space; });
        if (space == std::end(spaces)) throw Refusal(format("@{} in address space {}", one.name, one.space));
        const uint64_t size = ir::size_of(one.type);
        const uint64_t alignment = std::max(one.alignment, ir::alignment_of(one.type));
        std::string text = one.is_external ? ".extern " : one.space == 3 ? "" : ".visible ";
        text += format("{} .align {} .b8 {}[{}]", space->second, alignment, symbols_[one.name],
                       size ? std::to_string(size) : "");
        if (one.initialiser && one.space != 3) {
            std::vector<uint8_t> bytes(size);
            bytes_of(one.initialiser, 0, bytes);
            if (std::any_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte != 0; })) {
                text += " = {";
                for (size_t i = 0; i < bytes.size(); ++i) text += (i ? "," : "") + std::to_string(bytes[i]);
                text += "}";
            }
        }
        return text + ";\n";
    }

    // Those that the code names, and all that a host program may name.
    std::string variables(const std::string &code) const {
        std::string text;
        for (const Global &one : module_.globals) {
            if (one.name.starts_with("llvm.")) continue;
            const bool is_named = code.find(symbols_[one.name]) != std::string::npos;
            if (is_named || one.space == 1 || one.space == 4) text += variable(one);
        }
        return text.empty() ? "" : text + "\n";
    }

    const Module &module_;
    Symbols symbols_;
    DebugLines lines_;
};

}  // namespace

std::string compile(std::string_view text) {
    const auto module = parse(text);
    return Program(*module).text();
}

}  // namespace compiler
