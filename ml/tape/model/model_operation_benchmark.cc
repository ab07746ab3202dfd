// A training step's computation of an MNIST classifier (784-512-10), forward
// and backward: as a job's model computes it, as a function, and as an
// operation on a tape with a loss of tensors.
//   bazel run //ml/tape/model:model_operation_benchmark
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "base/log.h"
#include "benchmark/benchmark.h"
#include "google/protobuf/text_format.h"
#include "ml/device/device.h"
#include "ml/input/feature/batch.h"
#include "ml/model/function/function_graph.h"
#include "ml/model/function/model_function.h"
#include "ml/model/model.h"
#include "ml/tape/elementwise.h"
#include "ml/tape/model/model_operation.h"
#include "ml/tape/reduce.h"
#include "ml/tape/tape.h"
#include "ml/tape/tensor.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

constexpr char kClassifier[] =
    "input_shape: [28, 28] layer { flatten {} }"
    "layer { dense { units: 512 activation: RELU } }"
    "layer { dense { units: 10 } }"
    "loss { sparse_categorical_crossentropy {} }";

job::Model Classifier() {
  job::Model spec;
  CHECK(google::protobuf::TextFormat::ParseFromString(kClassifier, &spec));
  return spec;
}

std::vector<float> ValueOf(const VariableSpec& variable) {
  std::vector<float> value(variable.elements());
  for (size_t i = 0; i < value.size(); ++i) value[i] = .01f * (i % 7) - .03f;
  return value;
}

void CountExamples(benchmark::State& state) {
  state.counters["examples"] = benchmark::Counter(
      state.range(0) * state.iterations(), benchmark::Counter::kIsRate);
}

void BM_Model(benchmark::State& state) {
  const std::unique_ptr<Device> device = *Device::Open("cpu");
  const std::unique_ptr<Model> model =
      *Model::Create(*ResolveGraph(Classifier()), *device);
  Batch batch = {.size = state.range(0), .dense = {{.shape = {28, 28}}}};
  batch.dense.front().values.assign(batch.size * 28 * 28, .5f);
  batch.labels.assign(batch.size, 7);
  for (size_t i = 0; i < model->variables().size(); ++i) {
    const std::vector<float> value = ValueOf(model->variables()[i]);
    std::copy(value.begin(), value.end(), model->HostValue(i).begin());
    CHECK(model->Upload(i).ok());
  }
  const auto drop = [](size_t, absl::Span<const float>) {};
  const auto no_rows = [](size_t, absl::Span<const uint64_t>,
                          absl::Span<const float>) {};
  const std::unique_ptr<StagedBatch> staged = model->NewStagedBatch();
  for (auto _ : state) {
    CHECK(model->Stage(batch, *staged).ok());
    CHECK(model
              ->Gradients(*staged, /*seed=*/1,
                          {.variable = drop, .rows = no_rows})
              .ok());
  }
  CountExamples(state);
}

void BM_Function(benchmark::State& state) {
  const std::unique_ptr<Device> device = *Device::Open("cpu");
  const std::unique_ptr<ModelFunction> function =
      *ModelFunction::Create(*ResolveFunction(Classifier()), *device);
  const int64_t examples = state.range(0);
  const std::vector<float> images(examples * 28 * 28, .5f);
  const std::vector<float> by_output(examples * 10, .1f);
  std::vector<std::vector<float>> values, gradients;
  for (const VariableSpec& variable : function->graph().variables) {
    values.push_back(ValueOf(variable));
    gradients.emplace_back(variable.elements());
  }
  const std::vector<absl::Span<const float>> dense = {images};
  const std::vector<absl::Span<const float>> by_outputs = {by_output};
  const std::vector<absl::Span<const float>> variables(values.begin(),
                                                       values.end());
  std::vector<absl::Span<float>> arrays;
  for (std::vector<float>& one : gradients) {
    arrays.push_back(absl::MakeSpan(one));
  }
  for (auto _ : state) {
    const absl::StatusOr<ModelFunction::Call> call =
        function->Forward({.size = examples, .dense = dense}, variables,
                          {.training = true, .seed = 1});
    CHECK(call.ok());
    CHECK(function->Backward(*call, by_outputs, {.variables = arrays}).ok());
  }
  CountExamples(state);
}

void BM_Tape(benchmark::State& state) {
  const std::unique_ptr<Device> device = *Device::Open("cpu");
  const std::unique_ptr<ModelOperation> operation = *ModelOperation::Create(
      "classifier", *ResolveFunction(Classifier()), *device);
  const Tensor images = Filled({state.range(0), 28, 28}, .5f);
  std::vector<Tensor> values;
  for (const VariableSpec& variable : operation->graph().variables) {
    values.push_back(Tensor::Of(
        ValueOf(variable), TensorShape(absl::MakeConstSpan(variable.shape))));
  }
  for (auto _ : state) {
    GradientTape tape;
    std::vector<Tensor> leaves;
    for (const Tensor& value : values) leaves.push_back(Leaf(&value, value));
    const ModelOperation::Result result =
        operation->Call({.inputs = absl::MakeConstSpan(&images, 1),
                         .variables = leaves,
                         .training = true,
                         .seed = 1});
    const Tensor loss = ReduceMean(Square(result.outputs[0]));
    CHECK(tape.Gradient(loss, leaves).ok());
  }
  CountExamples(state);
}

BENCHMARK(BM_Model)->Arg(32)->Arg(128);
BENCHMARK(BM_Function)->Arg(32)->Arg(128);
BENCHMARK(BM_Tape)->Arg(32)->Arg(128);

}  // namespace
}  // namespace parasol

BENCHMARK_MAIN();
