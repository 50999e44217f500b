// warpsim-inspect PROGRAM|FILE.ptx [--json] [--check]: the PTX that a program carries, its kernels and what they are
// made of, and whether the simulator knows every instruction in them.
#include <command_line.h>
#include <json_writer.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fatbin/fatbin.h"
#include "lower/module.h"
#include "memory/global_memory.h"
#include "ptx/charged_lines.h"
#include "ptx/parser.h"

namespace {

using namespace warpsim;

struct ProgramImage {
    std::string target;  // "compute_90a", or the .target of a PTX file
    std::string kind;    // "ptx" or "elf"
    uint64_t bytes = 0;  // as stored
    bool parsed = false;
    std::string error;  // why it could not be parsed or loaded
    ptx::Module module;
    std::string text;
    std::map<std::string, std::string> unsupported;  // kernel -> why the simulator cannot run it; filled by --check
};

struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

std::vector<char> read_file(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw Failure("cannot open " + path + ": " + std::strerror(errno));
    return {std::istreambuf_iterator<char>(file), {}};
}

void parse_into(ProgramImage &image, std::string_view text) {
    try {
        image.module = ptx::parse(text);
        ptx::charge_lines(image.module);
        image.text = text;
        image.parsed = true;
    } catch (const ptx::ParseError &error) {
        image.error = error.what();
    }
}

// Tries to lower every kernel of the image, as a launch would.
void check(ProgramImage &image) {
    if (!image.parsed) return;
    try {
        GlobalMemory memory(1ull << 32);
        const std::unique_ptr<LoadedModule> module = load_module(image.text, memory);
        for (const ptx::Function &function : image.module.functions) {
            if (!function.is_entry || function.is_declaration) continue;
            try {
                find_kernel(*module, function.name);
            } catch (const Unsupported &error) {
                image.unsupported[function.name] = error.what();
            }
        }
    } catch (const std::runtime_error &error) {
        image.error = error.what();
    }
}

template <class T>
T read(const std::vector<char> &file, uint64_t offset) {
    T value;
    if (offset > file.size() || sizeof(T) > file.size() - offset) throw Failure("the ELF file is damaged");
    std::memcpy(&value, file.data() + offset, sizeof(T));
    return value;
}

// The bytes of a 64-bit little-endian ELF file's sections of that name: [offset, size).
std::vector<std::pair<uint64_t, uint64_t>> elf_sections(const std::vector<char> &file, std::string_view wanted) {
    if (read<uint8_t>(file, 4) != 2 || read<uint8_t>(file, 5) != 1)
        throw Failure("only 64-bit little-endian ELF files are read");
    const uint64_t table = read<uint64_t>(file, 40), entry = read<uint16_t>(file, 58);
    const uint64_t count = read<uint16_t>(file, 60), names = read<uint16_t>(file, 62);
    if (count == 0 || entry < 64) throw Failure("the ELF file has no section table: was it stripped of it?");
    const uint64_t name_offset = read<uint64_t>(file, table + names * entry + 24);
    std::vector<std::pair<uint64_t, uint64_t>> found;
    for (uint64_t i = 0; i < count; ++i) {
        const uint64_t header = table + i * entry;
        std::string name;
        for (uint64_t at = name_offset + read<uint32_t>(file, header); name.size() <= wanted.size(); ++at) {
            const char c = read<char>(file, at);
            if (!c) break;
            name += c;
        }
        if (name != wanted) continue;
        const uint64_t offset = read<uint64_t>(file, header + 24), size = read<uint64_t>(file, header + 32);
        if (offset > file.size() || size > file.size() - offset) throw Failure("the ELF file is damaged");
        found.emplace_back(offset, size);
    }
    return found;
}

// Fat binaries stand one behind the other in the section, each aligned to 8 bytes.
std::vector<ProgramImage> images_of_program(const std::vector<char> &file) {
    std::vector<ProgramImage> images;
    for (const char *section : {".nv_fatbin", "__nv_relfatbin"}) {
        for (auto [offset, size] : elf_sections(file, section)) {
            for (uint64_t at = offset, end = offset + size; end - at >= 16;) {
                const uint64_t bytes = uint64_t(read<uint16_t>(file, at + 6)) + read<uint64_t>(file, at + 8);
                if (read<uint32_t>(file, at) != 0xba55ed50) {
                    at += 8;
                    if (at > end) break;
                    continue;
                }
                if (bytes < 16 || bytes > end - at) throw Failure("a fat binary runs past its section");
                for (const fatbin::Entry &entry : fatbin::list(file.data() + at)) {
                    ProgramImage image;
                    image.kind = entry.is_ptx ? "ptx" : "elf";
                    image.target = (entry.is_ptx ? "compute_" : "sm_") + std::to_string(entry.compute);
                    if (entry.suffix) image.target += entry.suffix;
                    image.bytes = entry.payload_bytes;
                    if (entry.is_ptx) {
                        try {
                            parse_into(image, fatbin::ptx_text(entry));
                        } catch (const fatbin::Error &error) {
                            image.error = error.what();
                        }
                    }
                    images.push_back(std::move(image));
                }
                at += (bytes + 7) / 8 * 8;
                if (at > end) break;
            }
        }
    }
    return images;
}

std::map<std::string, size_t> opcode_counts(const ptx::Function &function) {
    std::map<std::string, size_t> counts;
    for (const ptx::Instruction &instruction : function.body) ++counts[instruction.text()];
    return counts;
}

const char *role(const ptx::Function &function) {
    return function.is_entry ? "kernel" : function.is_declaration ? "declared" : "function";
}

void print_text(const std::vector<ProgramImage> &images) {
    for (const ProgramImage &image : images) {
        std::printf("%s %s, %llu bytes stored\n", image.kind == "ptx" ? "PTX" : "machine code", image.target.c_str(),
                    static_cast<unsigned long long>(image.bytes));
        if (!image.error.empty()) std::printf("  error: %s\n", image.error.c_str());
        for (const ptx::Function &function : image.module.functions) {
            if (function.is_declaration) continue;
            std::printf("  %-8s %s: %zu instructions, %zu registers\n", role(function), function.name.c_str(),
                        function.body.size(), function.registers.size());
            if (const auto found = image.unsupported.find(function.name); found != image.unsupported.end())
                std::printf("    not supported: %s\n", found->second.c_str());
            for (const auto &[opcode, count] : opcode_counts(function))
                std::printf("    %8zu %s\n", count, opcode.c_str());
        }
    }
}

void print_json(const std::vector<ProgramImage> &images) {
    std::string out = "{\"version\": 1, \"images\": [";
    const char *image_comma = "";
    for (const ProgramImage &image : images) {
        out += std::string(image_comma) + "\n  {\"kind\": " + json::quoted(image.kind) +
               ", \"target\": " + json::quoted(image.target) + ", \"bytes\": " + std::to_string(image.bytes);
        image_comma = ",";
        if (!image.error.empty()) out += ", \"error\": " + json::quoted(image.error);
        if (image.parsed) {
            const ptx::Module &module = image.module;
            out += ", \"ptx_version\": " + std::to_string(module.version) + ",\n   \"files\": {";
            const char *comma = "";
            for (const auto &[index, path] : module.files) {
                out += std::string(comma) + json::quoted(std::to_string(index)) + ": " + json::quoted(path);
                comma = ", ";
            }
            out += "},\n   \"variables\": [";
            comma = "";
            for (const ptx::Variable &variable : module.variables) {
                out += std::string(comma) + "\n    {\"name\": " + json::quoted(variable.name) +
                       ", \"type\": " + json::quoted(ptx::type_name(variable.type)) +
                       ", \"bytes\": " + std::to_string(variable.bytes) +
                       ", \"align\": " + std::to_string(variable.align) +
                       ", \"external\": " + (variable.external ? "true" : "false") + ", \"initial\": \"";
                for (uint8_t byte : variable.initial) {
                    char hex[3];
                    std::snprintf(hex, sizeof hex, "%02x", byte);
                    out += hex;
                }
                out += "\", \"relocations\": [";
                const char *inner = "";
                for (const auto &r : variable.relocations) {
                    out += std::string(inner) + "{\"offset\": " + std::to_string(r.offset) +
                           ", \"symbol\": " + json::quoted(r.symbol) + ", \"addend\": " + std::to_string(r.addend) +
                           ", \"generic\": " + (r.generic ? "true" : "false") +
                           ", \"byte\": " + (r.mask_byte == ~0u ? "null" : std::to_string(r.mask_byte)) + "}";
                    inner = ", ";
                }
                out += "]}";
                comma = ",";
            }
            out += "],\n   \"functions\": [";
            comma = "";
            for (const ptx::Function &function : module.functions) {
                out += std::string(comma) + "\n    {\"name\": " + json::quoted(function.name) + ", \"role\": \"" +
                       role(function) + "\", \"registers\": " + std::to_string(function.registers.size()) +
                       ", \"instructions\": " + std::to_string(function.body.size());
                comma = ",";
                const auto sizes = [&](const char *key, const std::vector<ptx::Variable> &variables) {
                    out += std::string(", \"") + key + "\": [";
                    const char *inner = "";
                    for (const ptx::Variable &variable : variables) {
                        out += inner + std::to_string(variable.bytes);
                        inner = ", ";
                    }
                    out += "]";
                };
                sizes("parameters", function.parameters);
                sizes("returns", function.returns);
                out += ", \"directives\": {";
                const char *inner = "";
                for (const auto &[name, values] : function.directives) {
                    out += inner + json::quoted(name) + ": [";
                    for (size_t i = 0; i < values.size(); ++i) out += (i ? ", " : "") + std::to_string(values[i]);
                    out += "]";
                    inner = ", ";
                }
                out += "}, \"opcodes\": {";
                inner = "";
                for (const auto &[opcode, count] : opcode_counts(function)) {
                    out += inner + json::quoted(opcode) + ": " + std::to_string(count);
                    inner = ", ";
                }
                out += "}";
                if (const auto found = image.unsupported.find(function.name); found != image.unsupported.end())
                    out += ", \"unsupported\": " + json::quoted(found->second);
                out += ", \"lines\": {";  // source lines that have code: "file:line" -> instructions
                std::map<std::pair<uint32_t, uint32_t>, size_t> lines;
                for (const ptx::Instruction &i : function.body)
                    if (i.source.line) ++lines[{i.source.file, i.source.line}];
                inner = "";
                for (const auto &[where, count] : lines) {
                    out += inner + json::quoted(std::to_string(where.first) + ":" + std::to_string(where.second)) +
                           ": " + std::to_string(count);
                    inner = ", ";
                }
                out += "}}";
            }
            out += "]";
        }
        out += "}";
    }
    std::puts((out + "]}").c_str());
}

}  // namespace

