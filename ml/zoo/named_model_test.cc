#include "ml/zoo/named_model.h"

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/zoo/lenet.h"
#include "ml/zoo/mlp.h"
#include "ml/zoo/resnet_cifar.h"
#include "ml/zoo/softmax_regression.h"
#include "proto/job.pb.h"

namespace parasol::zoo {
namespace {

using testing::HasSubstr;

void ExpectModel(absl::string_view name, const NamedModelOptions& options,
                 const job::Model& expected) {
  ASSERT_OK_AND_ASSIGN(const job::Model model, NamedModel(name, options));
  EXPECT_EQ(model.SerializeAsString(), expected.SerializeAsString()) << name;
}

TEST(NamedModelTest, WithoutOptionsAModelHasItsDefaults) {
  ExpectModel("lenet", {}, LeNet());
  ExpectModel("mlp", {}, Mlp());
  ExpectModel("resnet_cifar", {}, ResNetCifar());
  ExpectModel("softmax_regression", {}, SoftmaxRegression());
}

TEST(NamedModelTest, OptionsAreThoseOfTheModel) {
  ExpectModel("lenet", {.classes = 3}, LeNet({.classes = 3}));
  ExpectModel("mlp", {.classes = 3, .dropout = .5, .l2 = .1},
              Mlp({.classes = 3, .dropout = .5, .l2 = .1}));
  ExpectModel(
      "resnet_cifar",
      {.blocks_per_stage = 3, .image_size = 64, .classes = 3, .l2 = .1},
      ResNetCifar(
          {.blocks_per_stage = 3, .image_size = 64, .classes = 3, .l2 = .1}));
  ExpectModel("softmax_regression", {.classes = 3, .l2 = .1},
              SoftmaxRegression({.classes = 3, .l2 = .1}));
}

TEST(NamedModelTest, AnUnknownNameIsNamed) {
  const absl::Status status = NamedModel("resnet", {}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(status.message(), HasSubstr("\"resnet\""));
}

TEST(NamedModelTest, AnOptionThatTheModelDoesNotHaveIsNamed) {
  const absl::Status status =
      NamedModel("lenet", {.blocks_per_stage = 3}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(status.message(), HasSubstr("blocks_per_stage"));
}

TEST(NamedModelTest, SizesAreAtLeastOne) {
  EXPECT_TRUE(absl::IsInvalidArgument(
      NamedModel("resnet_cifar", {.blocks_per_stage = 0}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      NamedModel("resnet_cifar", {.image_size = 0}).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(NamedModel("mlp", {.classes = -1}).status()));
}

}  // namespace
}  // namespace parasol::zoo
