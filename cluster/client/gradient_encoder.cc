#include "cluster/client/gradient_encoder.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/types/span.h"
#include "ml/compression/half.h"

namespace parasol {

GradientEncoder::GradientEncoder(job::Encoding encoding, double push_share,
                                 std::vector<size_t> elements)
    : encoding_(encoding),
      push_share_(push_share),
      elements_(std::move(elements)),
      residuals_(elements_.size()) {}

void GradientEncoder::Encode(ShardOperation& operation) {
  operation.encoding = encoding_;
  if (push_share_ < 1) return Sparsify(operation);
  size_t elements = 0;
  for (const ShardOperation::Range& range : operation.ranges) {
    elements += range.count;
  }
  operation.bytes = EncodedBytes(encoding_, elements);
  operation.payload =
      std::make_unique_for_overwrite<std::byte[]>(operation.bytes);
  std::byte* out = operation.payload.get();
  for (const ShardOperation::Range& range : operation.ranges) {
    parasol::Encode(encoding_, {range.gradient, range.count}, out);
    out += EncodedBytes(encoding_, range.count);
  }
}

void GradientEncoder::Sparsify(ShardOperation& operation) {
  operation.sparsified = true;
  operation.bytes = 0;
  for (ShardOperation::Range& range : operation.ranges) {
    range.kept = KeptCount(range.count, push_share_);
    operation.bytes +=
        range.kept * sizeof(uint32_t) + EncodedBytes(encoding_, range.kept);
  }
  operation.payload =
      std::make_unique_for_overwrite<std::byte[]>(operation.bytes);
  std::byte* out = operation.payload.get();
  absl::MutexLock lock(&mu_);
  for (const ShardOperation::Range& range : operation.ranges) {
    std::vector<float>& residual = residuals_[range.variable];
    if (residual.empty()) residual.resize(elements_[range.variable]);
    const TopK::Kept kept = top_k_.Select(
        {range.gradient, range.count}, push_share_, encoding_,
        absl::MakeSpan(residual).subspan(range.offset, range.count));
    const size_t offset_bytes = range.kept * sizeof(uint32_t);
    std::memcpy(out, kept.offsets.data(), offset_bytes);
    parasol::Encode(encoding_, kept.values, out + offset_bytes);
    out += offset_bytes + EncodedBytes(encoding_, range.kept);
  }
}

}  // namespace parasol
