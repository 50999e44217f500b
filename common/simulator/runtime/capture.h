// What a program must not do while a stream is captured. Such a call ends with an error, and the captures that it
// concerns are spoilt: what is put into their streams is refused, and so is their end.
#pragma once

#include <string>

#include "runtime/scheduler.h"

namespace warpsim::rt {

class Runtime;

// Spoils the captures of all streams of this one, says why and throws Failure{code}.
[[noreturn]] void spoil(Runtime &, const std::shared_ptr<Graph> &capture, cudaError_t code, const std::string &why);

// `name` waits for or asks about a stream: not while that is captured.
void refuse_capture(Runtime &, const char *name, const Stream &);

// `name` waits for the whole device: not while any of its streams is captured.
void refuse_captures(Runtime &, const char *name, unsigned device);

// The legacy default stream gets work: not while it would have to wait for a stream that is captured.
void refuse_implicit(Runtime &, const Stream &legacy);

// `name` may do more than its stream shows: not while this thread captures, or another one in global mode, unless one
// of the two has asked for the relaxed mode.
void refuse_unsafe(Runtime &, const char *name);

// The end of a capture that began in `origin`, behind the nodes `ends`: throws where work of another stream leads to
// none of them.
void check_joined(const Graph &capture, const Stream &origin, const std::vector<Graph::Node *> &ends);

}  // namespace warpsim::rt
