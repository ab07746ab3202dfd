#ifndef PARASOL_PS_DENSE_ELEMENT_RUNS_H_
#define PARASOL_PS_DENSE_ELEMENT_RUNS_H_

#include <cstddef>

#include "cluster/rpc/payload.h"

namespace parasol {

// Walks the elements of a received payload in runs. The elements of a run lie
// next to each other, at any alignment. An element that straddles pieces comes
// as a run of one, from a copy: nothing larger is copied.
class ElementRuns {
 public:
  static constexpr size_t kMaxElementBytes = 8;

  // `payload` must outlive the ElementRuns. An incomplete last element is left
  // out.
  ElementRuns(const PayloadView& payload, size_t element_bytes)
      : payload_(payload), element_bytes_(element_bytes) {}

  struct Run {
    const std::byte* data = nullptr;  // valid until the next call
    size_t count = 0;
  };
  // Returns up to `max_count` elements (at least 1) from the end of the last
  // run; none at the end of the payload.
  Run Next(size_t max_count);

 private:
  const PayloadView& payload_;
  const size_t element_bytes_;
  size_t piece_ = 0;
  size_t offset_ = 0;  // bytes into the piece
  std::byte straddling_[kMaxElementBytes];
};

}  // namespace parasol

#endif  // PARASOL_PS_DENSE_ELEMENT_RUNS_H_
