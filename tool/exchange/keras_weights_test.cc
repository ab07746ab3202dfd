#include "tool/exchange/keras_weights.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tool/testing/counting_tensors.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr ElementType kFloat = ElementType::kFloat32;

// Dense layers "a" [2, 3] and "b" [3, 3], "c" [3, 3], with Adam's slots.
struct ThreeLayers {
  ThreeLayers() {
    job.mutable_optimizer()->mutable_adam();
    for (const char* name : {"a", "b", "c"}) {
      job.mutable_model()->add_layer()->set_name(name);
      durable::CheckpointVariable& variable = contents.variables.emplace_back();
      variable.set_name(std::string(name) + "/kernel");
      variable.add_shape(name[0] == 'a' ? 2 : 3);
      variable.add_shape(3);
      for (const char* slot : {"m", "v"}) variable.add_slot(slot);
    }
  }

  absl::StatusOr<std::vector<std::string>> Names(
      std::vector<TensorInfo> tensors) const {
    absl::StatusOr<std::unique_ptr<TensorReader>> reader = NameKerasWeights(
        std::make_unique<CountingTensors>(std::move(tensors)), contents, job);
    if (!reader.ok()) return reader.status();
    std::vector<std::string> names;
    for (const TensorInfo& tensor : (*reader)->tensors()) {
      names.push_back(tensor.name);
    }
    return names;
  }

  job::Job job;
  CheckpointContents contents;
};

// In a file's order, by letters.
std::vector<TensorInfo> Unnamed() {
  return {{"layers/dense_10/kernel", kFloat, {3, 3}},
          {"layers/dense_2/kernel", kFloat, {3, 3}},
          {"layers/dense_7/kernel", kFloat, {2, 3}}};
}

TEST(KerasWeightsTest, LayersAreKnownByShapesAndByTheirOrder) {
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> names,
                       ThreeLayers().Names(Unnamed()));
  EXPECT_THAT(names, ElementsAre("c/kernel", "b/kernel", "a/kernel"));
}

TEST(KerasWeightsTest, LayersThatAreAlikeNeedAnOrder) {
  ThreeLayers branched;
  branched.job.mutable_model()->mutable_layer(2)->add_input("a");
  EXPECT_THAT(branched.Names(Unnamed()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("layers/dense_2 and layers/dense_10 are "
                                 "alike, so that nobody can tell which")));
  // Of two classes the order is not known.
  EXPECT_THAT(ThreeLayers()
                  .Names({{"layers/dense/kernel", kFloat, {3, 3}},
                          {"layers/einsum_dense/kernel", kFloat, {3, 3}}})
                  .status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  // One alone does not.
  ASSERT_OK_AND_ASSIGN(
      const std::vector<std::string> names,
      branched.Names({{"layers/dense/kernel", kFloat, {2, 3}}}));
  EXPECT_THAT(names, ElementsAre("a/kernel"));
}

TEST(KerasWeightsTest, AnotherNumberOfLayersStays) {
  ASSERT_OK_AND_ASSIGN(
      const std::vector<std::string> names,
      ThreeLayers().Names({{"layers/dense/kernel", kFloat, {3, 3}}}));
  EXPECT_THAT(names, ElementsAre("layers/dense/kernel"));
}

TEST(KerasWeightsTest, NamesThatTheJobHasAreKept) {
  ThreeLayers model;
  for (auto& variable : model.contents.variables) {
    variable.set_name("dense_" + variable.name());
  }
  const std::vector<TensorInfo> tensors = {
      {"layers/dense_a/kernel", kFloat, {2, 3}},
      {"layers/dense_c/kernel", kFloat, {3, 3}},
      {"layers/dense_b/kernel", kFloat, {3, 3}}};
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> names,
                       model.Names(tensors));
  EXPECT_THAT(names,
              ElementsAre("layers/dense_a/kernel", "layers/dense_c/kernel",
                          "layers/dense_b/kernel"));
}

