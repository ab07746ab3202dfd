#include "cluster/lane/lane_host.h"

#include "base/status_macros.h"

namespace parasol {

absl::StatusOr<std::unique_ptr<LaneHost>> LaneHost::Start(
    const std::string& host, int port, int threads) {
  ASSIGN_OR_RETURN(std::unique_ptr<LaneListener> listener,
                   LaneListener::Start(host, port));
  return std::unique_ptr<LaneHost>(new LaneHost(std::move(listener), threads));
}

LaneHost::LaneHost(std::unique_ptr<LaneListener> listener, int threads)
    : listener_(std::move(listener)) {
  for (int i = 0; i < threads; ++i) {
    loops_.push_back(std::make_unique<LaneLoop>());
  }
}

}  // namespace parasol
