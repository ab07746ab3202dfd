#include "ml/layer/sequence/attention_inputs.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/field_checks.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "ml/layer/dense_inputs.h"

namespace parasol {
namespace {

absl::Status CheckSequence(const std::string& what, const Shape& shape) {
  if (shape.size() == 2) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the ", what, " are [steps, width], not ", ShapeText(shape)));
}

absl::Status FitMask(const Shape& shape, AttentionInputs& fit) {
  if (shape == Shape{fit.keys}) {
    fit.mask_size = fit.keys;
    return absl::OkStatus();
  }
  if (shape == Shape{fit.queries, fit.keys}) {
    fit.mask_size = fit.queries * fit.keys;
    fit.mask_query = fit.keys;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "masked: the last input is the mask, ", ShapeText(Shape{fit.keys}),
      " or ", ShapeText(Shape{fit.queries, fit.keys}), ", not ",
      ShapeText(shape)));
}

// Kernels are matrices whose elements are counted in int.
absl::Status CheckHeads(const job::MultiHeadAttention& spec,
                        const AttentionInputs& fit) {
  const int64_t widest =
      std::max({fit.query_width, fit.key_width, fit.value_width,
                spec.output_dim(), int64_t{1}});
  const int64_t head = std::max(spec.key_dim(), spec.value_dim());
  const bool positive =
      spec.num_heads() >= 1 && spec.key_dim() >= 1 && spec.value_dim() >= 1;
  if (positive && spec.output_dim() >= 0 && head <= kMaxInt / widest &&
      spec.num_heads() <= kMaxInt / (head * widest)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("num_heads ", spec.num_heads(), ", key_dim ", spec.key_dim(),
                   " and value_dim ", spec.value_dim(), " with a width of ",
                   widest, ": kernels must have 1 to ", kMaxInt, " elements"));
}

}  // namespace

absl::StatusOr<AttentionInputs> FitAttention(
    const job::MultiHeadAttention& spec, absl::Span<const LayerInput> inputs) {
  RETURN_IF_ERROR(CheckDenseInputs(inputs));
  const size_t sequences = inputs.size() - (spec.masked() ? 1 : 0);
  if (sequences < 1 || sequences > 3) {
    return absl::InvalidArgumentError(absl::StrCat(
        "takes queries, values and keys", spec.masked() ? ", and a mask" : "",
        ", not ", inputs.size(), " inputs"));
  }
  AttentionInputs fit;
  fit.value = sequences > 1 ? 1 : 0;
  fit.key = sequences > 2 ? 2 : fit.value;
  const Shape& query = inputs[0].shape;
  const Shape& value = inputs[fit.value].shape;
  const Shape& key = inputs[fit.key].shape;
  RETURN_IF_ERROR(CheckSequence("queries", query));
  RETURN_IF_ERROR(CheckSequence("values", value));
  RETURN_IF_ERROR(CheckSequence("keys", key));
  if (key[0] != value[0]) {
    return absl::InvalidArgumentError(
        absl::StrCat("each value has one key, but the values are ",
                     ShapeText(value), " and the keys ", ShapeText(key)));
  }
  fit.queries = query[0];
  fit.keys = value[0];
  fit.query_width = query[1];
  fit.value_width = value[1];
  fit.key_width = key[1];
  RETURN_IF_ERROR(CheckHeads(spec, fit));
  if (!spec.masked()) return fit;
  fit.mask = static_cast<int>(sequences);
  RETURN_IF_ERROR(FitMask(inputs[sequences].shape, fit));
  return fit;
}

}  // namespace parasol
