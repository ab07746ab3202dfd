// Models that Keras has saved, imported: they predict what Keras predicts.

#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "cluster/checkpoint/model/testing/model_checkpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "storage/tensor_files/keras/testing/saved_models.h"
#include "storage/tensor_files/npy_header.h"
#include "storage/tensor_files/npy_reader.h"
#include "tool/testing/run_tool.h"

namespace parasol {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

// The models of testdata/make_files.py.
constexpr char kMlp[] = R"(
  model {
    input { name: "x" dense { shape: 4 } }
    layer { name: "hidden" dense { units: 5 activation: RELU } }
    layer { name: "norm" batch_normalization {} }
    layer { dropout { rate: 0.2 } }
    layer { name: "logits" dense { units: 3 } }
    loss { mean_squared_error {} }
  }
  optimizer { adam {} }
)";
constexpr char kLenet[] = R"(
  model {
    input { name: "x" dense { shape: [6, 6, 1] } }
    layer { name: "first" conv2d { filters: 2 kernel_size: 3 padding: SAME
                                   activation: RELU } }
    layer { max_pool { pool_size: 2 } }
    layer { name: "depth" depthwise_conv2d { kernel_size: 2 } }
    layer { name: "second" conv2d { filters: 3 kernel_size: 2
                                    activation: RELU } }
    layer { flatten {} }
    layer { name: "hidden" dense { units: 4 activation: RELU } }
    layer { name: "logits" dense { units: 3 } }
    loss { mean_squared_error {} }
  }
  optimizer { sgd { momentum: 0.9 } }
)";
constexpr char kReader[] = R"(
  model {
    input { name: "x" dense { shape: [4, 3] } }
    layer { name: "both" lstm { units: 2 return_sequences: true
                                bidirectional: CONCAT } }
    layer { name: "read" gru { units: 3 } }
    layer { name: "norm" layer_normalization {} }
    layer { name: "scaled" batch_normalization { center: false } }
    layer { name: "y" dense { units: 1 use_bias: false } }
    loss { mean_squared_error {} }
  }
  optimizer { rmsprop { momentum: 0.9 centered: true } }
)";
constexpr char kItems[] = R"(
  model {
    input { name: "x" ids { column { name: "x" identity { num_ids: 10 } }
                            sequence { length: 4 } } }
    layer { name: "rows" input: "x" embedding { table: "items" } }
    layer { name: "look" input: ["rows", "rows"]
            multi_head_attention { num_heads: 2 key_dim: 3 } }
    layer { global_average_pool1d {} }
    layer { name: "logits" dense { units: 2 } }
    loss { mean_squared_error {} }
    sparse_table { name: "items" width: 4 }
  }
  optimizer { adagrad {} }
)";
constexpr char kTwins[] = R"(
  model {
    input { name: "x" dense { shape: 4 } }
    layer { name: "second" dense { units: 4 activation: RELU } }
    layer { name: "first" dense { units: 4 } }
    layer { name: "inner/first" dense { units: 4 } }
    layer { name: "inner/second" dense { units: 4 activation: RELU } }
    layer { name: "logits" dense { units: 3 } }
    loss { mean_squared_error {} }
  }
  optimizer { adam {} }
)";
constexpr char kTwoLayers[] = R"(
  model {
    input { name: "x" dense { shape: 4 } }
    layer { name: "hidden" dense { units: 2 } }
    layer { name: "y" dense { units: 1 } }
    loss { mean_squared_error {} }
  }
  optimizer { adam {} }
)";
constexpr char kParts[] = R"(
  model {
    input { name: "x" dense { shape: 4 } }
    layer { name: "first" dense { units: 4 } }
    layer { name: "second" dense { units: 4 } }
    loss { mean_squared_error {} }
  }
  optimizer { adam {} }
)";
constexpr char kArrays[] = R"(
  train { array { array { name: "x" file: "x.npy" }
                  array { name: "y" file: "x.npy" } label: "y" }
          batch_size: 2 }
  eval { array { array { name: "x" file: "x.npy" } } batch_size: 2 }
)";
constexpr char kLists[] = R"(
  train { csv { file: "x.csv" label { column: "y" } } batch_size: 2 }
  eval { csv { file: "x.csv" } batch_size: 2 }
)";

struct Case {
  std::string file;
  std::string job;
  bool has_ids = false;
  // Not so of save_weights() before Keras 3.6.
  bool has_slots = true;
};

// The numbers in lists of lists.
void AppendNumbers(const json& values, std::vector<float>& numbers) {
  if (values.is_number()) return numbers.push_back(values.get<float>());
  for (const json& value : values) AppendNumbers(value, numbers);
}

std::vector<float> NumbersIn(const json& values) {
  std::vector<float> numbers;
  AppendNumbers(values, numbers);
  return numbers;
}

