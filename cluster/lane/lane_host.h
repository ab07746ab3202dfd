#ifndef PARASOL_CLUSTER_LANE_LANE_HOST_H_
#define PARASOL_CLUSTER_LANE_LANE_HOST_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/lane/lane_listener.h"
#include "cluster/lane/lane_loop.h"
#include "cluster/lane/lane_opening.h"

namespace parasol {

// The lanes of one ps: the port that takes them, and the threads that serve
// them. Thread-safe.
class LaneHost {
 public:
  // Errors are LaneListener::Start()'s.
  static absl::StatusOr<std::unique_ptr<LaneHost>> Start(
      const std::string& host, int port, int threads);

  int port() const { return listener_->port(); }

  // Returns the loop for another lane: each has as many as the others.
  LaneLoop& NextLoop() { return *loops_[next_++ % loops_.size()]; }

  LaneOffer Expect(LaneListener::Taken taken) {
    return listener_->Expect(std::move(taken));
  }
  bool Forget(const LaneSecret& secret) { return listener_->Forget(secret); }

 private:
  LaneHost(std::unique_ptr<LaneListener> listener, int threads);

  std::vector<std::unique_ptr<LaneLoop>> loops_;
  std::atomic<size_t> next_ = 0;
  // Ends first: it hands connections to the loops.
  const std::unique_ptr<LaneListener> listener_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_LANE_LANE_HOST_H_
