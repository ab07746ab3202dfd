#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/model/graph.h"
#include "ml/zoo/example_models.h"
#include "ml/zoo/resnet_cifar.h"
#include "ml/zoo/resnet_imagenet.h"
#include "proto/job.pb.h"

namespace parasol::zoo {
namespace {

int64_t TrainedElements(const job::Model& model) {
  const auto graph = ResolveGraph(model);
  EXPECT_OK(graph);
  if (!graph.ok()) return 0;
  int64_t elements = 0;
  for (const VariableSpec& variable : graph->variables) {
    if (variable.trained) elements += variable.elements();
  }
  return elements;
}

// He et al. 2015, table 6: 0.85 M. Kernels: 432 + 18 · 2304 + (4608 + 17 ·
// 9216) + (18432 + 17 · 36864); gamma and beta of 19 · 16 + 18 · 32 + 18 · 64
// channels; 650 of the dense layer.
TEST(ZooTest, ResNet56HasTheParametersOfThePaper) {
  EXPECT_EQ(TrainedElements(ResNetCifar()), 853018);
  EXPECT_EQ(TrainedElements(ResNetCifar({.blocks_per_stage = 3})), 269722);
}

TEST(ZooTest, ResNet56Has55ConvolutionsAndADenseLayer) {
  std::map<job::Layer::KindCase, int> layers;
  const job::Model model = ResNetCifar();
  for (const job::Layer& layer : model.layer()) ++layers[layer.kind_case()];
  EXPECT_EQ(layers[job::Layer::kConv2D], 55);
  EXPECT_EQ(layers[job::Layer::kBatchNormalization], 55);
  EXPECT_EQ(layers[job::Layer::kDense], 1);
  EXPECT_EQ(layers[job::Layer::kAdd], 27);
  EXPECT_EQ(layers[job::Layer::kPad], 2);
}

// As many as torchvision's resnet50 and resnet101 have.
TEST(ZooTest, ResNet50HasTheParametersOfThePaper) {
  EXPECT_EQ(TrainedElements(ResNetImageNet()), 25557032);
  EXPECT_EQ(TrainedElements(ResNetImageNet({.blocks = {3, 4, 23, 3}})),
            44549160);
}

TEST(ZooTest, EveryModelHasTheVariablesOfItsPaper) {
  const std::map<std::string, int64_t> elements = {
      {"mnist_softmax", 7850},
      {"mnist_mlp", 784 * 512 + 512 + 512 * 10 + 10},
      {"mnist_lenet", 61706},
      {"cifar10_resnet56", 853018},
      // Weights are rows of tables: only the bias is a variable.
      {"a9a_logistic", 1},
      {"agaricus_logistic", 1},
      {"adult_wide_deep", 1 + (12 * 8 + 5) * 100 + 100 + 100 * 50 + 50 + 50},
      // 8 categories of 8 and 5 numbers: three square cross layers.
      {"adult_dcn",
       3 * (69 * 69 + 69) + 69 * 100 + 100 + 100 * 50 + 50 + (69 + 50) + 1},
      // 6 categories of 8 and 5 numbers: 8 experts of 16, and for each of two
      // tasks a gate without a bias, a tower of 8 and a logit.
      {"adult_mmoe", 53 * 128 + 128 + 2 * (53 * 8 + (16 * 8 + 8) + (8 + 1))},
      {"ads_esmm", 2 * (54 * 64 + 64 + 64 * 32 + 32 + 32 + 1)},
      // 27 fields have 351 pairs.
      {"criteo_dlrm", 13 * 512 + 512 + 512 * 256 + 256 + 256 * 16 + 16 +
                          (16 + 351) * 512 + 512 + 512 * 256 + 256 + 256 + 1},
      {"criteo_deepfm", 1 + 390 * 400 + 400 + 2 * (400 * 400 + 400) + 400},
      {"movietweetings_mf", 2},
      // Weights of the steps from three rows of 16; then the interest, the item
      // and their product.
      {"purchases_din", 48 * 36 + 36 + 37 + 48 * 80 + 80 + 80 * 40 + 40 + 41},
      // Places, and two blocks: two normalizations, four products of the
      // attention and two of the network.
      {"purchases_sasrec", 20 * 32 + 2 * (2 * 64 + 6 * (32 * 32 + 32)) + 64},
  };
  const auto models = ExampleModels();
  EXPECT_EQ(models.size(), elements.size());
  for (const auto& [name, model] : models) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(elements.contains(name));
    EXPECT_EQ(TrainedElements(model), elements.at(name));
  }
}

}  // namespace
}  // namespace parasol::zoo
