#include "lower/layout.h"

#include <algorithm>
#include <utility>

#include "lower/instruction_table.h"
#include "lower/module.h"

namespace warpsim {

namespace {

// Deeper loop nests than this keep the source's order inside: they only come from hostile programs.
constexpr unsigned kDeepestLoopNest = 64;
constexpr uint64_t kMostEdges = 1 << 22;

void find_blocks(const ptx::Function &function, Layout &layout) {
    const uint32_t size = uint32_t(function.body.size());
    std::vector<uint8_t> leader(size + 1, 0);
    leader[0] = 1;
    for (const ptx::Label &label : function.labels) {
        if (label.targets.empty()) leader[std::min(label.position, size)] = 1;
    }
    if (size == 0 || !is_terminator(function.body[size - 1]) || function.body[size - 1].guard >= 0) leader[size] = 1;
    for (uint32_t i = 0; i < size; ++i) {
        if (is_terminator(function.body[i]) && i + 1 < size) leader[i + 1] = 1;
    }
    std::vector<uint32_t> block_of(size + 1, kNoBlock);
    for (uint32_t i = 0; i < size; ++i) {
        if (leader[i]) {
            layout.blocks.emplace_back();
            layout.blocks.back().first = i;
        }
        layout.blocks.back().last = i + 1;
        block_of[i] = uint32_t(layout.blocks.size()) - 1;
    }
    if (leader[size]) {  // control may reach the end of the body, which returns
        block_of[size] = uint32_t(layout.blocks.size());
        layout.blocks.emplace_back();
        layout.blocks.back().first = layout.blocks.back().last = size;
    }
    for (const ptx::Label &label : function.labels)
        layout.block_at_label.push_back(block_of[std::min(label.position, size)]);
}

void find_edges(const ptx::Function &function, Layout &layout) {
    const uint32_t count = uint32_t(layout.blocks.size());
    uint64_t edges = 0;
    for (uint32_t b = 0; b < count; ++b) {
        BasicBlock &block = layout.blocks[b];
        bool falls = true;
        if (block.last > block.first) {
            const ptx::Instruction &end = function.body[block.last - 1];
            if (is_terminator(end)) falls = end.guard >= 0;
            auto jump = [&](uint32_t label) {
                const uint32_t to = layout.block_at_label[label];
                if (to != kNoBlock) block.successors.push_back(to);
            };
            if (flow_of(end) == Flow::branch || flow_of(end) == Flow::indirect) {
                for (const ptx::Operand &operand : end.operands) {
                    if (operand.kind != ptx::Operand::Kind::label) continue;
                    const auto &targets = function.labels[operand.index].targets;
                    if (targets.empty()) jump(operand.index);
                    for (uint32_t target : targets) jump(target);
                }
                edges += block.successors.size();
                if (edges > kMostEdges) throw Unsupported(function.name + " has too many branch targets");
            }
        }
        if (falls && b + 1 < count) {
            block.fall_through = b + 1;
            block.successors.push_back(b + 1);
        }
    }
}

// Orders blocks after Bourdoncle, "Efficient chaotic iteration strategies with widenings": strongly connected
// components in topological order, each component's head first and the rest of it ordered in the same way.
class WeakTopologicalOrder {
  public:
    explicit WeakTopologicalOrder(Layout &layout)
        : blocks_(layout.blocks),
          region_(blocks_.size(), 0),
          number_(blocks_.size(), 0),
          low_(blocks_.size(), 0),
          component_(blocks_.size(), 0),
          visited_(blocks_.size(), 0) {}

    // Returns {block, head of a loop that ends here or kNoBlock} in order.
    struct Entry {
        uint32_t block, ends_loop;
    };
    std::vector<Entry> run() {
        std::vector<uint32_t> reachable = reach();
        work_.push_back({Item::region, 0, 0, std::move(reachable), {0}});
        std::vector<Entry> out;
        while (!work_.empty()) {
            Item item = std::move(work_.back());
            work_.pop_back();
            if (item.kind == Item::emit) {
                out.push_back({item.block, kNoBlock});
            } else if (item.kind == Item::loop_end) {
                out.push_back({kNoBlock, item.block});
            } else if (item.depth > kDeepestLoopNest) {
                std::sort(item.nodes.begin(), item.nodes.end());
                for (uint32_t b : item.nodes) out.push_back({b, kNoBlock});
            } else {
                split(item);
            }
        }
        return out;
    }

  private:
    struct Item {
        enum Kind { emit, loop_end, region } kind;
        uint32_t block;
        unsigned depth;
        std::vector<uint32_t> nodes, roots;
    };
    struct Visit {
        uint32_t block;
        size_t next;
    };

    std::vector<uint32_t> reach() {
        std::vector<uint32_t> found{0}, stack{0};
        std::vector<uint8_t> seen(blocks_.size(), 0);
        seen[0] = 1;
        while (!stack.empty()) {
            const uint32_t b = stack.back();
            stack.pop_back();
            for (uint32_t s : blocks_[b].successors) {
                if (seen[s]) continue;
                seen[s] = 1;
                found.push_back(s);
                stack.push_back(s);
            }
        }
        return found;
    }

