#include "tests/benchmark/compute/cuda_calls.h"

#include <map>
#include <memory>

#include "base/status_macros.h"
#include "ml/builder/layers.h"
#include "ml/builder/losses.h"
#include "ml/builder/model_builder.h"
#include "ml/device/device.h"
#include "ml/input/feature/batch.h"
#include "ml/layer/layer.h"
#include "ml/model/graph.h"
#include "ml/zoo/example_models.h"
#include "ml/zoo/mlp.h"
#include "ml/zoo/resnet_cifar.h"

namespace parasol {
namespace {

// Ids of one example in an input that takes any number of them.
constexpr int64_t kIdsOfAnExample = 3;
constexpr uint64_t kIds = 40;
constexpr int kClasses = 2;

// The first step of each side of the gradients allocates. With CUDA graphs the
// next one is plain, and the third one recorded.
constexpr int kStepsBefore = 2;
constexpr int kStepsBeforeReplays = 6;

DenseFeature DenseOf(const Shape& shape, int64_t examples) {
  DenseFeature feature = {.shape = shape};
  const int64_t elements = examples * ElementsOf(shape);
  for (int64_t i = 0; i < elements; ++i) {
    feature.values.push_back(.1f * (i % 11) - .5f);
  }
  return feature;
}

IdFeature IdsOf(int64_t ids_per_example, int64_t examples) {
  const int64_t count =
      ids_per_example == 0 ? kIdsOfAnExample : ids_per_example;
  IdFeature feature = {.offsets = {0}};
  for (int64_t i = 0; i < examples * count; ++i) {
    feature.ids.push_back(i * i % kIds);
    if ((i + 1) % count == 0) feature.offsets.push_back(i + 1);
  }
  return feature;
}

Batch BatchFor(const Graph& graph, int64_t examples) {
  Batch batch = {.size = examples};
  for (const GraphInput& input : graph.inputs) {
    if (input.what.kind == LayerInput::Kind::kDense) {
      batch.dense.push_back(DenseOf(input.what.shape, examples));
    } else {
      batch.ids.push_back(IdsOf(input.what.ids_per_example, examples));
    }
  }
  for (int64_t i = 0; i < examples; ++i) batch.labels.push_back(i % kClasses);
  return batch;
}

// With 32 examples cuDNN computes all but the first convolution.
job::Model ResidualBlock() {
  ModelBuilder model;
  const layers::Conv2DOptions convolution = {.filters = 64,
                                             .kernel_size = {3},
                                             .padding = job::SAME,
                                             .use_bias = false};
  const Value stem =
      layers::Conv2D(model.DenseInput("image", {8, 8, 3}), convolution);
  Value x = layers::Relu(layers::BatchNormalization(stem));
  x = layers::BatchNormalization(layers::Conv2D(x, convolution));
  x = layers::Relu(layers::Add({x, stem}));
  x = layers::GlobalAveragePool(x);
  layers::Dense(x, {.units = kClasses});
  model.SetLoss(SparseCategoricalCrossentropy());
  return model.Build();
}

cuda_on_host::Counts Difference(const cuda_on_host::Counts& later,
                                const cuda_on_host::Counts& earlier) {
  using cuda_on_host::Counts;
  Counts counts;
  for (const auto count :
       {&Counts::kernels, &Counts::library_calls, &Counts::memsets,
        &Counts::copies_in, &Counts::bytes_in, &Counts::copies_out,
        &Counts::bytes_out, &Counts::copies_within, &Counts::records,
        &Counts::stream_waits, &Counts::synchronizations,
        &Counts::device_selections, &Counts::graph_launches}) {
    counts.*count = later.*count - earlier.*count;
  }
  return counts;
}

}  // namespace

std::vector<CountedModel> AllCountedModels() {
  constexpr auto kOnDevice = TrainingStep::Updates::kOnDevice;
  constexpr auto kOnHost = TrainingStep::Updates::kOnHost;
  std::map<std::string, job::Model> models = zoo::ExampleModels();
  // Small images: the stand-in for a device computes each pixel, and the calls
  // are of layers.
  const job::Model resnet56 = zoo::ResNetCifar({.image_size = 8});
  return {{"mlp", models["mnist_mlp"], 128},
          {"mlp, dropout", zoo::Mlp({.dropout = .5}), 128},
          {"resnet56", resnet56, 1},
          {"wide_deep", models["adult_wide_deep"], 128},
          {"deepfm", models["criteo_deepfm"], 32},
          {"mlp, alone", models["mnist_mlp"], 128, kOnDevice},
          {"wide_deep, alone", models["adult_wide_deep"], 128, kOnDevice},
          {"deepfm, alone", models["criteo_deepfm"], 32, kOnDevice},
          {"resnet56, bf16", resnet56, 1, kOnHost, Precision::kBfloat16},
          {"block, bf16", ResidualBlock(), 32, kOnHost, Precision::kBfloat16}};
}

absl::StatusOr<cuda_on_host::Counts> CallsOfAStep(const CountedModel& counted,
                                                  bool cuda_graphs) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Device> device,
                   Device::Open("cuda:0", {.precision = counted.precision,
                                           .cuda_graphs = cuda_graphs}));
  ASSIGN_OR_RETURN(const Graph graph, ResolveGraph(counted.model));
  const Batch batch = BatchFor(graph, counted.examples);
  ASSIGN_OR_RETURN(
      const std::unique_ptr<TrainingStep> step,
      TrainingStep::Create(counted.model, batch, *device, counted.updates));
  const int steps_before = cuda_graphs ? kStepsBeforeReplays : kStepsBefore;
  for (int i = 0; i < steps_before; ++i) {
    RETURN_IF_ERROR(step->Run().status());
  }
  const cuda_on_host::Counts before = cuda_on_host::CountsSoFar();
  RETURN_IF_ERROR(step->Run().status());
  return Difference(cuda_on_host::CountsSoFar(), before);
}

}  // namespace parasol
