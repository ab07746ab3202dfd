#include "tests/benchmark/compute/compute_workload.h"

#include <iterator>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ml/builder/columns.h"
#include "ml/zoo/lenet.h"
#include "ml/zoo/mlp.h"
#include "ml/zoo/resnet_cifar.h"
#include "ml/zoo/resnet_imagenet.h"
#include "ml/zoo/wide_and_deep.h"

namespace parasol {
namespace {

// Wide & Deep; compute_plane_peer.py has the same numbers.
constexpr int kCategoricalColumns = 26;
constexpr int kNumericColumns = 13;
constexpr int64_t kIdsPerColumn = 20000;
constexpr int64_t kEmbeddingWidth = 16;
constexpr int64_t kHidden[] = {256, 128};

std::vector<float> UniformFloats(int64_t count) {
  std::minstd_rand random;
  std::uniform_real_distribution<float> uniform(0, 1);
  std::vector<float> values(count);
  for (float& value : values) value = uniform(random);
  return values;
}

std::vector<float> Classes(int64_t count, int classes) {
  std::vector<float> labels(count);
  for (int64_t i = 0; i < count; ++i) labels[i] = i % classes;
  return labels;
}

Batch Images(int64_t size, std::vector<int64_t> shape) {
  int64_t elements = size;
  for (const int64_t axis : shape) elements *= axis;
  Batch batch;
  batch.size = size;
  batch.dense = {
      {.shape = std::move(shape), .values = UniformFloats(elements)}};
  batch.labels = Classes(size, /*classes=*/10);
  return batch;
}

// A dense layer, or a convolution seen as one.
void AddLayer(const StepProduct& forward, std::vector<StepProduct>& products) {
  const auto [m, k, n, times] = forward;
  const bool first = products.empty();
  products.push_back(forward);
  products.push_back({k, m, n, times});
  if (!first) products.push_back({m, n, k, times});
}

ComputeWorkload Mlp() {
  ComputeWorkload workload = {
      .name = "mlp", .model = zoo::Mlp(), .batch = Images(128, {28, 28})};
  AddLayer({128, 784, 512, 1}, workload.products);
  AddLayer({128, 512, 10, 1}, workload.products);
  return workload;
}

ComputeWorkload LeNet() {
  ComputeWorkload workload = {
      .name = "lenet", .model = zoo::LeNet(), .batch = Images(64, {28, 28, 1})};
  AddLayer({64 * 28 * 28, 25, 6, 1}, workload.products);
  AddLayer({64 * 10 * 10, 150, 16, 1}, workload.products);
  AddLayer({64, 400, 120, 1}, workload.products);
  AddLayer({64, 120, 84, 1}, workload.products);
  AddLayer({64, 84, 10, 1}, workload.products);
  return workload;
}

ComputeWorkload ResNet56() {
  ComputeWorkload workload = {.name = "resnet56",
                              .model = zoo::ResNetCifar(),
                              .batch = Images(32, {32, 32, 3})};
  AddLayer({32 * 32 * 32, 27, 16, 1}, workload.products);
  AddLayer({32 * 32 * 32, 144, 16, 18}, workload.products);
  AddLayer({32 * 16 * 16, 144, 32, 1}, workload.products);
  AddLayer({32 * 16 * 16, 288, 32, 17}, workload.products);
  AddLayer({32 * 8 * 8, 288, 64, 1}, workload.products);
  AddLayer({32 * 8 * 8, 576, 64, 17}, workload.products);
  AddLayer({32, 64, 10, 1}, workload.products);
  return workload;
}

// Not a convolution of it is small enough to be bound by anything but its
// products, or by memory.
ComputeWorkload ResNet50() {
  return {.name = "resnet50",
          .model = zoo::ResNetImageNet(),
          .batch = Images(32, {224, 224, 3}),
          .only_if_chosen = true};
}

zoo::WideAndDeepOptions WideAndDeepModel() {
  zoo::WideAndDeepOptions options;
  for (int i = 0; i < kCategoricalColumns; ++i) {
    options.wide.push_back(IdentityOf(absl::StrCat("c", i), kIdsPerColumn));
  }
  options.deep = options.wide;
  for (int i = 0; i < kNumericColumns; ++i) {
    options.numeric.push_back(Numeric(absl::StrCat("n", i)));
  }
  options.embedding_width = kEmbeddingWidth;
  options.hidden.assign(std::begin(kHidden), std::end(kHidden));
  return options;
}

IdFeature OneIdOfEachColumn(int64_t examples) {
  std::minstd_rand random;
  std::uniform_int_distribution<uint64_t> uniform(0, kIdsPerColumn - 1);
  IdFeature feature;
  for (int64_t i = 0; i < examples; ++i) {
    feature.offsets.push_back(i * kCategoricalColumns);
    for (int64_t column = 0; column < kCategoricalColumns; ++column) {
      feature.ids.push_back(column * kIdsPerColumn + uniform(random));
    }
  }
  feature.offsets.push_back(examples * kCategoricalColumns);
  return feature;
}

ComputeWorkload WideAndDeep() {
  constexpr int64_t kBatch = 512;
  ComputeWorkload workload = {.name = "wide_deep",
                              .model = zoo::WideAndDeep(WideAndDeepModel())};
  workload.batch.size = kBatch;
  workload.batch.dense = {{.shape = {kNumericColumns},
                           .values = UniformFloats(kBatch * kNumericColumns)}};
  workload.batch.ids.assign(2, OneIdOfEachColumn(kBatch));
  workload.batch.labels = Classes(kBatch, /*classes=*/2);
  int64_t inputs = kCategoricalColumns * kEmbeddingWidth + kNumericColumns;
  // The embeddings want the first layer's gradient too.
  workload.products.push_back({kBatch, kHidden[0], inputs, 1});
  for (const int64_t units : kHidden) {
    AddLayer({kBatch, inputs, units, 1}, workload.products);
    inputs = units;
  }
  AddLayer({kBatch, inputs, 1, 1}, workload.products);
  return workload;
}

}  // namespace

std::vector<ComputeWorkload> AllComputeWorkloads() {
  return {Mlp(), LeNet(), ResNet56(), ResNet50(), WideAndDeep()};
}

}  // namespace parasol
