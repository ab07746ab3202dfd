#include "ml/layer/sequence/multi_head_attention.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/field_checks.h"
#include "base/set_default.h"
#include "base/status_macros.h"
#include "ml/kernel/add.h"
#include "ml/kernel/affine.h"
#include "ml/kernel/zero.h"
#include "ml/layer/field/affine_fields.h"
#include "ml/layer/sequence/attention.h"
#include "ml/layer/sequence/attention_inputs.h"

namespace parasol {
namespace {

// The three projections of inputs, in the order of their variables.
enum Projection { kQuery, kKey, kValue, kProjections };

class MultiHeadAttentionPass final : public LayerPass {
 public:
  struct Form {
    AttentionInputs inputs;
    AttentionSizes sizes;
    int64_t output_width = 0;
    bool has_bias = true;
  };

  // `memory`: the projections of the inputs and what is attended to, and their
  // gradients behind them; `second_dx`: memory for one more gradient by an
  // input that has several projections.
  MultiHeadAttentionPass(Device& device, const Form& form,
                         std::unique_ptr<Attention> attention,
                         Array<float> memory, Array<float> second_dx)
      : device_(device),
        form_(form),
        attention_(std::move(attention)),
        memory_(std::move(memory)),
        second_dx_(std::move(second_dx)) {}

  absl::Status RunForward(const Forward& pass) override {
    for (int i = kQuery; i < kProjections; ++i) {
      RETURN_IF_ERROR(Affine(device_, InputOf(i, pass.x), KernelOf(i, pass),
                             BiasOf(i, pass.variables), Epilogue::kNone,
                             Projected(i)));
    }
    RETURN_IF_ERROR(attention_->Forward(
        Parts(0), MaskOf(pass.x), pass.training ? &pass.stored_seed : nullptr,
        Attended().data));
    return Affine(device_, Attended(), OutputKernel(pass.variables),
                  BiasOf(kProjections, pass.variables), Epilogue::kNone,
                  {pass.y, Rows(kQuery), form_.output_width});
  }

  absl::Status RunVariableGradients(const Backward& pass) override {
    const MatrixView dy = {pass.dy, Rows(kQuery), form_.output_width};
    RETURN_IF_ERROR(
        AffineVariableGradients(device_, Attended(), dy,
                                {GradientOf(kProjections, pass),
                                 Attended().columns, form_.output_width},
                                BiasGradientOf(kProjections, pass)));
    RETURN_IF_ERROR(AffineInputGradient(
        device_, dy, OutputKernel(pass.variables), AttendedGradient()));
    RETURN_IF_ERROR(attention_->Backward(
        Parts(0), &pass.stored_seed, AttendedGradient().data, Parts(Half())));
    for (int i = kQuery; i < kProjections; ++i) {
      RETURN_IF_ERROR(AffineVariableGradients(
          device_, InputOf(i, pass.x), Gradient(i),
          {GradientOf(i, pass), WidthOf(i), Projected(i).columns},
          BiasGradientOf(i, pass)));
    }
    return absl::OkStatus();
  }

