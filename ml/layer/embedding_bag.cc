#include "ml/layer/embedding_bag.h"

#include <string>

#include "absl/status/status.h"
#include "base/set_default.h"
#include "base/status_macros.h"
#include "ml/kernel/table_rows.h"
#include "ml/layer/field/lookup_fields.h"
#include "ml/layer/id_inputs.h"

namespace parasol {
namespace {

class EmbeddingBagPass final : public LayerPass {
 public:
  EmbeddingBagPass(Device& device, int64_t examples, int64_t width,
                   Combiner combiner)
      : device_(device),
        examples_(examples),
        width_(width),
        combiner_(combiner) {}

  absl::Status RunForward(const Forward& pass) override {
    const float* const bias =
        pass.variables.empty() ? nullptr : pass.variables[0];
    return CombineRows(device_, pass.rows.table, BagsOf(pass.rows), combiner_,
                       bias, {pass.y, examples_, width_});
  }

  absl::Status RunVariableGradients(const Backward& pass) override {
    if (pass.gradients.empty()) return absl::OkStatus();
    return SumColumns(device_, Gradient(pass), pass.gradients[0]);
  }

  absl::Status RunInputGradients(const Backward& pass) override {
    return AddCombinedToRows(device_, Gradient(pass), BagsOf(pass.rows),
                             combiner_, pass.rows.table);
  }

 private:
  Bags BagsOf(const RowsView& rows) const {
    return {.offsets = rows.offsets,
            .positions = rows.positions,
            .weights = rows.weights,
            .examples = examples_,
            .by_row = rows.by_row};
  }
  MatrixView Gradient(const Backward& pass) const {
    return {pass.dy, examples_, width_};
  }

  Device& device_;
  const int64_t examples_;
  const int64_t width_;
  const Combiner combiner_;
};

class EmbeddingBagLayer final : public Layer {
 public:
  EmbeddingBagLayer(const job::EmbeddingBag& spec, int64_t width)
      : combiner_(spec.combiner() == job::EmbeddingBag::MEAN ? Combiner::kMean
                                                             : Combiner::kSum) {
    output_shape_ = {width};
    table_ = spec.table();
    row_l2_ = spec.l2();
    if (!spec.use_bias()) return;
    variables_.push_back({.name = "bias", .shape = {width}});
    variables_.back().initializer.mutable_zeros();
    variable_l2_.push_back(0);
  }

  bool KeepsOutputGradient() const override { return true; }
  bool IsRecordable() const override { return true; }
  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device& device, int64_t examples) const override {
    return std::make_unique<EmbeddingBagPass>(device, examples,
                                              output_shape()[0], combiner_);
  }

 private:
  const Combiner combiner_;
};

void FillDefaults(job::EmbeddingBag& spec) {
  if (spec.combiner() == job::EmbeddingBag::COMBINER_UNSPECIFIED) {
    spec.set_combiner(job::EmbeddingBag::SUM);
  }
  PARASOL_SET_DEFAULT(spec, use_bias, false);
  PARASOL_SET_DEFAULT(spec, l2, 0);
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Layer>> MakeEmbeddingBag(
    const job::EmbeddingBag& spec, absl::Span<const LayerInput> inputs,
    int64_t table_width) {
  RETURN_IF_ERROR(OnlyIdInput(inputs).status());
  return std::make_unique<EmbeddingBagLayer>(spec, table_width);
}

constinit const LayerKind kEmbeddingBagKind = {
    .field = job::Layer::kEmbeddingBag,
    .fill_defaults =
        [](job::Layer& layer) { FillDefaults(*layer.mutable_embedding_bag()); },
    .check =
        [](const std::string& path, const job::Layer& layer) {
          return CheckLookup(path, layer.embedding_bag());
        },
    .table = [](const job::Layer& layer) -> const std::string& {
      return layer.embedding_bag().table();
    },
    .make =
        [](const job::Layer& layer, absl::Span<const LayerInput> inputs,
           int64_t table_width) {
          return MakeEmbeddingBag(layer.embedding_bag(), inputs, table_width);
        },
};

}  // namespace parasol
