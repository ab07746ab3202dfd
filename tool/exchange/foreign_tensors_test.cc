#include "tool/exchange/foreign_tensors.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tool/testing/counting_tensors.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;

constexpr ElementType kFloat = ElementType::kFloat32;

// A dense layer with Adam's slots, and a table of width 2 with Adagrad's.
struct TestModel {
  TestModel() {
    job.mutable_optimizer()->mutable_adam();
    job::SparseTable& table = *job.mutable_model()->add_sparse_table();
    table.set_name("users");
    table.mutable_optimizer()->mutable_adagrad();
    for (const char* name : {"hidden/kernel", "hidden/bias"}) {
      durable::CheckpointVariable& variable = contents.variables.emplace_back();
      variable.set_name(name);
      for (const char* slot : {"m", "v"}) variable.add_slot(slot);
    }
    contents.tables.emplace_back().set_name("users");
    contents.tables[0].add_slot("accumulator");
  }

  job::Job job;
  CheckpointContents contents;
};

std::vector<TensorInfo> Named(const std::vector<std::string>& names) {
  std::vector<TensorInfo> tensors;
  for (const std::string& name : names) tensors.push_back({name, kFloat, {}});
  return tensors;
}

std::string FrontOf(const std::vector<std::string>& names) {
  return FrontOfNames(Named(names), TestModel().contents);
}

std::unique_ptr<TensorReader> Translated(std::vector<TensorInfo> tensors) {
  const TestModel model;
  return TranslateForeign(std::make_unique<CountingTensors>(std::move(tensors)),
                          model.contents, model.job);
}

std::vector<std::string> TranslatedNames(
    const std::vector<std::string>& names) {
  const std::unique_ptr<TensorReader> reader = Translated(Named(names));
  std::vector<std::string> translated;
  for (const TensorInfo& tensor : reader->tensors()) {
    translated.push_back(tensor.name);
  }
  return translated;
}

TEST(FrontOfNamesTest, IsWhatTheModelsNamesHaveInFront) {
  EXPECT_EQ(FrontOf({"sequential/hidden/kernel", "sequential/hidden/bias"}),
            "sequential/");
  EXPECT_EQ(FrontOf({"module.hidden.weight", "module.hidden.bias", "x.y"}),
            "module.");
  EXPECT_EQ(FrontOf({"net.a/hidden/kernel", "net.a/hidden/bias"}), "net.a/");
  // An optimizer's slots of older Keras versions have names behind its own.
  EXPECT_EQ(FrontOf({"s/hidden/kernel", "s/hidden/bias",
                     "Adam/m/s/hidden/kernel", "Adam/m/s/hidden/bias"}),
            "s/");
}

TEST(FrontOfNamesTest, IsEmptyWhereItIsNotKnown) {
  EXPECT_EQ(FrontOf({"hidden/kernel", "hidden/bias", "copy/hidden/kernel",
                     "copy/hidden/bias"}),
            "");
  EXPECT_EQ(FrontOf({"a/hidden/kernel", "b/hidden/kernel", "a/hidden/bias",
                     "b/hidden/bias"}),
            "");
  EXPECT_EQ(FrontOf({"a/hidden/kernel"}), "");  // one of three
  EXPECT_EQ(FrontOf({"my_hidden/kernel", "my_hidden/bias"}), "");
  EXPECT_EQ(FrontOf({}), "");
}

TEST(ForeignTensorsTest, NamesOfKeras3AreThoseOfOlderOnes) {
  EXPECT_THAT(
      TranslatedNames({"adam/iteration", "adam/learning_rate",
                       "sequential_1/hidden/kernel", "sequential_1/hidden/bias",
                       "adam/sequential_1_hidden_kernel_momentum",
                       "adam/sequential_1_hidden_kernel_velocity",
                       "adam_1/sequential_1_hidden_bias_momentum",
                       "optimizer/adam/sequential_1_hidden_bias_velocity"}),
      ElementsAre("Adam/iter", "adam/learning_rate", "hidden/kernel",
                  "hidden/bias", "Adam/hidden/kernel/m", "Adam/hidden/kernel/v",
                  "Adam/hidden/bias/m", "Adam/hidden/bias/v"));
}

// A model behind whose layers there is one more.
TEST(ForeignTensorsTest, SlotsOfVariablesWithoutTheFrontAreFound) {
  TestModel model;
  durable::CheckpointVariable& head = model.contents.variables.emplace_back();
  head.set_name("head/kernel");
  head.add_slot("m");
  const std::unique_ptr<TensorReader> reader =
      TranslateForeign(std::make_unique<CountingTensors>(
                           Named({"inner/hidden/kernel", "inner/hidden/bias",
                                  "head/kernel", "adam/head_kernel_momentum"})),
                       model.contents, model.job);
  EXPECT_EQ(reader->tensors()[0].name, "hidden/kernel");
  EXPECT_EQ(reader->tensors()[3].name, "Adam/head/kernel/m");
}

// The cell is in the slots' names, too.
TEST(ForeignTensorsTest, SlotsOfRecurrentLayersAreFound) {
  EXPECT_THAT(TranslatedNames({"s/hidden/lstm_cell_1/kernel", "s/hidden/bias",
                               "adam/s_hidden_lstm_cell_1_kernel_momentum",
                               "adam/s_hidden_bias_velocity"}),
              ElementsAre("hidden/kernel", "hidden/bias",
                          "Adam/hidden/kernel/m", "Adam/hidden/bias/v"));
}

