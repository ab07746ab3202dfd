#ifndef PARASOL_PS_DENSE_RECEIVED_GRADIENT_H_
#define PARASOL_PS_DENSE_RECEIVED_GRADIENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/rpc/payload.h"
#include "proto/job.pb.h"
#include "proto/parameter.pb.h"
#include "ps/dense/element_runs.h"

namespace parasol {

// Returns the encoding that a message names.
//   InvalidArgument  no encoding is known by that number.
absl::StatusOr<job::Encoding> EncodingOf(wire::Encoding encoding);

// The gradient of one range as received: all of its elements, or only the
// largest ones (top-k), in any encoding.
class ReceivedGradient {
 public:
  struct Form {
    job::Encoding encoding = job::FLOAT32;
    // Number of elements in the payload if the gradient is sparsified.
    std::optional<uint32_t> kept = std::nullopt;
  };

  // `payload` must outlive the gradient.
  //   InvalidArgument  the payload has the wrong size; an offset is not above
  //                    the one before it, or not below `elements`.
  static absl::StatusOr<ReceivedGradient> Create(const PayloadView& payload,
                                                 size_t elements, Form form);

  size_t elements() const { return elements_; }

  // Returns the index of the first element that is infinite or NaN, if any.
  std::optional<size_t> FirstNonFinite() const;

 private:
  friend class GradientReader;
  ReceivedGradient(const PayloadView& payload, size_t elements, Form form)
      : payload_(&payload), elements_(elements), form_(form) {}
  absl::Status TakeKept();

  const PayloadView* payload_;
  size_t elements_;
  Form form_;
  // The kept elements of a sparsified gradient: each one's offset in the range,
  // and its value.
  std::vector<uint32_t> offsets_;
  std::vector<float> values_;
};

// Walks a gradient's elements as float32: in place if the payload has float32,
// otherwise in blocks that stay in the processor's nearest caches until they
// are used.
class GradientReader {
 public:
  static constexpr size_t kBlockElements = 8192;

  // `gradient` must outlive the reader.
  explicit GradientReader(const ReceivedGradient& gradient);

  // Returns up to `max_count` elements (at least 1) from the end of the last
  // run; none at the end of the gradient.
  ElementRuns::Run Next(size_t max_count);

  // Passes over `count` elements, which must be there.
  void Skip(size_t count);

 private:
  ElementRuns::Run NextDecoded(size_t max_count);
  ElementRuns::Run NextSparsified(size_t max_count);

  const ReceivedGradient& gradient_;
  ElementRuns runs_;
  // Positions in a sparsified gradient: the next element of the range, and the
  // next one that was kept.
  size_t position_ = 0;
  size_t next_kept_ = 0;
  std::unique_ptr<float[]> block_;  // null if elements are read in place
};

}  // namespace parasol

#endif  // PARASOL_PS_DENSE_RECEIVED_GRADIENT_H_
