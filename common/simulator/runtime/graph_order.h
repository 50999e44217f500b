// Which nodes of a graph come before which, child graphs taken apart: for the order of a launch's operations.
#pragma once

#include <vector>

#include "runtime/graphs.h"

namespace warpsim::rt {

// Of each operation of the list that in_order() gives: the numbers of those that it directly follows.
std::vector<std::vector<size_t>> predecessors(const Graph &, const std::vector<const Graph::Node *> &in_order);

// Queues an instance's operations: branches of the graph are not ordered with one another (stream_clocks.h), though
// they run one after the other.
void launch_in_order(Runtime &, const GraphInstance &, const std::shared_ptr<Stream> &);

}  // namespace warpsim::rt
