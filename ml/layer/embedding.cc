#include "ml/layer/embedding.h"

#include <string>

#include "absl/status/status.h"
#include "base/set_default.h"
#include "base/status_macros.h"
#include "ml/kernel/table_rows.h"
#include "ml/layer/field/lookup_fields.h"
#include "ml/layer/id_inputs.h"

namespace parasol {
namespace {

class EmbeddingPass final : public LayerPass {
 public:
  // `ids`: of a batch.
  EmbeddingPass(Device& device, int64_t ids, int64_t width)
      : device_(device), ids_(ids), width_(width) {}

  absl::Status RunForward(const Forward& pass) override {
    return GatherRows(device_, pass.rows.table, pass.rows.positions,
                      {pass.y, ids_, width_});
  }

  absl::Status RunVariableGradients(const Backward& pass) override {
    return absl::OkStatus();
  }

  absl::Status RunInputGradients(const Backward& pass) override {
    return AddToRows(device_, {pass.dy, ids_, width_}, pass.rows.positions,
                     pass.rows.by_row, pass.rows.table);
  }

 private:
  Device& device_;
  const int64_t ids_;
  const int64_t width_;
};

class EmbeddingLayer final : public Layer {
 public:
  EmbeddingLayer(const job::Embedding& spec, int64_t ids, int64_t width) {
    output_shape_ = {ids, width};
    table_ = spec.table();
    row_l2_ = spec.l2();
  }

  bool NeedsEveryId() const override { return true; }
  bool KeepsOutputGradient() const override { return true; }
  bool IsRecordable() const override { return true; }
  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device& device, int64_t examples) const override {
    return std::make_unique<EmbeddingPass>(device, examples * output_shape()[0],
                                           output_shape()[1]);
  }
};

void FillDefaults(job::Embedding& spec) { PARASOL_SET_DEFAULT(spec, l2, 0); }

}  // namespace

absl::StatusOr<std::unique_ptr<const Layer>> MakeEmbedding(
    const job::Embedding& spec, absl::Span<const LayerInput> inputs,
    int64_t table_width) {
  ASSIGN_OR_RETURN(const LayerInput input, OnlyIdInput(inputs));
  if (input.ids_per_example <= 0) {
    return absl::InvalidArgumentError(
        "embedding needs the same number of ids in each example, but its input "
        "may have any "
        "number: use embedding_bag");
  }
  return std::make_unique<EmbeddingLayer>(spec, input.ids_per_example,
                                          table_width);
}

constinit const LayerKind kEmbeddingKind = {
    .field = job::Layer::kEmbedding,
    .fill_defaults =
        [](job::Layer& layer) { FillDefaults(*layer.mutable_embedding()); },
    .check =
        [](const std::string& path, const job::Layer& layer) {
          return CheckLookup(path, layer.embedding());
        },
    .table = [](const job::Layer& layer) -> const std::string& {
      return layer.embedding().table();
    },
    .make =
        [](const job::Layer& layer, absl::Span<const LayerInput> inputs,
           int64_t table_width) {
          return MakeEmbedding(layer.embedding(), inputs, table_width);
        },
};

}  // namespace parasol
