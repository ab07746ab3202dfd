#include "cluster/placement/placement.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/layer/variable_spec.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

job::ParameterServerStrategy Strategy(const std::string& text) {
  job::ParameterServerStrategy strategy;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &strategy));
  return strategy;
}

VariableSpec Variable(const std::string& name, std::vector<int64_t> shape) {
  VariableSpec variable;
  variable.name = name;
  variable.shape = std::move(shape);
  variable.initializer.mutable_zeros();
  return variable;
}

// A shard as "a[0,6) b[0,2)", in the order of its ids.
std::string Text(const std::vector<wire::PartSpec>& shard) {
  std::string text;
  for (const wire::PartSpec& part : shard) {
    absl::StrAppend(&text, text.empty() ? "" : " ", part.variable(), "[",
                    part.first_element(), ",",
                    part.first_element() + part.elements(), ")");
  }
  return text;
}

std::vector<std::string> Texts(const Placement& placement) {
  std::vector<std::string> texts;
  for (const auto& shard : placement.shards) texts.push_back(Text(shard));
  return texts;
}

// The variables of MNIST's perceptron, and one that is split unevenly.
std::vector<VariableSpec> SomeVariables() {
  return {Variable("h/kernel", {784, 512}), Variable("h/bias", {512}),
          Variable("o/kernel", {512, 10}),  Variable("o/bias", {10}),
          Variable("odd", {13, 7, 3}),      Variable("scalar", {})};
}

TEST(PlaceTest, RoundRobinDealsPartsInTheOrderOfTheVariables) {
  ASSERT_OK_AND_ASSIGN(
      const Placement placement,
      Place({Variable("a", {5, 2}), Variable("b", {}), Variable("c", {4})},
            Strategy("placement: ROUND_ROBIN fixed_shards { shards: 3 }"), 2));
  EXPECT_THAT(Texts(placement), ElementsAre("a[0,4) a[8,10) c[0,2) c[3,4)",
                                            "a[4,8) b[0,1) c[2,3)"));
  EXPECT_DOUBLE_EQ(placement.skew, 9 / 7.5);
}

TEST(PlaceTest, BalancedBytesPutsTheLargestPartOnTheLeastLoadedShard) {
  ASSERT_OK_AND_ASSIGN(
      const Placement placement,
      Place({Variable("a", {1}), Variable("b", {4}), Variable("c", {3}),
             Variable("d", {4}), Variable("e", {2})},
            Strategy("placement: BALANCED_BYTES"), 3));
  EXPECT_THAT(Texts(placement),
              ElementsAre("a[0,1) b[0,4)", "d[0,4)", "c[0,3) e[0,2)"));
  EXPECT_DOUBLE_EQ(placement.skew, 5 / (14.0 / 3));
}

TEST(PlaceTest, APartSaysAllThatAPsNeedsToMakeIt) {
  VariableSpec variable = Variable("v", {3, 2});
  variable.initializer.mutable_constant()->set_value(0.5);
  ASSERT_OK_AND_ASSIGN(
      const Placement placement,
      Place({variable}, Strategy("fixed_shards { shards: 2 }"), 1));
  const wire::PartSpec& part = placement.shards[0][1];
  EXPECT_EQ(part.id(), 1);
  EXPECT_EQ(part.variable(), "v");
  EXPECT_THAT(part.variable_shape(), ElementsAre(3, 2));
  EXPECT_EQ(part.first_element(), 4);
  EXPECT_EQ(part.elements(), 2);
  EXPECT_EQ(part.initializer().constant().value(), 0.5);
}

// Every part once, ids dense, variables covered, whatever the strategy.
TEST(PlaceTest, EveryElementIsOnExactlyOneShard) {
  const std::string placements[] = {"BALANCED_BYTES", "ROUND_ROBIN"};
  const std::string partitioners[] = {
      "", "fixed_shards { shards: 5 }",
      "min_size { min_shard_bytes: 1000 max_shards: 0 }",
      "max_size { max_shard_bytes: 10000 }"};
  for (const std::string& rule : placements) {
    for (const std::string& partitioner : partitioners) {
      for (const int num_ps : {1, 2, 3, 7, 20}) {
        SCOPED_TRACE(absl::StrCat(rule, " ", partitioner, " ", num_ps));
        ASSERT_OK_AND_ASSIGN(
            const Placement placement,
            Place(SomeVariables(),
                  Strategy(absl::StrCat("placement: ", rule, " ", partitioner)),
                  num_ps));
        ASSERT_EQ(placement.shards.size(), num_ps);
        std::map<std::string, std::map<int64_t, int64_t>> parts;
        for (const auto& shard : placement.shards) {
          for (size_t id = 0; id < shard.size(); ++id) {
            EXPECT_EQ(shard[id].id(), id);
            parts[shard[id].variable()][shard[id].first_element()] =
                shard[id].elements();
          }
        }
        for (const VariableSpec& variable : SomeVariables()) {
          int64_t next = 0;
          for (const auto& [first, elements] : parts[variable.name]) {
            EXPECT_EQ(first, next);
            next = first + elements;
          }
          EXPECT_EQ(next, variable.elements());
        }
      }
    }
  }
}

