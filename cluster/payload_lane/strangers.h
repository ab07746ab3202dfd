#ifndef PARASOL_CLUSTER_PAYLOAD_LANE_STRANGERS_H_
#define PARASOL_CLUSTER_PAYLOAD_LANE_STRANGERS_H_

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <list>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "base/descriptor.h"

namespace parasol {

// Connections to a listening socket that have yet to say what they are for. A
// connection has kHelloLimit for that. Not thread-safe: a port's thread has it.
class Strangers {
 public:
  static constexpr absl::Duration kHelloLimit = absl::Seconds(5);
  // Number of connections at once; one more takes the place of the one that has
  // waited longest.
  static constexpr size_t kMax = 256;

  struct Stranger {
    Descriptor socket;
    std::string received;
    std::string told = {};  // the port's answers so far
    std::chrono::steady_clock::time_point deadline;
  };

  // `listening` is a socket that does not block, `what` what a connection is
  // for, in the log: "payload lane".
  Strangers(Descriptor listening, std::string what);

  // Blocks until a connection may have come or have sent something, `wake` is
  // readable, or a deadline may have passed. `has_deadline`: the caller has one
  // of its own.
  void Wait(const Descriptor& wake, bool has_deadline);
  // Accepts connections that have come.
  void Accept();
  // Calls hear(stranger) for each, and drops those for which it returns false
  // and those that are late.
  void HearEach(absl::FunctionRef<bool(Stranger& stranger)> hear);

  // Receives what has come, until a stranger has said `bytes` bytes. Returns
  // false if the connection has ended.
  static bool Receive(Stranger& stranger, size_t bytes);

 private:
  const Descriptor listening_;
  const std::string what_;
  std::list<Stranger> strangers_;
  // False for a tick when the system gives no descriptor or memory.
  bool may_accept_ = true;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_PAYLOAD_LANE_STRANGERS_H_
