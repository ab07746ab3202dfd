#include "loop/core/local_iterations.h"

#include <algorithm>

#include "base/log.h"

namespace parasol::loop {

void LocalIterations::EndAfter(int64_t iterations) {
  end_ = std::min(iterations, kEndless);
}

int64_t LocalIterations::exchanges() const {
  if (end_ == kEndless) return kEndless;
  return end_ / steps_ + (end_ % steps_ > 0 ? 1 : 0);
}

int64_t LocalIterations::IterationsOf(int64_t exchanges) const {
  return exchanges > end_ / steps_ ? end_ : exchanges * steps_;
}

void LocalIterations::Begin(int64_t exchange) {
  CHECK(!is_under_way_);
  is_under_way_ = true;
  next_ = exchange * steps_;
  sum_ = {.step = exchange + 1, .end_step = end_ == kEndless ? 0 : exchanges()};
}

bool LocalIterations::Add(const Iteration& iteration) {
  CHECK(is_under_way_);
  sum_.examples += iteration.examples;
  sum_.loss_sum += iteration.loss_sum;
  sum_.values.insert(sum_.values.end(), iteration.values.begin(),
                     iteration.values.end());
  ++next_;
  is_under_way_ = next_ % steps_ != 0 && next_ < end_;
  return !is_under_way_;
}

}  // namespace parasol::loop