int main(int argc, char **argv) {
    bool json = false, wants_check = false, wants_ptx = false;
    const command_line::CommandLine line(
        "warpsim-inspect",
        {.usage = "PROGRAM|FILE.ptx [--json] [--check] [--ptx]",
         .about = "Lists the PTX in a program's fat binaries (or of one PTX file): targets, kernels, instructions by "
                  "opcode.\n",
         .after = "Exit status: 0, 1 where something cannot be read or --check finds something, 2 wrong usage.\n",
         .operands = true},
        {command_line::flag("json", json, "print one JSON object"),
         command_line::flag("ptx", wants_ptx, "print the PTX itself, and nothing else"),
         command_line::flag("check", wants_check, "also tell which kernels the simulator cannot run, and why")});
    const std::vector<std::string> operands = line.parse(argc, argv);
    if (operands.empty()) line.stop("no program or PTX file given");
    if (operands.size() > 1) line.stop("unexpected argument '" + operands[1] + "'");
    const std::string &path = operands[0];
    try {
        const std::vector<char> file = read_file(path);
        std::vector<ProgramImage> images;
        if (file.size() >= 64 && std::memcmp(file.data(),
                                             "\x7f"
                                             "ELF",
                                             4) == 0) {
            images = images_of_program(file);
            if (images.empty()) throw Failure(path + " has no fat binary: was it built by nvcc, with kernels in it?");
        } else {
            ProgramImage image;
            image.kind = "ptx";
            image.bytes = file.size();
            parse_into(image, {file.data(), file.size()});
            image.target = image.module.target;
            images.push_back(std::move(image));
        }
        if (wants_check)
            for (ProgramImage &image : images) check(image);
        if (wants_ptx)
            for (const ProgramImage &image : images) std::fwrite(image.text.data(), 1, image.text.size(), stdout);
        else
            (json ? print_json : print_text)(images);
        bool good = true;
        for (const ProgramImage &image : images) {
            if (!image.error.empty())
                std::fprintf(stderr, "warpsim-inspect: %s: %s\n", path.c_str(), image.error.c_str());
            good = good && image.error.empty() && image.unsupported.empty();
        }
        return good ? 0 : 1;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "warpsim-inspect: %s\n", error.what());
        return 1;
    }
}
