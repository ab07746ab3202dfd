#ifndef PARASOL_PS_SPARSE_RECEIVED_ROWS_H_
#define PARASOL_PS_SPARSE_RECEIVED_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cluster/rpc/payload.h"
#include "proto/job.pb.h"

namespace parasol {

// The bytes of a payload in one piece: in place if the payload is one piece,
// otherwise copied.
class FlatBytes {
 public:
  // `payload` must outlive the FlatBytes.
  explicit FlatBytes(const PayloadView& payload);

  const std::byte* data() const { return data_; }

  // Copies the bytes, so that the payload may go.
  void Keep(size_t size);

 private:
  std::unique_ptr<std::byte[]> copy_;
  const std::byte* data_;
};

// The ids that a request names, and the gradients of their rows.
class ReceivedRows {
 public:
  // `ids`, `gradients` and `counts` must outlive the ReceivedRows.
  //   InvalidArgument  `ids` has a wrong size for `rows` ids, or `gradients`
  //                    for `rows` rows.
  static absl::StatusOr<ReceivedRows> Create(const PayloadView& ids,
                                             uint32_t rows);
  static absl::StatusOr<ReceivedRows> Create(const PayloadView& ids,
                                             const PayloadView& gradients,
                                             uint32_t rows, size_t width,
                                             job::Encoding encoding);

  // Takes how often each id occurs.
  //   InvalidArgument  `counts` has a wrong size, or an id occurs 0 times.
  absl::Status SetCounts(const PayloadView& counts);

  // Copies the ids. Needed if an operation waits for longer than its payload
  // lasts.
  void KeepIds() { ids_.Keep(count_ * sizeof(uint64_t)); }

  size_t count() const { return count_; }
  // The ids: count() uint64, at any alignment.
  const std::byte* ids() const { return ids_.data(); }
  // The gradients as float32, at any alignment.
  const std::byte* gradients() const { return gradients_; }
  // How often each id occurs: uint32 at any alignment; null: as often as it is
  // listed.
  const std::byte* counts() const {
    return counts_.has_value() ? counts_->data() : nullptr;
  }

 private:
  ReceivedRows(const PayloadView& ids, uint32_t rows)
      : count_(rows), ids_(ids), flat_(PayloadView()) {}

  size_t count_;
  FlatBytes ids_;
  FlatBytes flat_;
  std::unique_ptr<float[]> decoded_;
  const std::byte* gradients_ = nullptr;
  std::optional<FlatBytes> counts_;
};

}  // namespace parasol

#endif  // PARASOL_PS_SPARSE_RECEIVED_ROWS_H_
