#include "tool/exchange/pytorch_sequences.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tool/testing/counting_tensors.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

using Shapes = std::map<std::string, std::vector<int64_t>>;

class PyTorchSequencesTest : public testing::Test {
 protected:
  absl::Status Translate(const Shapes& tensors, const Shapes& variables) {
    std::vector<TensorInfo> infos;
    for (const auto& [name, shape] : tensors) {
      infos.push_back({name, ElementType::kFloat32, shape});
    }
    CheckpointContents contents;
    for (const auto& [name, shape] : variables) {
      durable::CheckpointVariable& variable = contents.variables.emplace_back();
      variable.set_name(name);
      variable.mutable_shape()->Add(shape.begin(), shape.end());
    }
    auto translated = TranslatePyTorchSequences(
        std::make_unique<CountingTensors>(std::move(infos)), contents);
    if (translated.ok()) reader_ = *std::move(translated);
    return translated.status();
  }

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const TensorInfo& info : reader_->tensors())
      names.push_back(info.name);
    return names;
  }

  // All elements of a tensor, read in two pieces.
  std::vector<float> Elements(const std::string& name) {
    for (size_t i = 0; i < reader_->tensors().size(); ++i) {
      const TensorInfo& info = reader_->tensors()[i];
      if (info.name != name) continue;
      std::vector<float> values(*CountElements(info.shape));
      const size_t first = values.size() / 2;
      const auto read = [&](size_t begin, size_t end) {
        EXPECT_OK(reader_->Read(
            i, begin * sizeof(float),
            absl::MakeSpan(reinterpret_cast<char*>(values.data() + begin),
                           (end - begin) * sizeof(float))));
      };
      read(0, first);
      read(first, values.size());
      return values;
    }
    ADD_FAILURE() << name << " is not there";
    return {};
  }

  std::unique_ptr<TensorReader> reader_;
};

TEST_F(PyTorchSequencesTest, AnLstmsBiasesAreAddedAndItsMatricesTransposed) {
  ASSERT_OK(Translate({{"read.weight_ih_l0", {4, 2}},
                       {"read.weight_hh_l0", {4, 1}},
                       {"read.bias_ih_l0", {4}},
                       {"read.bias_hh_l0", {4}},
                       {"last.weight", {3, 1}}},
                      {{"read/kernel", {2, 4}},
                       {"read/recurrent_kernel", {1, 4}},
                       {"read/bias", {4}},
                       {"last/kernel", {1, 3}}}));
  EXPECT_THAT(Names(),
              UnorderedElementsAre("last.weight", "read/kernel",
                                   "read/recurrent_kernel", "read/bias"));
  // Rows i, f, g, o of two inputs each.
  EXPECT_THAT(Elements("read/kernel"), ElementsAre(0, 2, 4, 6, 1, 3, 5, 7));
  EXPECT_THAT(Elements("read/recurrent_kernel"), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Elements("read/bias"), ElementsAre(0, 2, 4, 6));
}

TEST_F(PyTorchSequencesTest, AGrusGatesChangePlacesInBothDirections) {
  ASSERT_OK(Translate({{"a.read.weight_ih_l0", {6, 1}},
                       {"a.read.weight_hh_l0", {6, 2}},
                       {"a.read.bias_ih_l0", {6}},
                       {"a.read.bias_hh_l0", {6}},
                       {"a.read.weight_ih_l0_reverse", {6, 1}},
                       {"a.read.weight_hh_l0_reverse", {6, 2}},
                       {"a.read.bias_ih_l0_reverse", {6}},
                       {"a.read.bias_hh_l0_reverse", {6}}},
                      {{"a/read/forward/kernel", {1, 6}},
                       {"a/read/forward/recurrent_kernel", {2, 6}},
                       {"a/read/forward/bias", {2, 6}},
                       {"a/read/backward/kernel", {1, 6}},
                       {"a/read/backward/recurrent_kernel", {2, 6}},
                       {"a/read/backward/bias", {2, 6}}}));
  EXPECT_THAT(reader_->tensors(), SizeIs(6));
  for (const std::string direction : {"a/read/forward", "a/read/backward"}) {
    // There r is 0 and 1, z 2 and 3, n 4 and 5.
    EXPECT_THAT(Elements(direction + "/kernel"), ElementsAre(2, 3, 0, 1, 4, 5));
    EXPECT_THAT(Elements(direction + "/recurrent_kernel"),
                ElementsAre(4, 6, 0, 2, 8, 10, 5, 7, 1, 3, 9, 11));
    EXPECT_THAT(Elements(direction + "/bias"),
                ElementsAre(2, 3, 0, 1, 4, 5, 2, 3, 0, 1, 4, 5));
  }
}