class KerasModelTest : public testing::TestWithParam<Case> {
 protected:
  KerasModelTest() : directory_(EmptyTestDirectory()) {}

  std::string Path(const std::string& name) const {
    return directory_ + "/" + name;
  }

  void WriteJob(const std::string& job, bool has_ids) {
    std::ofstream(Path("job.textproto"))
        << job << (has_ids ? kLists : kArrays) << "end { steps: 100 }";
  }

  void WriteLists(const json& inputs) {
    std::ofstream lists(Path("x.csv"));
    lists << "x,y\n";
    for (const json& ids : inputs) {
      lists << absl::StrJoin(ids.get<std::vector<int>>(), "|") << ",0\n";
    }
  }

  void WriteArray(const json& inputs) {
    std::vector<int64_t> shape;
    for (const json* at = &inputs; at->is_array(); at = &(*at)[0]) {
      shape.push_back(static_cast<int64_t>(at->size()));
    }
    const std::vector<float> values = NumbersIn(inputs);
    std::ofstream(Path("x.npy"), std::ios::binary)
        << NpyHeader({"", ElementType::kFloat32, shape})
        << std::string(reinterpret_cast<const char*>(values.data()),
                       values.size() * sizeof(float));
  }

  CompletedProcess Import(const std::string& file,
                          const std::string& directory = "model",
                          const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {
        "import", absl::StrCat(kKerasTestData, file),
        "--job=" + Path("job.textproto"),
        "--checkpoint_dir=" + Path(directory)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunTool(arguments);
  }

  std::vector<float> Predict() {
    const CompletedProcess predicted =
        RunTool({"predict", Path("model"), "--data_dir=" + directory_,
                 "--device=cpu", "--raw", "--output=" + Path("outputs.npy")});
    EXPECT_EQ(predicted.end.code(), 0) << predicted.standard_error;
    const auto outputs = OpenNpy(Path("outputs.npy"), "");
    if (!outputs.ok()) return {};
    std::vector<float> values(*CountElements((*outputs)->tensors()[0].shape));
    EXPECT_OK(
        (*outputs)->Read(0, 0,
                         absl::MakeSpan(reinterpret_cast<char*>(values.data()),
                                        values.size() * sizeof(float))));
    return values;
  }

  const std::string directory_;
};

TEST_P(KerasModelTest, PredictsWhatKerasPredicts) {
  const Case& test = GetParam();
  const json model = SavedKerasModel(test.file);
  WriteJob(test.job, test.has_ids);
  if (test.has_ids) {
    WriteLists(model["inputs"]);
  } else {
    WriteArray(model["inputs"]);
  }
  std::vector<std::string> more;
  if (!test.has_slots) more = {"--allow_surplus"};
  const CompletedProcess imported = Import(test.file, "model", more);
  ASSERT_EQ(imported.end.code(), 0) << imported.standard_error;
  // Four steps of two epochs.
  EXPECT_THAT(imported.standard_output, HasSubstr("step 4"));
  EXPECT_EQ(
      absl::StrContains(imported.standard_output, "without optimizer slots"),
      !test.has_slots);
  EXPECT_THAT(Predict(), testing::Pointwise(testing::FloatNear(1e-5f),
                                            NumbersIn(model["outputs"])));
}

INSTANTIATE_TEST_SUITE_P(
    All, KerasModelTest,
    testing::Values(Case{"mlp.keras", kMlp}, Case{"mlp.h5", kMlp},
                    Case{"mlp.weights.h5", kMlp}, Case{"mlp_3_5_0.keras", kMlp},
                    Case{"mlp_3_5_0.weights.h5", kMlp, false, false},
                    Case{"lenet.keras", kLenet}, Case{"reader.keras", kReader},
                    Case{"reader.h5", kReader},
                    Case{"items.keras", kItems, true},
                    Case{"twins.keras", kTwins}, Case{"twins.h5", kTwins},
                    Case{"twins_3_5_0.keras", kTwins},
                    Case{"twins.weights.h5", kTwins, false, false},
                    Case{"scaled.keras", kTwoLayers},
                    Case{"scaled.weights.h5", kTwoLayers},
                    Case{"parts.keras", kParts, false, false},
                    Case{"parts.weights.h5", kParts, false, false}),
    [](const testing::TestParamInfo<Case>& test) {
      return absl::StrReplaceAll(test.param.file, {{".", "_"}});
    });

using KerasFilesTest = KerasModelTest;

// Values, slots and steps.
TEST_F(KerasFilesTest, FilesOfOneModelMakeOneCheckpoint) {
  for (const auto& [job, files] :
       std::vector<std::pair<std::string, std::vector<std::string>>>{
           {kMlp, {"mlp.keras", "mlp.h5", "mlp.weights.h5"}},
           {kReader, {"reader.keras", "reader.h5"}},
           {kTwins, {"twins.keras", "twins.h5"}},
           {kTwoLayers, {"scaled.keras", "scaled.weights.h5"}}}) {
    WriteJob(job, false);
    for (const std::string& file : files) {
      const CompletedProcess imported = Import(file, file);
      ASSERT_EQ(imported.end.code(), 0) << imported.standard_error;
      const CompletedProcess diff =
          RunTool({"diff", Path(files[0]), Path(file)});
      EXPECT_EQ(diff.end.code(), 0) << file << ": " << diff.standard_output;
    }
  }
}

TEST_F(KerasFilesTest, WhatCouldBeSwappedIsRefused) {
  WriteJob(kParts, false);
  for (const char* file : {"parts.keras", "parts.weights.h5"}) {
    const CompletedProcess slots = Import(file);
    EXPECT_EQ(slots.end.code(), 2);
    EXPECT_THAT(slots.standard_error,
                HasSubstr("those of first and second could be swapped: save a "
                          "Sequential or functional model with"));
  }
  for (const char* file : {"parts_3_5_0.keras", "parts_3_5_0.weights.h5"}) {
    const CompletedProcess layers = Import(file, "model", {"--allow_surplus"});
    EXPECT_EQ(layers.end.code(), 2);
    EXPECT_THAT(layers.standard_error,
                HasSubstr("layers/dense and layers/dense_1 are alike"));
  }
  WriteJob(kTwins, false);
  EXPECT_THAT(Import("twins.weights.h5").standard_error,
              HasSubstr("could be swapped"));
  EXPECT_THAT(Import("twins_3_5_0.weights.h5").standard_error,
              HasSubstr("are alike"));
}

TEST_F(KerasFilesTest, UpdatesOfSeveralGradientsAreCountedByTheUser) {
  WriteJob(kTwoLayers, false);
  const CompletedProcess unknown =
      Import("accumulated.keras", "model", {"--allow_surplus"});
  EXPECT_EQ(unknown.end.code(), 2);
  EXPECT_THAT(unknown.standard_error,
              HasSubstr("no number of updates; say it with --step"));
  const CompletedProcess known =
      Import("accumulated.keras", "model", {"--allow_surplus", "--step=2"});
  EXPECT_EQ(known.end.code(), 0) << known.standard_error;
  const CompletedProcess beyond =
      Import("accumulated.keras", "beyond", {"--step=9007199254740992"});
  EXPECT_EQ(beyond.end.code(), 2);
  EXPECT_THAT(beyond.standard_error,
              HasSubstr("--step=9007199254740992: must be from 0 to "
                        "9007199254740991"));
}

// A new job begins with the values alone.
TEST_F(KerasFilesTest, AJobBeginsWarm) {
  const json model = SavedKerasModel("mlp.keras");
  WriteJob(kMlp, false);
  WriteArray(model["inputs"]);
  const CompletedProcess warm =
      RunTool({"import", "--job=" + Path("job.textproto"),
               "--checkpoint_dir=" + Path("model"),
               absl::StrCat("--set=warm_start={checkpoint: \"", kKerasTestData,
                            "mlp.keras\"}")});
  ASSERT_EQ(warm.end.code(), 0) << warm.standard_error;
  EXPECT_THAT(Predict(), testing::Pointwise(testing::FloatNear(1e-5f),
                                            NumbersIn(model["outputs"])));
}

TEST_F(KerasFilesTest, WhatDoesNotFitIsNamed) {
  WriteJob(absl::StrReplaceAll(kMlp, {{"\"logits\"", "\"scores\""}}), false);
  const CompletedProcess other = Import("mlp.keras");
  EXPECT_EQ(other.end.code(), 2);
  EXPECT_THAT(
      other.standard_error,
      AllOf(HasSubstr("mlp.keras: the tensors are not those of the job"),
            HasSubstr("missing: scores/kernel, scores/bias"),
            HasSubstr("logits/kernel")));
  WriteJob(absl::StrReplaceAll(kMlp, {{"units: 3", "units: 2"}}), false);
  EXPECT_THAT(Import("mlp.keras").standard_error,
              HasSubstr("logits/kernel is float32 [5, 3], the job's is float32 "
                        "[5, 2]"));
  WriteJob(kMlp, false);
  const CompletedProcess weights = Import("mlp_3_5_0.weights.h5");
  EXPECT_EQ(weights.end.code(), 2);
  EXPECT_THAT(weights.standard_error,
              HasSubstr("too many (--allow_surplus leaves them out): "
                        "optimizer/vars/10"));
  const CompletedProcess chunks = Import("h5py_chunks.h5");
  EXPECT_EQ(chunks.end.code(), 2);
  EXPECT_THAT(chunks.standard_error,
              HasSubstr("h5py_chunks.h5: a/vars/0 is in chunks"));
}

}  // namespace
}  // namespace parasol
