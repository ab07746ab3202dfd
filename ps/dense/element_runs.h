#ifndef PARASOL_PS_DENSE_ELEMENT_RUNS_H_
#define PARASOL_PS_DENSE_ELEMENT_RUNS_H_

#include <cstddef>

#include "cluster/rpc/payload.h"

namespace parasol {

// Walks the elements of a received payload in runs that each lie in one place,
// at any alignment. An element that straddles pieces comes as a run of one,
// from a copy: nothing larger is copied.
class ElementRuns {
 public:
  static constexpr size_t kMaxElementBytes = 8;

  // `payload` must outlive it; an incomplete last element is not part of it.
  ElementRuns(const PayloadView& payload, size_t element_bytes)
      : payload_(payload), element_bytes_(element_bytes) {}

  struct Run {
    const std::byte* data = nullptr;  // until the next call
    size_t count = 0;
  };
  // Up to `max_count` elements (at least 1) from where the last run ended;
  // none at the end.
  Run Next(size_t max_count);

 private:
  const PayloadView& payload_;
  const size_t element_bytes_;
  size_t piece_ = 0;
  size_t offset_ = 0;  // in the piece
  std::byte straddling_[kMaxElementBytes];
};

}  // namespace parasol

#endif  // PARASOL_PS_DENSE_ELEMENT_RUNS_H_
