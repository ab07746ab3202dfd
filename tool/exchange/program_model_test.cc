// A model of a program with a training loop of its own, evaluated and used as a
// job's (docs/custom_loop.md).

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "cluster/checkpoint/model/testing/model_checkpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/tensor_files/npy_header.h"
#include "storage/tensor_files/npy_reader.h"
#include "storage/tensor_files/npz_reader.h"
#include "tool/testing/run_tool.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kProgram[] = "docs/examples/custom_loop/wgan";
constexpr char kJob[] = R"(
  model {
    input { name: "noise" dense { shape: 4 } }
    layer { name: "first" dense { units: 64 activation: RELU } }
    layer { name: "second" dense { units: 64 activation: RELU } }
    layer { name: "point" dense { units: 2 } }
    loss { mean_squared_error {} }
  }
  train {
    array { array { name: "noise" file: "noise.npy" }
            array { name: "at" file: "at.npy" } label: "at" }
    batch_size: 2
  }
  eval {
    array { array { name: "noise" file: "noise.npy" }
            array { name: "at" file: "at.npy" } }
    batch_size: 2
  }
  optimizer { sgd { learning_rate: 0.1 } }
  end { steps: 1 }
)";
constexpr const char* kLayers[] = {"first", "second", "point"};

using Values = std::vector<float>;

Values Read(TensorReader& reader, size_t tensor) {
  Values values(*CountElements(reader.tensors()[tensor].shape));
  EXPECT_OK(reader.Read(tensor, 0,
                        absl::MakeSpan(reinterpret_cast<char*>(values.data()),
                                       values.size() * sizeof(float))));
  return values;
}

// A dense layer of one example.
std::vector<double> Dense(const std::vector<double>& x, const Values& kernel,
                          const Values& bias) {
  std::vector<double> y(bias.begin(), bias.end());
  for (size_t i = 0; i < x.size(); ++i) {
    for (size_t j = 0; j < y.size(); ++j)
      y[j] += x[i] * kernel[i * y.size() + j];
  }
  return y;
}

class ProgramModelTest : public testing::Test {
 protected:
  ProgramModelTest() : directory_(EmptyTestDirectory()) {
    std::ofstream(Path("job.textproto")) << kJob;
    WriteArray("noise.npy", {2, 4}, {1, -2, .5f, 0, -1, 2, 3, .25f});
    WriteArray("at.npy", {2, 2}, {0, 0, 1, 1});
    const CompletedProcess run = RunBinary(
        kProgram, {"--iterations=3", "--checkpoint_dir=" + Path("program")});
    EXPECT_EQ(run.end.code(), 0) << run.standard_error;
  }

  std::string Path(const std::string& name) const {
    return directory_ + "/" + name;
  }

  void WriteArray(const std::string& name, const std::vector<int64_t>& shape,
                  const Values& values) {
    std::ofstream(Path(name), std::ios::binary)
        << NpyHeader({"", ElementType::kFloat32, shape})
        << std::string(reinterpret_cast<const char*>(values.data()),
                       values.size() * sizeof(float));
  }

  // The setting by which the job takes the generator's values.
  std::string WarmStart() const {
    std::string text =
        absl::StrCat("--set=warm_start={checkpoint: \"", Path("program"), "\"");
    for (int i = 0; i < 3; ++i) {
      for (const char* variable : {"kernel", "bias"}) {
        absl::StrAppend(&text, " map {from: \"generator/", variable, "_", i,
                        "\" to: \"", kLayers[i], "/", variable, "\"}");
      }
    }
    return text + "}";
  }

  CompletedProcess Import(const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"import",
                                          "--job=" + Path("job.textproto"),
                                          "--checkpoint_dir=" + Path("model")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunTool(arguments);
  }

  const std::string directory_;
};

TEST_F(ProgramModelTest, IsImportedAndPredictsWithTheProgramsValues) {
  const CompletedProcess imported = Import({WarmStart()});
  ASSERT_EQ(imported.end.code(), 0) << imported.standard_error;
  EXPECT_THAT(imported.standard_output, HasSubstr("ckpt-000000000000: step 0"));
  const CompletedProcess predicted =
      RunTool({"predict", Path("model"), "--data_dir=" + directory_,
               "--device=cpu", "--output=" + Path("points.npy")});
  ASSERT_EQ(predicted.end.code(), 0) << predicted.standard_error;

  // The program's tensors leave as a job's do.
  const CompletedProcess exported =
      RunTool({"export", Path("program"), "--format=npz",
               "--output=" + Path("program.npz")});
  ASSERT_EQ(exported.end.code(), 0) << exported.standard_error;
  ASSERT_OK_AND_ASSIGN(const auto tensors, OpenNpz(Path("program.npz")));
  std::map<std::string, Values> by_name;
  for (size_t i = 0; i < tensors->tensors().size(); ++i) {
    if (tensors->tensors()[i].type != ElementType::kFloat32) continue;
    by_name[tensors->tensors()[i].name] = Read(*tensors, i);
  }
  ASSERT_OK_AND_ASSIGN(const auto points, OpenNpy(Path("points.npy"), ""));
  const Values got = Read(*points, 0);
  ASSERT_EQ(got.size(), 4);
  const std::vector<std::vector<double>> noise = {{1, -2, .5, 0},
                                                  {-1, 2, 3, .25}};
  for (size_t example = 0; example < noise.size(); ++example) {
    std::vector<double> x = noise[example];
    for (int i = 0; i < 3; ++i) {
      x = Dense(x, by_name.at(absl::StrCat("generator/kernel_", i)),
                by_name.at(absl::StrCat("generator/bias_", i)));
      if (i == 2) break;
      for (double& value : x) value = std::max(value, 0.);
    }
    EXPECT_NEAR(got[2 * example], x[0], 1e-5);
    EXPECT_NEAR(got[2 * example + 1], x[1], 1e-5);
  }
  const CompletedProcess evaluated = RunTool(
      {"evaluate", Path("model"), "--data_dir=" + directory_, "--device=cpu"});
  EXPECT_EQ(evaluated.end.code(), 0) << evaluated.standard_error;
}

TEST_F(ProgramModelTest, WhatTheProgramLacksIsNamed) {
  const CompletedProcess lacking =
      Import({absl::StrCat("--set=warm_start={checkpoint: \"", Path("program"),
                           "\" map {from: \"generator/\"}}")});
  EXPECT_EQ(lacking.end.code(), 2);
  EXPECT_THAT(lacking.standard_error, HasSubstr("first/kernel"));
  // Nobody is taken for the owner of a directory for nothing.
  EXPECT_FALSE(std::filesystem::exists(Path("model")));
  const CompletedProcess cold = Import({});
  EXPECT_EQ(cold.end.code(), 2);
  EXPECT_THAT(cold.standard_error, HasSubstr("the job has no warm_start"));
  const CompletedProcess stepped = Import({WarmStart(), "--step=3"});
  EXPECT_EQ(stepped.end.code(), 2);
  EXPECT_THAT(stepped.standard_error, HasSubstr("are of a PATH"));
  ASSERT_EQ(Import({WarmStart()}).end.code(), 0);
  const CompletedProcess again = Import({WarmStart()});
  EXPECT_EQ(again.end.code(), 2);
  EXPECT_THAT(again.standard_error,
              AllOf(HasSubstr("--checkpoint_dir="), HasSubstr("checkpoints")));
}

}  // namespace
}  // namespace parasol
