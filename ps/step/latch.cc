#include "ps/step/latch.h"

#include <utility>

#include "base/log.h"

namespace parasol {

Latch::Latch(size_t count, Callback done)
    : done_(std::move(done)), left_(count) {
  CHECK_GE(count, 1u);
}

void Latch::Fail(absl::Status status) {
  absl::MutexLock lock(&mu_);
  status_.Update(std::move(status));
}

void Latch::CountDown() {
  if (left_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  Outcome outcome{.dropped = dropped_};
  {
    absl::MutexLock lock(&mu_);
    outcome.status = status_;
  }
  done_(outcome);
}

Released::~Released() {
  for (const std::shared_ptr<Latch>& latch : latches_) latch->CountDown();
}

}  // namespace parasol
