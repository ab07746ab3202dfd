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

// Dense layers "a" [2, 3] and "b" [3, 3], "c", with Adam's slots.
struct ThreeLayers {
  explicit ThreeLayers(int64_t rows_of_c = 4) {
    job.mutable_optimizer()->mutable_adam();
    for (const char* name : {"a", "b", "c"}) {
      job.mutable_model()->add_layer()->set_name(name);
      durable::CheckpointVariable& variable = contents.variables.emplace_back();
      variable.set_name(std::string(name) + "/kernel");
      variable.add_shape(name[0] == 'a' ? 2 : name[0] == 'b' ? 3 : rows_of_c);
      variable.add_shape(3);
      for (const char* slot : {"m", "v"}) variable.add_slot(slot);
    }
  }

  absl::StatusOr<std::vector<std::string>> Names(
      std::vector<TensorInfo> tensors, bool allow_surplus = false) const {
    absl::StatusOr<std::unique_ptr<TensorReader>> reader =
        NameKerasWeights(std::make_unique<CountingTensors>(std::move(tensors)),
                         contents, job, allow_surplus);
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
std::vector<TensorInfo> Unnamed(int64_t rows_of_c = 4) {
  return {{"layers/dense_10/kernel", kFloat, {rows_of_c, 3}},
          {"layers/dense_2/kernel", kFloat, {3, 3}},
          {"layers/dense_7/kernel", kFloat, {2, 3}}};
}

TEST(KerasWeightsTest, LayersAreKnownByShapes) {
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> names,
                       ThreeLayers().Names(Unnamed()));
  EXPECT_THAT(names, ElementsAre("c/kernel", "b/kernel", "a/kernel"));
}

// What model they are of, and so in what order, no file says.
TEST(KerasWeightsTest, LayersThatAreAlikeNeedNames) {
  ThreeLayers branched(3);
  branched.job.mutable_model()->mutable_layer(2)->add_input("a");
  EXPECT_THAT(branched.Names(Unnamed(3)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("layers/dense_2 and layers/dense_10 are "
                                 "alike, so that nobody can tell which")));
  EXPECT_THAT(ThreeLayers(3).Names(Unnamed(3)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("model.save(\"model.keras\")")));
  EXPECT_THAT(ThreeLayers(3)
                  .Names({{"layers/dense/kernel", kFloat, {3, 3}},
                          {"layers/einsum_dense/kernel", kFloat, {3, 3}}})
                  .status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("layers/dense and layers/einsum_dense are "
                                 "alike")));
  // One alone does not.
  ASSERT_OK_AND_ASSIGN(
      const std::vector<std::string> names,
      branched.Names({{"layers/dense/kernel", kFloat, {2, 3}}}));
  EXPECT_THAT(names, ElementsAre("a/kernel"));
}

TEST(KerasWeightsTest, AnotherNumberOfLayersStays) {
  ASSERT_OK_AND_ASSIGN(
      const std::vector<std::string> names,
      ThreeLayers(3).Names({{"layers/dense/kernel", kFloat, {3, 3}}}));
  EXPECT_THAT(names, ElementsAre("layers/dense/kernel"));
}

// Keras's kernel of a depthwise convolution has no name of its own.
TEST(KerasWeightsTest, DepthwiseKernelsAreFound) {
  ThreeLayers model;
  for (auto& variable : model.contents.variables) {
    if (variable.name() == "b/kernel") variable.set_name("b/depthwise_kernel");
  }
  ASSERT_OK_AND_ASSIGN(
      const std::vector<std::string> names,
      model.Names({{"layers/depthwise_conv2d/kernel", kFloat, {3, 3}}}));
  EXPECT_THAT(names, ElementsAre("b/kernel"));
}

TEST(KerasWeightsTest, NamesThatTheJobHasAreKept) {
  ThreeLayers model(3);
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

TEST(KerasWeightsTest, NumbersAreNoNames) {
  ThreeLayers model(3);
  model.contents.variables[0].set_name("input/kernel");
  model.contents.variables[1].set_name("dense/kernel");
  model.contents.variables[2].set_name("dense_1/kernel");
  EXPECT_THAT(model
                  .Names({{"layers/input/kernel", kFloat, {2, 3}},
                          {"layers/dense/kernel", kFloat, {3, 3}},
                          {"layers/dense_1/kernel", kFloat, {3, 3}}})
                  .status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("layers/dense and layers/dense_1 are alike")));
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
std::vector<TensorInfo> Slots(int64_t rows, const std::string& optimizer,
                              int64_t rows_of_c = 4) {
  std::vector<TensorInfo> tensors = {{optimizer + "/iteration", kFloat, {}},
                                     {"optimizer/vars/1", kFloat, {}}};
  const auto add = [&](int64_t of_rows) {
    tensors.push_back({"optimizer/vars/" + std::to_string(tensors.size()),
                       kFloat,
                       {of_rows, 3}});
  };
  for (const int64_t of : {rows, rows, int64_t{3}, int64_t{3}}) add(of);
  for (int i = 0; i < 2; ++i) add(rows_of_c);
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

// The layers of a model that is a class of its own come in the order in which
// it has got them.
TEST(KerasWeightsTest, SlotsThatCouldBeSwappedAreRefused) {
  const std::vector<TensorInfo> slots = Slots(2, "adam", 3);
  EXPECT_THAT(ThreeLayers(3).Names(slots).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("those of b and c could be swapped: save a "
                                 "Sequential or functional model with "
                                 "model.save(\"model.keras\"), or leave them "
                                 "out with --allow_surplus")));
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> names,
                       ThreeLayers(3).Names(slots, /*allow_surplus=*/true));
  EXPECT_EQ(names[6], "optimizer/vars/6");
}

// "b" could begin where "a" does: the shapes of the one go on with the other's.
TEST(KerasWeightsTest, SlotsAreComparedLayerByLayer) {
  const auto names_of = [](const std::vector<std::string>& variables) {
    ThreeLayers model;
    model.contents.variables.clear();
    std::vector<TensorInfo> tensors = {{"adam/iteration", kFloat, {}}};
    for (const std::string& name : variables) {
      durable::CheckpointVariable& variable =
          model.contents.variables.emplace_back();
      variable.set_name(name);
      variable.add_shape(name.back() == 'l' ? 2 : 3);
      for (const char* slot : {"m", "v"}) {
        variable.add_slot(slot);
        tensors.push_back({absl::StrCat("optimizer/vars/", tensors.size()),
                           kFloat,
                           {variable.shape(0)}});
      }
    }
    return model.Names(tensors).status();
  };
  EXPECT_OK(names_of({"a/kernel", "a/bias", "b/bias", "b/gamma"}));
  EXPECT_THAT(names_of({"a/bias", "b/bias", "b/beta", "b/kernel"}),
              StatusIs(absl::StatusCode::kOk));
  EXPECT_THAT(names_of({"a/bias", "b/bias", "b/beta"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("could be swapped")));
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
