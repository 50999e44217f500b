#include "ir.h"

#include <bit>

namespace compiler::ir {

uint64_t alignment_of(const Type *type) {
    switch (type->kind) {
        case Kind::integer:
            return std::bit_ceil((type->bits + 7) / 8);
        case Kind::vector:
            return std::bit_ceil(size_of(type->elements[0]) * type->count);
        case Kind::array:
            return alignment_of(type->elements[0]);
        case Kind::structure: {
            uint64_t most = 1;
            for (const Type *one : type->elements)
                if (!type->packed) most = std::max(most, alignment_of(one));
            return most;
        }
        default:
            return std::max(1u, type->bits / 8);
    }
}

static uint64_t rounded_up(uint64_t size, uint64_t alignment) {
    return (size + alignment - 1) / alignment * alignment;
}

uint64_t offset_of(const Type *type, uint64_t element) {
    if (type->kind != Kind::structure) return element * size_of(type->elements[0]);
    uint64_t offset = 0;
    for (uint64_t i = 0;; ++i) {
        const Type *one = type->elements.at(i);
        if (!type->packed) offset = rounded_up(offset, alignment_of(one));
        if (i == element) return offset;
        offset += size_of(one);
    }
}

uint64_t size_of(const Type *type) {
    switch (type->kind) {
        case Kind::integer:
            return rounded_up((type->bits + 7) / 8, alignment_of(type));
        case Kind::vector:
            return rounded_up(size_of(type->elements[0]) * type->count, alignment_of(type));
        case Kind::array:
            return type->count * size_of(type->elements[0]);
        case Kind::structure: {
            if (type->elements.empty()) return 0;
            const uint64_t last = type->elements.size() - 1;
            return rounded_up(offset_of(type, last) + size_of(type->elements[last]), alignment_of(type));
        }
        default:
            return type->bits / 8;
    }
}

std::string to_string(const Type *type) {
    switch (type->kind) {
        case Kind::nothing:
            return "void";
        case Kind::integer:
            return "i" + std::to_string(type->bits);
        case Kind::half:
            return "half";
        case Kind::bfloat:
            return "bfloat";
        case Kind::single:
            return "float";
        case Kind::real:
            return "double";
        case Kind::pointer:
            return type->space ? "ptr addrspace(" + std::to_string(type->space) + ")" : std::string("ptr");
        case Kind::vector:
            return "<" + std::to_string(type->count) + " x " + to_string(type->elements[0]) + ">";
        case Kind::array:
            return "[" + std::to_string(type->count) + " x " + to_string(type->elements[0]) + "]";
        case Kind::structure: {
            if (!type->name.empty()) return "%" + type->name;
            std::string all = "{";
            for (const Type *one : type->elements) all += (all.size() > 1 ? ", " : " ") + to_string(one);
            return all + " }";
        }
        case Kind::label:
            return "label";
        case Kind::metadata:
            return "metadata";
    }
    return "?";
}

static void add_leaves(const Type *type, uint64_t offset, std::vector<Leaf> &found) {
    if (!type->is_aggregate()) {
        if (type->kind != Kind::nothing) found.push_back({type, offset});
        return;
    }
    for (uint64_t i = 0; i < type->elements_count(); ++i)
        add_leaves(type->element(i), offset + offset_of(type, i), found);
}

std::vector<Leaf> leaves_of(const Type *type) {
    std::vector<Leaf> found;
    add_leaves(type, 0, found);
    return found;
}

size_t first_leaf(const Type *type, uint64_t element) {
    size_t first = 0;
    for (uint64_t i = 0; i < element; ++i) first += leaves_of(type->element(i)).size();
    return first;
}

}  // namespace compiler::ir