TEST(PlaceTest, WhatIsNotTrainedHasAnOptimizerOfItsOwn) {
  VariableSpec moving_mean = Variable("moving_mean", {4});
  moving_mean.trained = false;
  ASSERT_OK_AND_ASSIGN(const Placement placement,
                       Place({Variable("kernel", {4}), moving_mean},
                             Strategy("fixed_shards { shards: 2 }"), 1));
  int own = 0;
  for (const wire::PartSpec& part : placement.shards[0]) {
    EXPECT_EQ(part.has_optimizer(), part.variable() == "moving_mean");
    if (!part.has_optimizer()) continue;
    ++own;
    EXPECT_EQ(part.optimizer().sgd().learning_rate(), 1);
    EXPECT_EQ(part.optimizer().sgd().momentum(), 0);
    EXPECT_FALSE(part.optimizer().has_learning_rate_schedule());
  }
  EXPECT_EQ(own, 2);
}

TEST(PlaceTest, WhatIsTrainedByItsOwnOptimizerIsToldFromWhatIsNotTrained) {
  VariableSpec moving_mean = Variable("own/moving_mean", {4});
  moving_mean.trained = false;
  VariableSpec faster = Variable("own/faster", {4});
  faster.learning_rate_multiplier = 3;
  ASSERT_OK_AND_ASSIGN(Placement placement,
                       Place({Variable("kernel", {4}), moving_mean,
                              Variable("own/kernel", {4}), faster},
                             Strategy(""), 1));
  job::Job job;
  job.mutable_model()->add_layer()->set_name("own");
  job.mutable_model()
      ->mutable_layer(0)
      ->mutable_optimizer()
      ->mutable_ftrl()
      ->set_learning_rate(.5);
  AssignOptimizers(job, placement);
  ASSERT_EQ(placement.shards[0].size(), 4u);
  for (const wire::PartSpec& part : placement.shards[0]) {
    SCOPED_TRACE(part.variable());
    const bool has_own =
        part.variable() == "own/kernel" || part.variable() == "own/faster";
    EXPECT_EQ(IsTrained(part), part.variable() != "own/moving_mean");
    EXPECT_EQ(part.optimizer().has_ftrl(), has_own);
    EXPECT_EQ(part.has_learning_rate_multiplier(), has_own);
    if (!has_own) continue;
    EXPECT_EQ(part.learning_rate_multiplier(),
              part.variable() == "own/faster" ? 3 : 1);
  }
}

TEST(PlaceTest, TheDefaultsSpreadMnistEvenly) {
  const auto strategy = Strategy(
      "placement: BALANCED_BYTES "
      "min_size { min_shard_bytes: 262144 max_shards: 0 }");
  for (const int num_ps : {1, 2, 3, 4}) {
    ASSERT_OK_AND_ASSIGN(const Placement placement,
                         Place(SomeVariables(), strategy, num_ps));
    EXPECT_LT(placement.skew, 1.05) << num_ps;
  }
}

TEST(PlaceTest, MorePsThanPartsLeavesShardsEmpty) {
  ASSERT_OK_AND_ASSIGN(const Placement placement,
                       Place({Variable("a", {2})}, Strategy(""), 3));
  EXPECT_THAT(Texts(placement), ElementsAre("a[0,2)", "", ""));
  EXPECT_DOUBLE_EQ(placement.skew, 3);
}

TEST(PlaceTest, NoVariablesAreEven) {
  ASSERT_OK_AND_ASSIGN(const Placement placement, Place({}, Strategy(""), 2));
  EXPECT_DOUBLE_EQ(placement.skew, 1);
}

TEST(PlaceTest, WhatCantBePlacedIsNamed) {
  const auto is_fault = [](const std::string& words) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(words));
  };
  EXPECT_THAT(Place({Variable("v", {1})}, Strategy(""), 0), is_fault("0 ps"));
  EXPECT_THAT(Place({Variable("v", {1}), Variable("v", {1})}, Strategy(""), 1),
              is_fault("variable v appears twice"));
  EXPECT_THAT(Place({Variable("v", {2, 0})}, Strategy(""), 1),
              is_fault("variable v: shape [2, 0]"));
  EXPECT_THAT(Place({Variable("v", {1 << 30, 1 << 30})}, Strategy(""), 1),
              is_fault("variable v: shape"));
  EXPECT_THAT(Place({Variable("v", {1 << 20})},
                    Strategy("fixed_shards { shards: 1000000 }"), 1),
              is_fault("variable v: the partitioner splits it into 1000000"));
}

}  // namespace
}  // namespace parasol
