#include "ps/dense/received_gradient.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/replica_sum/first_non_finite.h"
#include "ml/compression/half.h"

namespace parasol {

absl::StatusOr<job::Encoding> EncodingOf(wire::Encoding encoding) {
  switch (encoding) {
    case wire::FLOAT32:
      return job::FLOAT32;
    case wire::FLOAT16:
      return job::FLOAT16;
    case wire::BFLOAT16:
      return job::BFLOAT16;
    default:
      return absl::InvalidArgumentError(absl::StrCat(
          "the gradient's encoding number ", encoding, " is unknown"));
  }
}

absl::StatusOr<ReceivedGradient> ReceivedGradient::Create(
    const PayloadView& payload, size_t elements, Form form) {
  const uint64_t count = form.kept.value_or(elements);
  const uint64_t bytes = EncodedBytes(form.encoding, count) +
                         (form.kept ? count * sizeof(uint32_t) : 0);
  if (payload.size() != bytes || count > elements) {
    return absl::InvalidArgumentError(absl::StrCat(
        payload.size(), " bytes for ", count, " of ", elements, " elements, ",
        EncodedBytes(form.encoding, 1), " bytes each"));
  }
  ReceivedGradient gradient(payload, elements, form);
  if (form.kept) {
    RETURN_IF_ERROR(gradient.TakeKept());
  }
  return gradient;
}

absl::Status ReceivedGradient::TakeKept() {
  offsets_.resize(*form_.kept);
  values_.resize(*form_.kept);
  const size_t offset_bytes = offsets_.size() * sizeof(uint32_t);
  payload_->CopyTo(0, offset_bytes, offsets_.data());
  std::vector<std::byte> encoded(payload_->size() - offset_bytes);
  payload_->CopyTo(offset_bytes, encoded.size(), encoded.data());
  Decode(form_.encoding, encoded.data(), absl::MakeSpan(values_));
  for (size_t i = 0; i < offsets_.size(); ++i) {
    if (offsets_[i] >= elements_ || (i > 0 && offsets_[i] <= offsets_[i - 1])) {
      return absl::InvalidArgumentError(
          absl::StrCat("offset ", offsets_[i], " at ", i,
                       " is not ascending and below ", elements_));
    }
  }
  return absl::OkStatus();
}

std::optional<size_t> ReceivedGradient::FirstNonFinite() const {
  if (form_.kept) {
    const size_t first = parasol::FirstNonFinite(
        reinterpret_cast<const std::byte*>(values_.data()), values_.size());
    if (first == values_.size()) return std::nullopt;
    return offsets_[first];
  }
  GradientReader reader(*this);
  for (size_t done = 0; done < elements_;) {
    const ElementRuns::Run run = reader.Next(elements_ - done);
    const size_t first = parasol::FirstNonFinite(run.data, run.count);
    if (first < run.count) return done + first;
    done += run.count;
  }
  return std::nullopt;
}

GradientReader::GradientReader(const ReceivedGradient& gradient)
    : gradient_(gradient),
      runs_(*gradient.payload_, EncodedBytes(gradient.form_.encoding, 1)) {
  if (gradient.form_.kept || gradient.form_.encoding != job::FLOAT32) {
    block_ = std::make_unique_for_overwrite<float[]>(
        std::min(kBlockElements, gradient.elements_));
  }
}

ElementRuns::Run GradientReader::Next(size_t max_count) {
  if (block_ == nullptr) return runs_.Next(max_count);
  max_count = std::min(max_count, kBlockElements);
  return gradient_.form_.kept ? NextSparsified(max_count)
                              : NextDecoded(max_count);
}

void GradientReader::Skip(size_t count) {
  while (count > 0) {
    const size_t passed = Next(count).count;
    CHECK_GT(passed, 0u) << count << " elements are missing";
    count -= passed;
  }
}

ElementRuns::Run GradientReader::NextDecoded(size_t max_count) {
  const ElementRuns::Run run = runs_.Next(max_count);
  Decode(gradient_.form_.encoding, run.data,
         absl::MakeSpan(block_.get(), run.count));
  return {reinterpret_cast<const std::byte*>(block_.get()), run.count};
}

ElementRuns::Run GradientReader::NextSparsified(size_t max_count) {
  const size_t count = std::min(max_count, gradient_.elements_ - position_);
  std::fill_n(block_.get(), count, 0.0f);
  const std::vector<uint32_t>& offsets = gradient_.offsets_;
  for (; next_kept_ < offsets.size() && offsets[next_kept_] < position_ + count;
       ++next_kept_) {
    block_[offsets[next_kept_] - position_] = gradient_.values_[next_kept_];
  }
  position_ += count;
  return {reinterpret_cast<const std::byte*>(block_.get()), count};
}

}  // namespace parasol
