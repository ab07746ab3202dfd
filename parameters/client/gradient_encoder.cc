#include "parameters/client/gradient_encoder.h"

#include <algorithm>
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

EncodedOperation GradientEncoder::Encode(ShardOperation operation) {
  const bool is_push = operation.call->is_push;
  EncodedOperation encoded = {.asked = std::move(operation)};
  const ShardOperation& asked = encoded.asked;
  if (is_push) encoded.payloads = asked.ranges().size();
  if (!asked.exact) encoded.encoding = encoding_;
  if (is_push && !asked.exact && push_share_ < 1) {
    Sparsify(encoded);
    encoded.bytes = std::max(encoded.payload_bytes, AnswerBytes(encoded));
    return encoded;
  }
  size_t elements = 0;
  for (const ShardOperation::Range& range : asked.ranges()) {
    elements += range.count;
  }
  encoded.bytes = EncodedBytes(encoded.encoding, elements);
  if (!is_push) return encoded;
  encoded.payload_bytes = encoded.bytes;
  if (encoded.encoding != job::FLOAT32) EncodeAll(encoded);
  return encoded;
}

void GradientEncoder::EncodeAll(EncodedOperation& push) const {
  auto payload =
      std::make_unique_for_overwrite<std::byte[]>(push.payload_bytes);
  std::byte* out = payload.get();
  for (const ShardOperation::Range& range : push.asked.ranges()) {
    parasol::Encode(encoding_, {range.gradient, range.count}, out);
    out += EncodedBytes(encoding_, range.count);
  }
  push.payload = std::move(payload);
}

void GradientEncoder::Sparsify(EncodedOperation& push) {
  const ShardOperation::Ranges& ranges = push.asked.ranges();
  push.kept.reserve(ranges.size());
  for (const ShardOperation::Range& range : ranges) {
    const uint32_t kept = KeptCount(range.count, push_share_);
    push.kept.push_back(kept);
    push.payload_bytes +=
        kept * sizeof(uint32_t) + EncodedBytes(encoding_, kept);
  }
  auto payload =
      std::make_unique_for_overwrite<std::byte[]>(push.payload_bytes);
  std::byte* out = payload.get();
  absl::MutexLock lock(&mu_);
  for (const ShardOperation::Range& range : ranges) {
    std::vector<float>& residual = residuals_[range.variable];
    if (residual.empty()) residual.resize(elements_[range.variable]);
    const TopK::Kept kept = top_k_.Select(
        {range.gradient, range.count}, push_share_, encoding_,
        absl::MakeSpan(residual).subspan(range.offset, range.count));
    const size_t offset_bytes = kept.offsets.size() * sizeof(uint32_t);
    std::memcpy(out, kept.offsets.data(), offset_bytes);
    parasol::Encode(encoding_, kept.values, out + offset_bytes);
    out += offset_bytes + EncodedBytes(encoding_, kept.values.size());
  }
  push.payload = std::move(payload);
}

}  // namespace parasol
