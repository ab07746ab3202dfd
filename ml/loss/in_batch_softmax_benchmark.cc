// A step of in_batch_softmax with vectors of width 64 on one thread, by the
// batch's size, beside its three products of matrices, which are the floor.
//   bazel run //ml/loss:in_batch_softmax_benchmark
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "base/log.h"
#include "benchmark/benchmark.h"
#include "ml/device/device.h"
#include "ml/kernel/affine.h"
#include "ml/loss/loss.h"
#include "ml/loss/loss_kinds.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

constexpr int64_t kWidth = 64;

std::vector<float> RandomValues(int64_t size) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-.5f, .5f);
  std::vector<float> values(size);
  for (float& value : values) value = uniform(random);
  return values;
}

void BM_InBatchSoftmax(benchmark::State& state) {
  const int64_t n = state.range(0);
  const std::unique_ptr<Device> device = *Device::Open("cpu");
  job::Loss spec;
  spec.mutable_in_batch_softmax()->set_temperature(1);
  const Loss loss(*ResolveLoss(spec, 2 * kWidth));
  Comparison comparison;
  loss.Compare({.size = n}, comparison);
  const std::vector<float> outputs = RandomValues(n * 2 * kWidth);
  std::vector<float> scratch(loss.ScratchElements(n));
  std::vector<float> losses(n), gradient(outputs.size());
  const Loss::Inputs inputs = {.outputs = outputs.data(),
                               .examples = n,
                               .integers = comparison.integers.data(),
                               .scratch = scratch.data()};
  for (auto _ : state) {
    CHECK(loss.Compute(*device, inputs, losses.data(), gradient.data()).ok());
  }
  state.counters["scratch bytes"] = static_cast<double>(scratch.size()) * 4;
}

void BM_ProductsFloor(benchmark::State& state) {
  const int64_t n = state.range(0);
  const std::unique_ptr<Device> device = *Device::Open("cpu");
  std::vector<float> queries = RandomValues(n * kWidth), out(n * kWidth);
  std::vector<float> products(n * n);
  const MatrixView vectors = {queries.data(), n, kWidth};
  const MutableMatrixView gradient = {out.data(), n, kWidth};
  const MutableMatrixView all = {products.data(), n, n};
  for (auto _ : state) {
    CHECK(AffineInputGradient(*device, vectors, vectors, all).ok());
    CHECK(
        Affine(*device, all, vectors, nullptr, Epilogue::kNone, gradient).ok());
    CHECK(
        AffineVariableGradients(*device, all, vectors, gradient, nullptr).ok());
  }
}

#define PARASOL_BATCHES \
  Arg(512)->Arg(1024)->Arg(2048)->Arg(8192)->Unit(benchmark::kMillisecond)
BENCHMARK(BM_InBatchSoftmax)->PARASOL_BATCHES;
BENCHMARK(BM_ProductsFloor)->PARASOL_BATCHES;

}  // namespace
}  // namespace parasol

BENCHMARK_MAIN();
