#ifndef PARASOL_PS_FLOAT_RUNS_H_
#define PARASOL_PS_FLOAT_RUNS_H_

#include <cstddef>

#include "cluster/rpc/payload.h"

namespace parasol {

// Walks the float32 elements of a received payload in runs that each lie in
// one place, at any alignment. An element that straddles pieces comes as a run
// of one, from a copy: nothing larger is copied.
class FloatRuns {
 public:
  // `payload` must outlive it; an incomplete last element is not part of it.
  explicit FloatRuns(const PayloadView& payload) : payload_(payload) {}

  struct Run {
    const std::byte* data = nullptr;  // until the next call
    size_t count = 0;
  };
  // Up to `max_count` elements (at least 1) from where the last run ended;
  // none at the end.
  Run Next(size_t max_count);

 private:
  const PayloadView& payload_;
  size_t piece_ = 0;
  size_t offset_ = 0;  // in the piece
  std::byte straddling_[sizeof(float)];
};

}  // namespace parasol

#endif  // PARASOL_PS_FLOAT_RUNS_H_
