#ifndef PARASOL_ML_MODEL_TESTING_MODEL_FIXTURE_H_
#define PARASOL_ML_MODEL_TESTING_MODEL_FIXTURE_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/model/graph.h"
#include "ml/model/model.h"
#include "ml/model/testing/correct_examples.h"

namespace parasol {

inline job::Model ParseModel(const std::string& text) {
  job::Model model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &model));
  return model;
}

// A model of `layers` with the cross-entropy of a softmax as its loss.
inline job::Model Classifier(const std::string& layers) {
  return ParseModel(layers + " loss { sparse_categorical_crossentropy {} }");
}

inline Batch RandomBatch(int64_t size, std::vector<int64_t> shape,
                         int64_t classes) {
  Batch batch = {.size = size, .dense = {{.shape = shape}}};
  int64_t inputs = 1;
  for (int64_t axis : shape) inputs *= axis;
  const reference::Matrix values = RandomMatrix(size, inputs, 77);
  batch.dense[0].values.assign(values.values.begin(), values.values.end());
  for (int64_t i = 0; i < size; ++i) batch.labels.push_back(i % classes);
  return batch;
}

inline void IgnoreVariable(size_t, absl::Span<const float>) {}
inline void IgnoreRows(size_t, absl::Span<const uint64_t>,
                       absl::Span<const float>) {}

// Values or gradients of all variables, indexed by variable.
using Values = std::vector<std::vector<float>>;

// A device, and models on it.
class ModelTestBase : public DeviceTest {
 protected:
  std::unique_ptr<Model> Make(const job::Model& spec) {
    absl::StatusOr<std::unique_ptr<Model>> model =
        Model::Create(ResolveGraph(spec).value(), device());
    EXPECT_OK(model);
    return *std::move(model);
  }
  std::unique_ptr<Model> Make(const std::string& layers) {
    return Make(Classifier(layers));
  }

  static void Set(Model& model, size_t index, absl::Span<const float> value) {
    absl::Span<float> host = model.HostValue(index);
    ASSERT_EQ(host.size(), value.size());
    std::copy(value.begin(), value.end(), host.begin());
    ASSERT_OK(model.Upload(index));
  }

  static Values RandomValues(const Model& model) {
    Values values;
    for (size_t i = 0; i < model.variables().size(); ++i) {
      const reference::Matrix m =
          RandomMatrix(1, model.variables()[i].elements(), i + 1);
      values.emplace_back(m.values.begin(), m.values.end());
    }
    return values;
  }
  static void SetAll(Model& model, const Values& values) {
    for (size_t i = 0; i < values.size(); ++i) Set(model, i, values[i]);
  }

  static absl::StatusOr<BatchResult> Train(
      Model& model, const Batch& batch,
      absl::FunctionRef<void(size_t, absl::Span<const float>)> ready) {
    const std::unique_ptr<StagedBatch> staged = model.NewStagedBatch();
    RETURN_IF_ERROR(model.Stage(batch, *staged));
    return model.Gradients(*staged, /*seed=*/1,
                           {.variable = ready, .rows = IgnoreRows});
  }

  static Values GradientsOf(Model& model, const Batch& batch) {
    Values gradients(model.variables().size());
    EXPECT_OK(Train(model, batch,
                    [&](size_t index, absl::Span<const float> gradient) {
                      gradients[index].assign(gradient.begin(), gradient.end());
                    }));
    return gradients;
  }

  struct Evaluated {
    double loss_sum = 0;
    int64_t examples = 0;
    int64_t correct = 0;
    std::vector<float> outputs;
  };
  static absl::StatusOr<Evaluated> Evaluate(Model& model, const Batch& batch) {
    const std::unique_ptr<StagedBatch> staged = model.NewStagedBatch();
    RETURN_IF_ERROR(model.Stage(batch, *staged));
    ASSIGN_OR_RETURN(const EvaluatedBatch evaluated, model.Evaluate(*staged));
    return Evaluated{
        .loss_sum = evaluated.result.loss_sum,
        .examples = evaluated.result.examples,
        .correct = CorrectExamples(batch, evaluated.outputs),
        .outputs = {evaluated.outputs.begin(), evaluated.outputs.end()}};
  }
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_TESTING_MODEL_FIXTURE_H_
