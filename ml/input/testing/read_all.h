#ifndef PARASOL_ML_INPUT_TESTING_READ_ALL_H_
#define PARASOL_ML_INPUT_TESTING_READ_ALL_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/input/feature/batch.h"
#include "ml/input/feature/model_inputs.h"
#include "ml/input/input_pipeline.h"
#include "ml/loss/loss_kinds.h"
#include "proto/job.pb.h"

namespace parasol {

template <typename Message>
Message FromText(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message))
      << text;
  return message;
}

// Returns what the model reads that `text` describes, whose last layer, if it
// has any, is dense. A label is a class number if it has no loss. A named
// output has the units of the dense layer of its name, or one.
inline absl::StatusOr<ModelInputs> InputsFromText(const std::string& text) {
  const auto model = FromText<job::Model>(text);
  const int64_t outputs =
      model.layer().empty() ? 0 : model.layer().rbegin()->dense().units();
  LabelForm label = {.kind = LabelForm::Kind::kClass, .classes = outputs};
  if (model.has_loss()) label = KindOf(model.loss())->label(outputs);
  if (label.kind != LabelForm::Kind::kNone) {
    label.width = std::max<int64_t>(label.width, 1);
  }
  ASSIGN_OR_RETURN(ModelInputs inputs, ModelInputsOf(model, label));
  for (const job::Output& output : model.output()) {
    int64_t units = 1;
    for (const job::Layer& layer : model.layer()) {
      if (layer.name() == output.name()) units = layer.dense().units();
    }
    inputs.targets.push_back({.output = output.name(),
                              .form = KindOf(output.loss())->label(units),
                              .label = output.label(),
                              .mask = output.mask()});
    for (const ExampleColumn& column : ColumnsOf(output.loss())) {
      inputs.columns.push_back(column);
    }
  }
  for (const ExampleColumn& column : ColumnsOf(model.loss())) {
    inputs.columns.push_back(column);
  }
  return inputs;
}

// Returns the whole data set, whose files are in the test's directory, as one
// batch in its order. Returns an empty batch if there are no examples.
inline absl::StatusOr<Batch> ReadAll(const std::string& dataset,
                                     const std::string& model) {
  const auto spec = FromText<job::Dataset>("batch_size: 100000 " + dataset);
  ASSIGN_OR_RETURN(const ModelInputs inputs, InputsFromText(model));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<InputPipeline> pipeline,
      InputPipeline::Open(spec, inputs, {.data_dir = testing::TempDir()}));
  ASSIGN_OR_RETURN(const Batch* batch, pipeline->Next());
  return batch == nullptr ? Batch() : *batch;
}

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_TESTING_READ_ALL_H_
