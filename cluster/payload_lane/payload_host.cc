#include "cluster/payload_lane/payload_host.h"

#include "base/status_macros.h"

namespace parasol {

absl::StatusOr<std::unique_ptr<PayloadHost>> PayloadHost::Start(
    const std::string& host, int port, int threads, int64_t receive_bytes,
    std::shared_ptr<const Trust> trust) {
  ASSIGN_OR_RETURN(std::unique_ptr<PayloadPort> listener,
                   PayloadPort::Start(host, port));
  return std::unique_ptr<PayloadHost>(new PayloadHost(
      std::move(listener), threads, receive_bytes, std::move(trust)));
}

PayloadHost::PayloadHost(std::unique_ptr<PayloadPort> listener, int threads,
                         int64_t receive_bytes,
                         std::shared_ptr<const Trust> trust)
    : trust_(std::move(trust)),
      allowance_(receive_bytes),
      listener_(std::move(listener)) {
  for (int i = 0; i < threads; ++i) {
    loops_.push_back(std::make_unique<SocketLoop>());
  }
}

SocketLoop* PayloadHost::NextLoop() {
  if (++lanes_ > kMaxLanes) {
    --lanes_;
    return nullptr;
  }
  return loops_[next_++ % loops_.size()].get();
}

}  // namespace parasol
