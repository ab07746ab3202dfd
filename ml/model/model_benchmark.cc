// A training step's computation: forward and backward pass of an MNIST
// classifier (784-512-10) without pull, push and update.
//   bazel run //ml/model:model_benchmark
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/log.h"
#include "benchmark/benchmark.h"
#include "google/protobuf/text_format.h"
#include "ml/device/device.h"
#include "ml/input/feature/batch.h"
#include "ml/model/model.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

constexpr char kClassifier[] =
    "input_shape: [28, 28] layer { flatten {} }"
    "layer { dense { units: 512 activation: RELU } }"
    "layer { dense { units: 10 } }"
    "loss { sparse_categorical_crossentropy {} }";

void BM_Gradients(benchmark::State& state, const std::string& device_name,
                  const Device::Options& options) {
  absl::StatusOr<std::unique_ptr<Device>> device =
      Device::Open(device_name, options);
  if (!device.ok()) {
    state.SkipWithError(device.status().ToString().c_str());
    return;
  }
  job::Model spec;
  CHECK(google::protobuf::TextFormat::ParseFromString(kClassifier, &spec));
  const std::unique_ptr<Model> model =
      *Model::Create(*ResolveGraph(spec), **device);
  Batch batch = {.size = state.range(0), .dense = {{.shape = {28, 28}}}};
  batch.dense.front().values.assign(batch.size * 28 * 28, .5f);
  batch.labels.assign(batch.size, 7);
  for (size_t i = 0; i < model->variables().size(); ++i) {
    absl::Span<float> value = model->HostValue(i);
    for (size_t j = 0; j < value.size(); ++j) value[j] = .01f * (j % 7) - .03f;
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
  state.counters["examples"] = benchmark::Counter(
      batch.size * state.iterations(), benchmark::Counter::kIsRate);
}

const Device::Options kPlain;
const Device::Options kGraphs = {.cuda_graphs = true};

BENCHMARK_CAPTURE(BM_Gradients, cpu, "cpu", kPlain)->Arg(32)->Arg(128);
BENCHMARK_CAPTURE(BM_Gradients, cuda, "cuda:0", kPlain)->Arg(32)->Arg(128);
BENCHMARK_CAPTURE(BM_Gradients, cuda_graphs, "cuda:0", kGraphs)
    ->Arg(32)
    ->Arg(128);

}  // namespace
}  // namespace parasol

BENCHMARK_MAIN();