TEST(KerasWeightsTest, PartsOfLayersAreTheirs) {
  ThreeLayers model;
  model.contents.variables.clear();
  for (const char* name : {"look/query/kernel", "both/forward/kernel"}) {
    durable::CheckpointVariable& variable =
        model.contents.variables.emplace_back();
    variable.set_name(name);
    variable.add_shape(2);
  }
  durable::CheckpointTable& table = model.contents.tables.emplace_back();
  table.set_name("items");
  table.set_width(4);
  ASSERT_OK_AND_ASSIGN(
      const std::vector<std::string> names,
      model.Names(
          {{"layers/multi_head_attention/query/kernel", kFloat, {2}},
           {"layers/bidirectional/forward_lstm/lstm_cell/kernel", kFloat, {2}},
           {"layers/embedding/embeddings", kFloat, {10, 4}}}));
  EXPECT_THAT(names, ElementsAre("look/query/kernel", "both/forward/kernel",
                                 "items/embeddings"));
}

// Iterations, the learning rate, and two of each variable.
std::vector<TensorInfo> Slots(int64_t rows, const std::string& optimizer) {
  std::vector<TensorInfo> tensors = {{optimizer + "/iteration", kFloat, {}},
                                     {"optimizer/vars/1", kFloat, {}}};
  const auto add = [&](int64_t of_rows) {
    tensors.push_back({"optimizer/vars/" + std::to_string(tensors.size()),
                       kFloat,
                       {of_rows, 3}});
  };
  for (const int64_t of : {rows, rows}) add(of);
  for (int i = 0; i < 4; ++i) add(3);
  return tensors;
}

TEST(KerasWeightsTest, SlotsAreInTheOrderOfAChain) {
  const ThreeLayers model;
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> names,
                       model.Names(Slots(2, "adam_1")));
  EXPECT_THAT(names, ElementsAre("adam_1/iteration", "optimizer/vars/1",
                                 "Adam/a/kernel/m", "Adam/a/kernel/v",
                                 "Adam/b/kernel/m", "Adam/b/kernel/v",
                                 "Adam/c/kernel/m", "Adam/c/kernel/v"));
}

TEST(KerasWeightsTest, VariablesOfOptimizersHaveNumbers) {
  for (const char* number : {"-1", "x", "", "4294967296"}) {
    std::vector<TensorInfo> tensors = Slots(2, "adam");
    tensors.push_back({absl::StrCat("optimizer/vars/", number), kFloat, {}});
    EXPECT_THAT(
        ThreeLayers().Names(tensors).status(),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr(absl::StrCat("optimizer/vars/", number,
                                        " is none of an optimizer's"))));
  }
  // One is missing.
  std::vector<TensorInfo> tensors = Slots(2, "adam");
  tensors.back().name = "optimizer/vars/4294967295";
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> names,
                       ThreeLayers().Names(tensors));
  EXPECT_EQ(names[2], "optimizer/vars/2");
}

TEST(KerasWeightsTest, SlotsOfAnythingElseStay) {
  ThreeLayers branched;
  branched.job.mutable_model()->mutable_layer(2)->add_input("a");
  const ThreeLayers chain;
  // A moving average could be in the place of the momentum.
  ThreeLayers with_option;
  with_option.job.mutable_optimizer()->mutable_sgd()->set_momentum(0.9);
  for (const auto& [model, tensors] :
       std::vector<std::pair<const ThreeLayers*, std::vector<TensorInfo>>>{
           {&branched, Slots(2, "adam")},
           {&chain, Slots(4, "adam")},
           {&chain, Slots(2, "nadam")},
           {&with_option, Slots(2, "sgd")}}) {
    ASSERT_OK_AND_ASSIGN(const std::vector<std::string> names,
                         model->Names(tensors));
    for (size_t i = 0; i < names.size(); ++i) {
      EXPECT_EQ(names[i], tensors[i].name);
    }
  }
}

}  // namespace
}  // namespace parasol