    // Tarjan's algorithm on one region; components come out in reverse topological order.
    void split(Item &item) {
        ++current_;
        for (uint32_t b : item.nodes) {
            region_[b] = current_;
            number_[b] = 0;
            visited_[b] = 0;
        }
        counter_ = 0;
        components_.clear();
        for (uint32_t root : item.roots) visit(root);
        for (uint32_t root : item.nodes) visit(root);
        // The work list is a stack, and the components come last first: push them as they are.
        for (auto &component : components_) {
            const uint32_t head = component.back();
            const auto &successors = blocks_[head].successors;
            const bool loop =
                component.size() > 1 || std::find(successors.begin(), successors.end(), head) != successors.end();
            if (!loop) {
                work_.push_back({Item::emit, head, item.depth, {}, {}});
                continue;
            }
            component.pop_back();
            std::vector<uint32_t> roots;
            for (uint32_t s : successors) {
                if (s != head && region_[s] == current_ && component_[s] == component_[head]) roots.push_back(s);
            }
            work_.push_back({Item::loop_end, head, item.depth, {}, {}});
            if (!component.empty()) {
                work_.push_back({Item::region, head, item.depth + 1, std::move(component), std::move(roots)});
            }
            work_.push_back({Item::emit, head, item.depth, {}, {}});
        }
    }

    void visit(uint32_t root) {
        if (number_[root] || region_[root] != current_) return;
        enter(root);
        while (!calls_.empty()) {
            Visit &top = calls_.back();
            const auto &successors = blocks_[top.block].successors;
            if (top.next < successors.size()) {
                const uint32_t s = successors[top.next++];
                if (region_[s] != current_) continue;
                if (!number_[s]) {
                    enter(s);
                } else if (!visited_[s]) {
                    low_[top.block] = std::min(low_[top.block], number_[s]);
                }
                continue;
            }
            const uint32_t b = top.block;
            calls_.pop_back();
            if (!calls_.empty()) low_[calls_.back().block] = std::min(low_[calls_.back().block], low_[b]);
            if (low_[b] != number_[b]) continue;
            components_.emplace_back();
            ++components_made_;
            uint32_t member;
            do {
                member = stack_.back();
                stack_.pop_back();
                visited_[member] = 1;
                component_[member] = components_made_;
                components_.back().push_back(member);
            } while (member != b);
        }
    }

    void enter(uint32_t b) {
        number_[b] = low_[b] = ++counter_;
        stack_.push_back(b);
        calls_.push_back({b, 0});
    }

    const std::vector<BasicBlock> &blocks_;
    std::vector<uint32_t> region_, number_, low_;
    std::vector<uint32_t> component_;  // the last component that a block was put into
    uint32_t components_made_ = 0;
    std::vector<uint8_t> visited_;  // belongs to a finished component
    uint32_t current_ = 0, counter_ = 0;
    std::vector<uint32_t> stack_;
    std::vector<Visit> calls_;
    std::vector<std::vector<uint32_t>> components_;  // each with its first-visited block last
    std::vector<Item> work_;
};

}  // namespace

bool is_terminator(const ptx::Instruction &instruction) {
    switch (flow_of(instruction)) {
        case Flow::branch:
        case Flow::indirect:
        case Flow::ret:
        case Flow::exit:
            return true;
        default:
            return instruction.opcode == "trap";  // straight-line to the warp loop, which never comes back from it
    }
}

uint32_t Layout::destination(uint32_t from, uint32_t to) const {
    if (to >= latch_of_head_.size() || latch_of_head_[to] == kNoBlock) return to;
    const uint32_t latch = latch_of_head_[to];
    // Inside the loop: laid out between its head and its latch.
    return position[from] >= position[to] && position[from] < position[latch] ? latch : to;
}

Layout lay_out(const ptx::Function &function) {
    Layout layout;
    find_blocks(function, layout);
    find_edges(function, layout);
    const uint32_t count = uint32_t(layout.blocks.size());
    const auto entries = WeakTopologicalOrder(layout).run();
    layout.position.assign(count, kNoBlock);
    std::vector<uint32_t> place(count, kNoBlock);
    for (uint32_t i = 0; i < entries.size(); ++i) {
        if (entries[i].block != kNoBlock) place[entries[i].block] = i;
    }
    std::vector<uint32_t> back_edges(count, 0), ends_at(count, 0);
    for (uint32_t i = 0; i < entries.size(); ++i) {
        if (entries[i].ends_loop != kNoBlock) ends_at[entries[i].ends_loop] = i;
    }
    for (uint32_t b = 0; b < count; ++b) {
        if (place[b] == kNoBlock) continue;
        for (uint32_t s : layout.blocks[b].successors) {
            if (place[b] >= place[s] && place[b] < ends_at[s]) ++back_edges[s];
        }
    }
    layout.latch_of_head_.assign(count, kNoBlock);
    for (const auto &entry : entries) {
        if (entry.block != kNoBlock) {
            layout.position[entry.block] = uint32_t(layout.order.size());
            layout.order.push_back(entry.block);
        } else if (back_edges[entry.ends_loop] > 1) {
            const uint32_t latch = uint32_t(layout.blocks.size());
            layout.blocks.emplace_back();
            layout.blocks.back().latch_to = entry.ends_loop;
            layout.latch_of_head_[entry.ends_loop] = latch;
            layout.position.push_back(uint32_t(layout.order.size()));
            layout.order.push_back(latch);
        }
    }
    return layout;
}

}  // namespace warpsim
