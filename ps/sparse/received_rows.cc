#include "ps/sparse/received_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ml/compression/half.h"

namespace parasol {

FlatBytes::FlatBytes(const PayloadView& payload) {
  if (payload.pieces().size() > 1) {
    copy_ = std::make_unique_for_overwrite<std::byte[]>(payload.size());
  }
  data_ = payload.Contiguous(0, payload.size(), copy_.get());
}

void FlatBytes::Keep(size_t size) {
  if (copy_ != nullptr) return;
  copy_ = std::make_unique_for_overwrite<std::byte[]>(size);
  std::copy_n(data_, size, copy_.get());
  data_ = copy_.get();
}

absl::StatusOr<ReceivedRows> ReceivedRows::Create(const PayloadView& ids,
                                                  uint32_t rows) {
  if (ids.size() != rows * sizeof(uint64_t)) {
    return absl::InvalidArgumentError(
        absl::StrCat(ids.size(), " bytes for ", rows, " ids"));
  }
  ReceivedRows received(ids, rows);
  // Rows are sorted by their ids in several walks, which have to agree.
  if (ids.may_change()) received.KeepIds();
  return received;
}

absl::StatusOr<ReceivedRows> ReceivedRows::Create(const PayloadView& ids,
                                                  const PayloadView& gradients,
                                                  uint32_t rows, size_t width,
                                                  job::Encoding encoding) {
  ASSIGN_OR_RETURN(ReceivedRows received, Create(ids, rows));
  // Below 2^63: a table's width is at most 65,536.
  const size_t elements = rows * width;
  if (gradients.size() != EncodedBytes(encoding, elements)) {
    return absl::InvalidArgumentError(
        absl::StrCat(gradients.size(), " bytes for ", rows, " rows of ", width,
                     " elements, ", EncodedBytes(encoding, 1), " bytes each"));
  }
  received.flat_ = FlatBytes(gradients);
  received.gradients_ = received.flat_.data();
  if (encoding != job::FLOAT32) {
    received.decoded_ = std::make_unique_for_overwrite<float[]>(elements);
    Decode(encoding, received.flat_.data(),
           absl::MakeSpan(received.decoded_.get(), elements));
    received.gradients_ =
        reinterpret_cast<const std::byte*>(received.decoded_.get());
  }
  return received;
}

absl::Status ReceivedRows::SetCounts(const PayloadView& counts) {
  if (counts.size() != count_ * sizeof(uint32_t)) {
    return absl::InvalidArgumentError(
        absl::StrCat(counts.size(), " bytes for ", count_, " counts"));
  }
  counts_.emplace(counts);
  // They are looked at once to be checked, and once to be added.
  if (counts.may_change()) counts_->Keep(counts.size());
  for (size_t i = 0; i < count_; ++i) {
    uint32_t count;
    std::memcpy(&count, counts_->data() + i * sizeof(count), sizeof(count));
    if (count > 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("number ", i, " of ", count_, " ids occurs 0 times"));
  }
  return absl::OkStatus();
}

}  // namespace parasol
