#ifndef PARASOL_PS_SPARSE_RECEIVED_ROWS_H_
#define PARASOL_PS_SPARSE_RECEIVED_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "cluster/rpc/payload.h"
#include "proto/job.pb.h"

namespace parasol {

// Bytes of a payload in one piece: where they are if they lie so, else copied.
class FlatBytes {
 public:
  // `payload` must outlive it.
  explicit FlatBytes(const PayloadView& payload);

  const std::byte* data() const { return data_; }

  // Copies them, so that the payload may go.
  void Keep(size_t size);

 private:
  std::unique_ptr<std::byte[]> copy_;
  const std::byte* data_;
};

// The ids that a request names, and the gradients of their rows.
class ReceivedRows {
 public:
  // `ids` must outlive it, as `gradients` below.
  //   InvalidArgument  a payload's size is not that of `rows` ids, or of as
  //                    many rows.
  static absl::StatusOr<ReceivedRows> Create(const PayloadView& ids,
                                             uint32_t rows);
  static absl::StatusOr<ReceivedRows> Create(const PayloadView& ids,
                                             const PayloadView& gradients,
                                             uint32_t rows, size_t width,
                                             job::Encoding encoding);

  // Copies the ids, for what waits longer than their payload lasts.
  void KeepIds() { ids_.Keep(count_ * sizeof(uint64_t)); }

  size_t count() const { return count_; }
  // uint64, at any alignment.
  const std::byte* ids() const { return ids_.data(); }
  // float32, at any alignment.
  const std::byte* gradients() const { return gradients_; }

 private:
  ReceivedRows(const PayloadView& ids, uint32_t rows)
      : count_(rows), ids_(ids), flat_(PayloadView()) {}

  size_t count_;
  FlatBytes ids_;
  FlatBytes flat_;
  std::unique_ptr<float[]> decoded_;
  const std::byte* gradients_ = nullptr;
};

}  // namespace parasol

#endif  // PARASOL_PS_SPARSE_RECEIVED_ROWS_H_
