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

class SequenceEmbeddingPass final : public LayerPass {
 public:
  SequenceEmbeddingPass(Device& device, int64_t examples, const Shape& shape)
      : device_(device),
        examples_(examples),
        length_(shape[0]),
        width_(shape[1]) {}

  absl::Status RunForward(const Forward& pass) override {
    return GatherSequences(device_, pass.rows.table, SequencesOf(pass.rows),
                           length_, {pass.y, examples_ * length_, width_});
  }

  absl::Status RunVariableGradients(const Backward& pass) override {
    return absl::OkStatus();
  }

  absl::Status RunInputGradients(const Backward& pass) override {
    return AddSequencesToRows(device_, {pass.dy, examples_ * length_, width_},
                              SequencesOf(pass.rows), length_, pass.rows.table);
  }

 private:
  Bags SequencesOf(const RowsView& rows) const {
    return {.offsets = rows.offsets,
            .positions = rows.positions,
            .examples = examples_,
            .by_row = rows.by_row};
  }

  Device& device_;
  const int64_t examples_;
  const int64_t length_;
  const int64_t width_;
};

class EmbeddingLayer final : public Layer {
 public:
  EmbeddingLayer(const job::Embedding& spec, const LayerInput& input,
                 int64_t width)
      : is_sequence_(StepsOf(input) > 0) {
    output_shape_ = {is_sequence_ ? StepsOf(input) : input.ids_per_example,
                     width};
    table_ = spec.table();
    row_l2_ = spec.l2();
  }

  bool NeedsEveryId() const override { return !is_sequence_; }
  bool KeepsOutputGradient() const override { return true; }
  bool IsRecordable() const override { return true; }
  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device& device, int64_t examples) const override {
    if (is_sequence_) {
      return std::make_unique<SequenceEmbeddingPass>(device, examples,
                                                     output_shape());
    }
    return std::make_unique<EmbeddingPass>(device, examples * output_shape()[0],
                                           output_shape()[1]);
  }

 private:
  const bool is_sequence_;
};

void FillDefaults(job::Embedding& spec) { PARASOL_SET_DEFAULT(spec, l2, 0); }

}  // namespace

absl::StatusOr<std::unique_ptr<const Layer>> MakeEmbedding(
    const job::Embedding& spec, absl::Span<const LayerInput> inputs,
    int64_t table_width) {
  ASSIGN_OR_RETURN(const LayerInput input, OnlyIdInput(inputs));
  if (input.ids_per_example <= 0 && StepsOf(input) == 0) {
    return absl::InvalidArgumentError(
        "embedding needs the same number of ids in each example, but its input "
        "may have any number: use embedding_bag, or give the input a sequence");
  }
  return std::make_unique<EmbeddingLayer>(spec, input, table_width);
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