TEST(ForeignTensorsTest, DepthwiseKernelsOfKeras3HaveOneMoreName) {
  TestModel model;
  model.contents.variables[0].set_name("hidden/depthwise_kernel");
  const auto translated = [&](const std::vector<std::string>& names) {
    const std::unique_ptr<TensorReader> reader =
        TranslateForeign(std::make_unique<CountingTensors>(Named(names)),
                         model.contents, model.job);
    std::vector<std::string> translated;
    for (const TensorInfo& tensor : reader->tensors()) {
      translated.push_back(tensor.name);
    }
    return translated;
  };
  EXPECT_THAT(translated({"hidden/kernel", "hidden/bias",
                          "adam/hidden_kernel_momentum"}),
              ElementsAre("hidden/depthwise_kernel", "hidden/bias",
                          "Adam/hidden/depthwise_kernel/m"));
  // Older versions and separable convolutions have it as it is here.
  for (const char* other :
       {"hidden/depthwise_kernel", "hidden/pointwise_kernel"}) {
    EXPECT_THAT(translated({"hidden/kernel", other}),
                ElementsAre("hidden/kernel", other));
  }
}

TEST(FrontOfNamesTest, SeparatorsMayBeAnywhere) {
  EXPECT_EQ(FrontOf({"/a", ".a", "", "/", "a//", "..hidden.weight"}), "");
  EXPECT_EQ(FrontOf({"/hidden/kernel", "/hidden/bias", "/users/rows"}), "/");
}

// Copies of all ends of this name would be a terabyte.
TEST(FrontOfNamesTest, ANameMayBeLong) {
  std::string name;
  for (int i = 0; i < 1'000'000; ++i) name += "a/";
  EXPECT_EQ(FrontOf({name + "hidden/kernel", name + "hidden/bias"}), name);
}

// Keras numbers layers of one name: the second one is another layer.
TEST(ForeignTensorsTest, AnotherLayersEmbeddingsAreNotTaken) {
  const std::unique_ptr<TensorReader> reader =
      Translated({{"users_2/embeddings", kFloat, {3, 2}},
                  {"Users/embeddings", kFloat, {3, 2}}});
  ASSERT_EQ(reader->tensors().size(), 2);
  EXPECT_EQ(reader->tensors()[0].name, "users_2/embeddings");
  EXPECT_EQ(reader->tensors()[1].name, "Users/embeddings");
}

TEST(ForeignTensorsTest, ARecurrentLayersTensorsAreFoundBehindItsCell) {
  EXPECT_THAT(
      TranslatedNames({"hidden/lstm_cell_1/kernel", "hidden/gru_cell/bias",
                       "b/forward_lstm/lstm_cell/kernel",
                       "b/backward_lstm/lstm_cell_2/bias",
                       "forward_pass/kernel", "my_lstm_cell/kernel"}),
      ElementsAre("hidden/kernel", "hidden/bias", "b/forward/kernel",
                  "b/backward/bias", "forward_pass/kernel",
                  "my_lstm_cell/kernel"));
}

TEST(ForeignTensorsTest, SlotsOfAnotherOptimizerStay) {
  EXPECT_THAT(TranslatedNames({"hidden/kernel", "hidden/bias",
                               "sgd/hidden_kernel_momentum", "lion/iteration"}),
              ElementsAre("hidden/kernel", "hidden/bias",
                          "sgd/hidden_kernel_momentum", "lion/iteration"));
}

TEST(ForeignTensorsTest, EmbeddingsAreTheRowsOfTables) {
  for (const std::string name : {"users/embeddings", "users.weight"}) {
    SCOPED_TRACE(name);
    const std::unique_ptr<TensorReader> reader =
        Translated({{name, kFloat, {3, 2}},
                    {"Adagrad/users/embeddings/accumulator", kFloat, {3, 2}}});
    EXPECT_THAT(
        reader->tensors(),
        ElementsAre(
            TensorInfo{"users/rows", kFloat, {3, 2}},
            TensorInfo{"Adagrad/users/rows/accumulator", kFloat, {3, 2}},
            TensorInfo{"users/ids", ElementType::kInt64, {3}}));
    std::vector<int64_t> ids(2);
    ASSERT_OK(
        reader->Read(2, sizeof(int64_t),
                     absl::MakeSpan(reinterpret_cast<char*>(ids.data()), 16)));
    EXPECT_THAT(ids, ElementsAre(1, 2));
  }
}

TEST(ForeignTensorsTest, SlotsOfEmbeddingsHaveEveryKerassName) {
  for (const std::string slot : {"Adagrad/users/embeddings/accumulator",
                                 "Adagrad/accumulator/users/embeddings",
                                 "adagrad/users_embeddings_accumulator"}) {
    EXPECT_EQ(Translated({{"users/embeddings", kFloat, {3, 2}},
                          {slot, kFloat, {3, 2}}})
                  ->tensors()[1]
                  .name,
              "Adagrad/users/rows/accumulator");
  }
}

TEST(ForeignTensorsTest, WhatIsNoTableStays) {
  EXPECT_EQ(Translated({{"users/embeddings", kFloat, {6}}})->tensors().size(),
            1);
  EXPECT_EQ(Translated({{"users/embeddings", kFloat, {3, 2}},
                        {"users/ids", ElementType::kInt64, {3}},
                        {"users/rows", kFloat, {3, 2}}})
                ->tensors()[0]
                .name,
            "users/embeddings");
}

}  // namespace
}  // namespace parasol
