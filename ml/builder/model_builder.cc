#include "ml/builder/model_builder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "google/protobuf/descriptor.h"

namespace parasol {
namespace {

// Name of the input that input_shape stands for (proto/job.proto, Model).
constexpr char kShortInput[] = "input";

std::string KindOf(const job::Layer& layer) {
  const auto* const kind = layer.GetReflection()->GetOneofFieldDescriptor(
      layer, job::Layer::descriptor()->FindOneofByName("kind"));
  return kind == nullptr ? "layer" : kind->name();
}

void ShortenInput(job::Model& model) {
  if (model.input_size() != 1) return;
  const job::ModelInput& input = model.input(0);
  if (input.name() != kShortInput || !input.has_dense() ||
      input.dense().column_size() > 0 || input.dense().shape_size() == 0) {
    return;
  }
  *model.mutable_input_shape() = input.dense().shape();
  model.clear_input();
}

}  // namespace

Value ModelBuilder::DenseInput(absl::string_view name,
                               absl::Span<const int64_t> shape,
                               absl::Span<const job::NumericColumn> columns) {
  job::ModelInput& input = *model_.add_input();
  input.set_name(std::string(name));
  input.mutable_dense()->mutable_shape()->Add(shape.begin(), shape.end());
  for (const job::NumericColumn& column : columns) {
    *input.mutable_dense()->add_column() = column;
  }
  return {this, input.name()};
}

Value ModelBuilder::IdInput(absl::string_view name,
                            absl::Span<const job::IdColumn> columns) {
  job::ModelInput& input = *model_.add_input();
  input.set_name(std::string(name));
  input.mutable_ids();
  for (const job::IdColumn& column : columns) {
    *input.mutable_ids()->add_column() = column;
  }
  return {this, input.name()};
}

Value ModelBuilder::SequenceInput(absl::string_view name,
                                  const job::IdColumn& column, int64_t length,
                                  job::IdSequence::Keep keep) {
  const Value input = IdInput(name, {column});
  job::IdSequence& sequence = *model_.mutable_input(model_.input_size() - 1)
                                   ->mutable_ids()
                                   ->mutable_sequence();
  sequence.set_length(length);
  if (keep != job::IdSequence::LAST) sequence.set_keep(keep);
  return input;
}

Value ModelBuilder::MaskOf(const Value& sequence) {
  return {sequence.builder, absl::StrCat(sequence.name, ".mask")};
}

std::string ModelBuilder::SparseTable(absl::string_view name, int64_t width,
                                      const TableOptions& options) {
  job::SparseTable& table = *model_.add_sparse_table();
  table.set_name(std::string(name));
  table.set_width(width);
  if (options.initializer.kind_case() != job::Initializer::KIND_NOT_SET) {
    *table.mutable_initializer() = options.initializer;
  }
  if (options.optimizer.kind_case() != job::Optimizer::KIND_NOT_SET) {
    *table.mutable_optimizer() = options.optimizer;
  }
  return table.name();
}

Value ModelBuilder::AddLayer(job::Layer layer, absl::Span<const Value> inputs) {
  const int position = model_.layer_size();
  if (layer.name().empty()) {
    layer.set_name(absl::StrCat(KindOf(layer), "_", position));
    unnamed_.insert(position);
  }
  layer.clear_input();
  for (const Value& input : inputs) {
    CHECK(input.builder == this) << layer.name() << " reads " << input.name
                                 << ", which another ModelBuilder made";
    layer.add_input(input.name);
  }
  *model_.add_layer() = std::move(layer);
  return {this, model_.layer(position).name()};
}

void ModelBuilder::SetLoss(const job::Loss& loss) {
  *model_.mutable_loss() = loss;
}

void ModelBuilder::AddMetric(const job::Metric& metric) {
  *model_.add_metric() = metric;
}

void ModelBuilder::AddOutput(absl::string_view name, const Value& value,
                             const OutputOptions& options) {
  CHECK(value.builder == this) << "output " << name << " is " << value.name
                               << ", which another ModelBuilder made";
  job::Output& output = *model_.add_output();
  output.set_name(std::string(name));
  if (value.name != name) output.set_layer(value.name);
  if (options.label.has_column()) *output.mutable_label() = options.label;
  if (!options.mask.empty()) output.set_mask(options.mask);
  if (options.weight != 1) output.set_weight(options.weight);
  *output.mutable_loss() = options.loss;
  for (const job::Metric& metric : options.metrics) {
    *output.add_metric() = metric;
  }
}

bool ModelBuilder::IsDefaultInput(int layer) const {
  const job::Layer& spec = model_.layer(layer);
  if (spec.input_size() != 1) return false;
  if (layer > 0) return spec.input(0) == model_.layer(layer - 1).name();
  return model_.input_size() == 1;
}

job::Model ModelBuilder::Build() const {
  job::Model model = model_;
  std::set<std::string> read;
  for (int i = 0; i < model.layer_size(); ++i) {
    job::Layer& layer = *model.mutable_layer(i);
    if (IsDefaultInput(i)) layer.clear_input();
    read.insert(layer.input().begin(), layer.input().end());
  }
  for (const job::Output& output : model.output()) read.insert(output.layer());
  for (const int i : unnamed_) {
    job::Layer& layer = *model.mutable_layer(i);
    if (!read.contains(layer.name())) layer.clear_name();
  }
  if (!read.contains(kShortInput)) ShortenInput(model);
  return model;
}

}  // namespace parasol