TEST_F(PyTorchSequencesTest, AttentionIsCutIntoItsParts) {
  // Two heads of width 1 on two numbers.
  ASSERT_OK(Translate({{"look.in_proj_weight", {6, 2}},
                       {"look.in_proj_bias", {6}},
                       {"look.out_proj.weight", {2, 2}},
                       {"look.out_proj.bias", {2}}},
                      {{"look/query/kernel", {2, 2, 1}},
                       {"look/query/bias", {2, 1}},
                       {"look/key/kernel", {2, 2, 1}},
                       {"look/key/bias", {2, 1}},
                       {"look/value/kernel", {2, 2, 1}},
                       {"look/value/bias", {2, 1}},
                       {"look/attention_output/kernel", {2, 1, 2}},
                       {"look/attention_output/bias", {2}}}));
  EXPECT_THAT(reader_->tensors(), SizeIs(8));
  EXPECT_THAT(Elements("look/query/kernel"), ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(Elements("look/key/kernel"), ElementsAre(4, 6, 5, 7));
  EXPECT_THAT(Elements("look/value/kernel"), ElementsAre(8, 10, 9, 11));
  EXPECT_THAT(Elements("look/value/bias"), ElementsAre(4, 5));
  EXPECT_THAT(Elements("look/attention_output/kernel"),
              ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(Elements("look/attention_output/bias"), ElementsAre(0, 1));
}

TEST_F(PyTorchSequencesTest, AttentionWhoseValuesAreWiderIsRefused) {
  ASSERT_OK(Translate({{"look.in_proj_weight", {6, 2}},
                       {"look.in_proj_bias", {6}},
                       {"look.out_proj.weight", {2, 2}}},
                      {{"look/query/kernel", {2, 2, 1}},
                       {"look/key/kernel", {2, 2, 1}},
                       {"look/value/kernel", {2, 2, 3}},
                       {"look/value/bias", {2, 3}},
                       {"look/attention_output/kernel", {2, 3, 2}}}));
  EXPECT_THAT(Elements("look/query/kernel"), ElementsAre(0, 2, 1, 3));
  const std::map<std::string, std::string> words = {
      {"look/value/kernel",
       "look/value/kernel [2, 2, 3] has 12 elements, and "
       "PyTorch's layer has 4"},
      {"look/value/bias", "look/value/bias [2, 3] has 6 elements"},
      {"look/attention_output/kernel", "[2, 3, 2] has 12 elements"}};
  for (size_t i = 0; i < reader_->tensors().size(); ++i) {
    const auto expected = words.find(reader_->tensors()[i].name);
    if (expected == words.end()) continue;
    char first[sizeof(float)];
    for (int tries = 0; tries < 2; ++tries) {
      EXPECT_THAT(reader_->Read(i, 0, absl::MakeSpan(first)),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           HasSubstr(expected->second)));
    }
  }
}

TEST_F(PyTorchSequencesTest, AnotherShapeIsNamed) {
  EXPECT_THAT(
      Translate({{"read.weight_ih_l0", {4, 3}}},
                {{"read/kernel", {2, 4}}, {"read/recurrent_kernel", {1, 4}}}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("read.weight_ih_l0 is float32 [4, 3], and for "
                         "read/kernel [2, 4] it must be [4, 2]")));
}

TEST_F(PyTorchSequencesTest, TensorsWithTheJobsNamesStay) {
  ASSERT_OK(
      Translate({{"read/kernel", {2, 4}},
                 {"read/recurrent_kernel", {1, 4}},
                 {"read.weight_ih_l0", {9, 9}}},
                {{"read/kernel", {2, 4}}, {"read/recurrent_kernel", {1, 4}}}));
  EXPECT_THAT(Names(),
              UnorderedElementsAre("read/kernel", "read/recurrent_kernel",
                                   "read.weight_ih_l0"));
}

}  // namespace
}  // namespace parasol