  absl::Status RunInputGradients(const Backward& pass) override {
    const AttentionInputs& inputs = form_.inputs;
    for (size_t input = 0; input < pass.dx.size(); ++input) {
      if (pass.dx[input] == nullptr) continue;
      float* const dx = pass.dx[input];
      if (static_cast<int>(input) == inputs.mask) {
        // Nothing changes where a mask changes a little.
        RETURN_IF_ERROR(
            Zero(device_, dx, form_.sizes.examples * inputs.mask_size));
        continue;
      }
      bool is_first = true;
      for (int i = kQuery; i < kProjections; ++i) {
        if (PlaceOf(i) != static_cast<int>(input)) continue;
        RETURN_IF_ERROR(AddInputGradient(i, pass, is_first, dx));
        is_first = false;
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status AddInputGradient(int i, const Backward& pass, bool is_first,
                                float* dx) {
    float* const part = is_first ? dx : second_dx_.data();
    RETURN_IF_ERROR(AffineInputGradient(device_, Gradient(i), KernelOf(i, pass),
                                        {part, Rows(i), WidthOf(i)}));
    if (is_first) return absl::OkStatus();
    return Add(device_, dx, part, Rows(i) * WidthOf(i), AddEpilogue::kNone, dx);
  }

  // Which input a projection is of, and the sizes of that.
  int PlaceOf(int i) const {
    return i == kQuery ? 0 : i == kKey ? form_.inputs.key : form_.inputs.value;
  }
  int64_t WidthOf(int i) const {
    return i == kQuery ? form_.inputs.query_width
           : i == kKey ? form_.inputs.key_width
                       : form_.inputs.value_width;
  }
  int64_t Rows(int i) const {
    const AttentionSizes& s = form_.sizes;
    return s.examples * (i == kQuery ? s.queries : s.keys);
  }
  MatrixView InputOf(int i, absl::Span<const ConstElements> x) const {
    return {x[PlaceOf(i)], Rows(i), WidthOf(i)};
  }
  const float* MaskOf(absl::Span<const ConstElements> x) const {
    return form_.inputs.mask < 0 ? nullptr : x[form_.inputs.mask].As<float>();
  }

  // A projection, or for kProjections what is attended to.
  int64_t Columns(int i) const {
    const AttentionSizes& s = form_.sizes;
    return s.heads * (i == kQuery || i == kKey ? s.key_width : s.value_width);
  }
  int64_t Begin(int i) const {
    int64_t begin = 0;
    for (int j = 0; j < i; ++j) begin += Rows(j) * Columns(j);
    return begin;
  }
  int64_t Half() const { return static_cast<int64_t>(memory_.size()) / 2; }
  MutableMatrixView Projected(int i) const {
    return {memory_.data() + Begin(i), Rows(i), Columns(i)};
  }
  MutableMatrixView Gradient(int i) const {
    return {memory_.data() + Half() + Begin(i), Rows(i), Columns(i)};
  }
  MutableMatrixView Attended() const {
    return {memory_.data() + Begin(kProjections), Rows(kQuery),
            Columns(kValue)};
  }
  MutableMatrixView AttendedGradient() const {
    return {Attended().data + Half(), Rows(kQuery), Columns(kValue)};
  }
  Attention::Parts Parts(int64_t begin) const {
    return {memory_.data() + begin + Begin(kQuery),
            memory_.data() + begin + Begin(kKey),
            memory_.data() + begin + Begin(kValue)};
  }

  // Variables: each projection's kernel, and its bias behind it if it has one.
  size_t Variable(int i) const { return form_.has_bias ? 2 * i : i; }
  template <typename Pass>
  MatrixView KernelOf(int i, const Pass& pass) const {
    return {pass.variables[Variable(i)], WidthOf(i), Columns(i)};
  }
  MatrixView OutputKernel(absl::Span<const float* const> variables) const {
    return {variables[Variable(kProjections)], Columns(kValue),
            form_.output_width};
  }
  const float* BiasOf(int i, absl::Span<const float* const> variables) const {
    return form_.has_bias ? variables[Variable(i) + 1] : nullptr;
  }
  float* GradientOf(int i, const Backward& pass) const {
    return pass.gradients[Variable(i)];
  }
  float* BiasGradientOf(int i, const Backward& pass) const {
    return form_.has_bias ? pass.gradients[Variable(i) + 1] : nullptr;
  }

  Device& device_;
  const Form form_;
  const std::unique_ptr<Attention> attention_;
  const Array<float> memory_;
  const Array<float> second_dx_;
};

class MultiHeadAttentionLayer final : public Layer {
 public:
  // `spec` has its defaults filled in.
  MultiHeadAttentionLayer(const job::MultiHeadAttention& spec,
                          const AttentionInputs& inputs)
      : form_{.inputs = inputs,
              .sizes = {.examples = 1,
                        .heads = spec.num_heads(),
                        .queries = inputs.queries,
                        .keys = inputs.keys,
                        .key_width = spec.key_dim(),
                        .value_width = spec.value_dim(),
                        .causal = spec.causal(),
                        .mask_example = inputs.mask_size,
                        .mask_query = inputs.mask_query,
                        .dropout = spec.dropout()},
              .output_width = spec.output_dim() == 0 ? inputs.query_width
                                                     : spec.output_dim(),
              .has_bias = spec.use_bias()} {
    output_shape_ = {inputs.queries, form_.output_width};
    const AttentionSizes& s = form_.sizes;
    AddVariables("query", {inputs.query_width, s.heads, s.key_width}, 1, spec);
    AddVariables("key", {inputs.key_width, s.heads, s.key_width}, 1, spec);
    AddVariables("value", {inputs.value_width, s.heads, s.value_width}, 1,
                 spec);
    AddVariables("attention_output",
                 {s.heads, s.value_width, form_.output_width}, 2, spec);
  }

  bool KeepsOutputGradient() const override { return true; }
  bool ReadsStoredSeed() const override { return form_.sizes.dropout > 0; }
  bool IsRecordable() const override { return form_.sizes.dropout == 0; }
  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device& device, int64_t examples) const override {
    MultiHeadAttentionPass::Form form = form_;
    AttentionSizes& s = form.sizes;
    s.examples = examples;
    const int64_t projected = examples * s.heads * (s.queries + s.keys) *
                              (s.key_width + s.value_width);
    const int64_t widest =
        std::max({form.inputs.query_width, form.inputs.key_width,
                  form.inputs.value_width});
    ASSIGN_OR_RETURN(std::unique_ptr<Attention> attention,
                     Attention::Create(device, s));
    ASSIGN_OR_RETURN(Array<float> memory,
                     device.NewArray<float>(2 * projected));
    ASSIGN_OR_RETURN(Array<float> second_dx,
                     device.NewArray<float>(examples * s.keys * widest));
    return std::make_unique<MultiHeadAttentionPass>(
        device, form, std::move(attention), std::move(memory),
        std::move(second_dx));
  }

 private:
  // The last axes of `shape`, without the first `summed`, are the bias's.
  void AddVariables(const std::string& name, const Shape& shape, int summed,
                    const job::MultiHeadAttention& spec) {
    variables_.push_back({.name = name + "/kernel",
                          .shape = shape,
                          .initializer = spec.kernel_initializer()});
    variable_l2_.push_back(spec.kernel_l2());
    if (!spec.use_bias()) return;
    variables_.push_back({.name = name + "/bias",
                          .shape = Shape(shape.begin() + summed, shape.end()),
                          .initializer = spec.bias_initializer()});
    variable_l2_.push_back(spec.bias_l2());
  }

  const MultiHeadAttentionPass::Form form_;
};

void FillDefaults(job::MultiHeadAttention& spec) {
  PARASOL_SET_DEFAULT(spec, value_dim, spec.key_dim());
  PARASOL_SET_DEFAULT(spec, output_dim, 0);
  PARASOL_SET_DEFAULT(spec, causal, false);
  PARASOL_SET_DEFAULT(spec, masked, false);
  PARASOL_SET_DEFAULT(spec, dropout, 0);
  FillProduct(spec);
}

absl::Status CheckRanges(const std::string& path,
                         const job::MultiHeadAttention& spec) {
  const std::string heads = absl::StrCat(path, ".num_heads");
  const std::string width = absl::StrCat(path, ".key_dim");
  if (!spec.has_num_heads()) return Missing(heads);
  if (!spec.has_key_dim()) return Missing(width);
  RETURN_IF_ERROR(RequireInRange(heads, spec.num_heads(), 1, kMaxInt));
  RETURN_IF_ERROR(RequireInRange(width, spec.key_dim(), 1, kMaxInt));
  RETURN_IF_ERROR(RequireInRange(absl::StrCat(path, ".value_dim"),
                                 spec.value_dim(), 1, kMaxInt));
  RETURN_IF_ERROR(RequireInRange(absl::StrCat(path, ".output_dim"),
                                 spec.output_dim(), 0, kMaxInt));
  if (!(spec.dropout() >= 0 && spec.dropout() < 1)) {
    return Fault(absl::StrCat(path, ".dropout"),
                 absl::StrCat(spec.dropout(), " is not from 0 to below 1"));
  }
  return CheckProduct(path, spec);
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Layer>> MakeMultiHeadAttention(
    const job::MultiHeadAttention& spec, absl::Span<const LayerInput> inputs) {
  job::MultiHeadAttention filled = spec;
  FillDefaults(filled);
  ASSIGN_OR_RETURN(const AttentionInputs fit, FitAttention(filled, inputs));
  return std::make_unique<MultiHeadAttentionLayer>(filled, fit);
}

constinit const LayerKind kMultiHeadAttentionKind = {
    .field = job::Layer::kMultiHeadAttention,
    .fill_defaults =
        [](job::Layer& layer) {
          FillDefaults(*layer.mutable_multi_head_attention());
        },
    .check =
        [](const std::string& path, const job::Layer& layer) {
          return CheckRanges(path, layer.multi_head_attention());
        },
    .make =
        [](const job::Layer& layer, absl::Span<const LayerInput> inputs,
           int64_t) {
          return MakeMultiHeadAttention(layer.multi_head_attention(), inputs);
        },
};

}  // namespace parasol
