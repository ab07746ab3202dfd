#include "storage/tensor_files/keras_reader.h"

#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "storage/tensor_files/keras/testing/saved_models.h"
#include "storage/tensor_files/tensor_format.h"

namespace parasol {
namespace {

using nlohmann::json;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Key;

using Tensors = std::map<std::string, std::vector<float>>;

std::string PathOf(const std::string& name) {
  return absl::StrCat(kKerasTestData, name);
}

std::string BytesOfFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << path;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

Tensors ExpectedOf(const std::string& file) {
  Tensors expected;
  const json model = SavedKerasModel(file);
  for (const auto& [name, values] : model["tensors"].items()) {
    for (const double value : values) {
      expected[name].push_back(static_cast<float>(value));
    }
  }
  return expected;
}

absl::StatusOr<Tensors> ReadAll(const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<TensorReader> reader, OpenKeras(path));
  Tensors tensors;
  for (size_t i = 0; i < reader->tensors().size(); ++i) {
    const TensorInfo& info = reader->tensors()[i];
    ASSIGN_OR_RETURN(const uint64_t bytes, CountBytes(info));
    std::string out(bytes, '\0');
    RETURN_IF_ERROR(reader->Read(i, 0, absl::MakeSpan(out)));
    std::vector<float>& values = tensors[info.name];
    if (BytesOf(info.type) == 0) continue;
    values.resize(bytes / BytesOf(info.type));
    ToFloat32(info.type, absl::MakeSpan(out), absl::MakeSpan(values));
  }
  return tensors;
}

// Without a whole model's own name, which TranslateForeign() leaves out.
Tensors WithoutFront(const Tensors& tensors) {
  Tensors without;
  for (const auto& [name, values] : tensors) {
    without[absl::StrReplaceAll(absl::StripPrefix(name, "sequential/"),
                                {{"/sequential_", "/"}})] = values;
  }
  return without;
}

class WholeModelsTest : public testing::TestWithParam<const char*> {};

TEST_P(WholeModelsTest, VariablesAndSlotsHaveKerasNamesAndValues) {
  ASSERT_OK_AND_ASSIGN(const Tensors tensors, ReadAll(PathOf(GetParam())));
  EXPECT_EQ(WithoutFront(tensors), ExpectedOf(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(All, WholeModelsTest,
                         testing::Values("mlp.keras", "mlp.h5", "lenet.keras",
                                         "reader.keras", "reader.h5",
                                         "items.keras", "mlp_3_5_0.keras",
                                         "twins.keras", "twins.h5",
                                         "twins_3_5_0.keras"),
                         [](const testing::TestParamInfo<const char*>& file) {
                           return absl::StrReplaceAll(file.param, {{".", "_"}});
                         });

// Files of save_weights() don't say whose an optimizer's variables are.
TEST(KerasReaderTest, WeightsAloneHaveNamesAndUnnamedSlots) {
  for (const char* file : {"mlp.weights.h5", "own.weights.h5"}) {
    SCOPED_TRACE(file);
    ASSERT_OK_AND_ASSIGN(const Tensors tensors, ReadAll(PathOf(file)));
    size_t slots = 0;
    const Tensors expected = ExpectedOf(file);
    for (const auto& [name, values] : expected) {
      if (absl::StartsWith(name, "adam/") || absl::StartsWith(name, "sgd/")) {
        ++slots;
      } else {
        EXPECT_THAT(tensors, Contains(std::pair(name, values)));
      }
    }
    EXPECT_EQ(tensors.size(), expected.size());
    EXPECT_THAT(tensors,
                Contains(Key(AnyOf("adam/iteration", "sgd/iteration"))));
    for (size_t i = 1; i < slots; ++i) {
      EXPECT_THAT(tensors, Contains(Key(absl::StrCat("optimizer/vars/", i))));
    }
  }
}

TEST(KerasReaderTest, WeightsOfOlderVersionsAreNumbered) {
  const char* file = "mlp_3_5_0.weights.h5";
  ASSERT_OK_AND_ASSIGN(const Tensors tensors, ReadAll(PathOf(file)));
  const Tensors expected = ExpectedOf(file);
  for (const auto& [there, here] : std::map<std::string, std::string>{
           {"layers/dense/kernel", "hidden/kernel"},
           {"layers/batch_normalization/beta", "norm/beta"},
           {"layers/batch_normalization/moving_variance",
            "norm/moving_variance"},
           {"layers/dense_1/bias", "logits/bias"}}) {
    EXPECT_THAT(tensors, Contains(std::pair(there, expected.at(here))));
  }
}

// Keras saves the variables of the optimizer that does the work twice.
TEST(KerasReaderTest, OptimizersThatScaleTheLossAreThoseInside) {
  Tensors expected = ExpectedOf("scaled.keras");
  std::erase_if(expected, [](const auto& tensor) {
    return absl::StartsWith(tensor.first, "loss_scale_optimizer/");
  });
  EXPECT_EQ(expected.at("adam/iteration"), std::vector<float>{4});
  ASSERT_OK_AND_ASSIGN(Tensors tensors, ReadAll(PathOf("scaled.keras")));
  EXPECT_EQ(WithoutFront(tensors), expected);
  ASSERT_OK_AND_ASSIGN(tensors, ReadAll(PathOf("scaled.weights.h5")));
  EXPECT_EQ(tensors.size(), expected.size());
  EXPECT_THAT(tensors,
              Contains(std::pair("adam/iteration", std::vector<float>{4})));
  EXPECT_EQ(tensors.at("optimizer/vars/9"),
            expected.at("adam/y_bias_velocity"));
}

// Four gradients were two updates.
TEST(KerasReaderTest, IterationsThatCountGradientsHaveNoName) {
  Tensors expected = ExpectedOf("accumulated.keras");
  auto iterations = expected.extract("adam/iteration");
  EXPECT_EQ(iterations.mapped(), std::vector<float>{4});
  iterations.key() = "optimizer/vars/0";
  expected.insert(std::move(iterations));
  ASSERT_OK_AND_ASSIGN(const Tensors tensors,
                       ReadAll(PathOf("accumulated.keras")));
  EXPECT_EQ(WithoutFront(tensors), expected);
}

// Their configuration has no layers, and so no order of variables.
TEST(KerasReaderTest, ModelsThatAreClassesHaveUnnamedSlots) {
  ASSERT_OK_AND_ASSIGN(Tensors tensors, ReadAll(PathOf("parts.keras")));
  EXPECT_EQ(tensors.at("first/kernel"),
            ExpectedOf("parts.keras").at("first/kernel"));
  EXPECT_THAT(tensors, Contains(Key("optimizer/vars/9")));
  // Their layers have no names before Keras 3.6.
  ASSERT_OK_AND_ASSIGN(tensors, ReadAll(PathOf("parts_3_5_0.keras")));
  EXPECT_EQ(tensors.at("layers/dense/kernel"),
            ExpectedOf("parts_3_5_0.keras").at("second/kernel"));
}

TEST(KerasReaderTest, FormatIsKnownByTheName) {
  for (const char* name : {"a.keras", "a.weights.h5", "a.h5"}) {
    ASSERT_OK_AND_ASSIGN(const TensorFormat format, FormatOfFilesAt(name));
    EXPECT_EQ(format, TensorFormat::kKeras);
  }
}

// Written anew for each case.
class DamagedKerasTest : public testing::Test {
 protected:
  std::string Write(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
    return path_;
  }

  const std::string path_ = ::testing::TempDir() + "/damaged.keras";
};

TEST_F(DamagedKerasTest, ChangedBytesOfAModelAreFoundByChecksums) {
  const std::string good = BytesOfFile(PathOf("mlp.keras"));
  ASSERT_OK_AND_ASSIGN(const Tensors tensors, ReadAll(PathOf("mlp.keras")));
  int refused = 0;
  for (size_t place = 0; place < good.size(); place += 11) {
    std::string changed = good;
    changed[place] ^= 0x10;
    const absl::StatusOr<Tensors> read = ReadAll(Write(changed));
    if (read.ok()) {
      EXPECT_EQ(*read, tensors) << place;
      continue;
    }
    ++refused;
    EXPECT_THAT(read.status().message(), HasSubstr(path_)) << place;
  }
  // All but dates and the like.
  EXPECT_GT(refused, good.size() / 11 * 95 / 100);
}

TEST_F(DamagedKerasTest, CutFilesAreNamed) {
  const std::string good = BytesOfFile(PathOf("mlp.keras"));
  for (size_t size = 0; size < good.size(); size += 37) {
    ASSERT_THAT(ReadAll(Write(good.substr(0, size))).status(),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path_)))
        << size;
  }
  const std::string weights = BytesOfFile(PathOf("mlp.weights.h5"));
  ASSERT_THAT(ReadAll(Write(weights.substr(0, 9000))).status(),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr(absl::StrCat(
                           path_, ": is no whole HDF5 file: byte "))));
}

TEST_F(DamagedKerasTest, ArchivesOfOthersAreRefused) {
  EXPECT_THAT(
      OpenKeras("storage/tensor_files/testdata/numpy_stored.npz").status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("numpy_stored.npz: has no config.json, so it is none "
                         "of model.save(\"model.keras\") of Keras 3")));
  EXPECT_THAT(OpenKeras(path_ + ".none").status(),
              StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace parasol
