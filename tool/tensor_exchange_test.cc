// Models that leave and come back, with the binaries as users start them.

#include <sys/resource.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/checkpoint/model/testing/model_checkpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tool/testing/run_tool.h"
#include "tool/testing/trained_job_fixture.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr char kTestData[] = "storage/tensor_files/testdata/";

struct Format {
  std::string name;
  std::string output;
};

class TensorExchangeTest : public TrainedJobFixture,
                           public ::testing::WithParamInterface<Format> {
 protected:
  CompletedProcess Export(const std::string& checkpoints,
                          const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {
        "export", Path(checkpoints), "--format=" + GetParam().name,
        "--output=" + Path(GetParam().output)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunTool(arguments);
  }

  CompletedProcess Import(const std::string& checkpoints) {
    return RunTool({"import", Path(GetParam().output),
                    "--job=" + Path("job.textproto"), "--set=end.steps=9",
                    "--checkpoint_dir=" + Path(checkpoints)});
  }
};

TEST_P(TensorExchangeTest, TrainingGoesOnFromAnImportAsIfNothingHadHappened) {
  Train("before", 9);
  const CompletedProcess exported = Export("before");
  ASSERT_EQ(exported.end.code(), 0) << exported.standard_error;
  const CompletedProcess imported = Import("after");
  ASSERT_EQ(imported.end.code(), 0) << imported.standard_error;
  EXPECT_THAT(imported.standard_output,
              EndsWith("ckpt-000000000009: step 9\n"));
  EXPECT_EQ(RunTool({"diff", Path("before"), Path("after")}).end.code(), 0);
  Train("before", 30);
  Train("after", 30);
  const CompletedProcess diff =
      RunTool({"diff", Path("before"), Path("after")});
  EXPECT_EQ(diff.end.code(), 0) << diff.standard_output;
}

TEST_P(TensorExchangeTest, WithoutSlotsTheyBeginAnew) {
  Train("before", 9);
  ASSERT_EQ(Export("before", {"--noslots"}).end.code(), 0);
  const CompletedProcess imported = Import("after");
  ASSERT_EQ(imported.end.code(), 0) << imported.standard_error;
  EXPECT_THAT(imported.standard_output, HasSubstr("without optimizer slots"));
  const auto inspected = nlohmann::json::parse(
      RunTool({"checkpoint", "show", "--json", Path("after")}).standard_output);
  for (const auto& variable : inspected["variables"]) {
    EXPECT_EQ(variable["slots"]["m"]["max"], 0);
  }
  // Ftrl's accumulators begin at 0.1.
  EXPECT_NEAR(inspected["tables"][0]["slots"]["accumulator"]["min"], 0.1, 1e-6);
}

TEST_P(TensorExchangeTest, JobAndVocabulariesComeBesideTheTensors) {
  Train("before", 2);
  ASSERT_EQ(Export("before").end.code(), 0);
  const std::string output = Path(GetParam().output);
  std::ifstream vocabulary(output + ".vocabulary.pair.item.txt");
  std::string values;
  std::getline(vocabulary, values, '\0');
  EXPECT_EQ(values, "0\n1\n2\n3\n");
  // The job that lies beside is the default.
  const CompletedProcess imported =
      RunTool({"import", output, "--checkpoint_dir=" + Path("after")});
  EXPECT_EQ(imported.end.code(), 0) << imported.standard_error;
}

TEST_P(TensorExchangeTest, DirectoryWithCheckpointsIsNotImportedInto) {
  Train("before", 2);
  ASSERT_EQ(Export("before").end.code(), 0);
  const CompletedProcess imported = Import("before");
  EXPECT_EQ(imported.end.code(), 2);
  EXPECT_THAT(imported.standard_error,
              AllOf(HasSubstr("--checkpoint_dir="), HasSubstr("checkpoints")));
  EXPECT_EQ(RunTool({"checkpoint", "show", Path("before")}).end.code(), 0);
  Train("before", 4);
}

// Peak memory in MiB of this process's children so far. A child counts what
// this process has in memory when it starts it.
int64_t PeakOfChildren() {
  rusage usage = {};
  getrusage(RUSAGE_CHILDREN, &usage);
  return usage.ru_maxrss >> 10;
}

// A variable of 96 MiB with slots, or less as text, and a table.
void WriteLargeModel(const std::string& directory, bool is_text) {
  ModelCheckpoint model;
  model.shape = {is_text ? 1 << 18 : 6 << 20, 4};
  model.kernel.assign(model.shape[0] * 4, 0.5f);
  model.m = model.v = model.kernel;
  for (uint64_t id = 0; id < 50'000; ++id) model.users[id] = {1, 2, 3, 4, 5, 6};
  ASSERT_OK(model.Write(directory));
}

TEST_P(TensorExchangeTest, MemoryDoesNotGrowWithTheModel) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer keeps up to 256 MiB of freed memory";
#endif
  ASSERT_OK(ModelCheckpoint().Write(Path("small")));
  ASSERT_EQ(Export("small").end.code(), 0);
  const int64_t small = PeakOfChildren();
  fs::remove_all(Path(GetParam().output));
  WriteLargeModel(Path("large"), GetParam().name == "csv");
  ASSERT_EQ(Export("large").end.code(), 0);
  EXPECT_LT(PeakOfChildren(), small + 48);
}

INSTANTIATE_TEST_SUITE_P(
    All, TensorExchangeTest,
    ::testing::Values(Format{"safetensors", "model.safetensors"},
                      Format{"npz", "model.npz"}, Format{"tensorflow", "ckpt"},
                      Format{"csv", "csv"}),
    [](const ::testing::TestParamInfo<Format>& format) {
      return format.param.name;
    });

class ExchangeFaultsTest : public TrainedJobFixture {};

TEST_F(ExchangeFaultsTest, AnIdThatIsThereTwiceIsNamed) {
  Train("before", 5);
  const std::string csv = Path("csv");
  ASSERT_EQ(
      RunTool({"export", Path("before"), "--format=csv", "--output=" + csv})
          .end.code(),
      0);
  for (const auto& entry : fs::directory_iterator(csv)) {
    if (!absl::EndsWith(entry.path().string(), "rows_ids.csv")) continue;
    std::ifstream file(entry.path());
    std::string first, rest;
    std::getline(file, first, ',');
    std::getline(file, rest, ',');
    std::getline(file, rest, '\0');
    std::ofstream(entry.path()) << first << "," << first << "," << rest;
  }
  const CompletedProcess imported =
      RunTool({"import", csv, "--job=" + Path("job.textproto"),
               "--set=end.steps=9", "--checkpoint_dir=" + Path("after")});
  EXPECT_EQ(imported.end.code(), 1);
  EXPECT_THAT(imported.standard_error, HasSubstr("of table rows twice"));
}

TEST_F(ExchangeFaultsTest, StepsAndUpdatesThatContradictAreRefused) {
  Train("before", 5);
  const auto export_to = [&](const std::string& output,
                             const std::string& slots) {
    const CompletedProcess run =
        RunTool({"export", Path("before"), "--format=npz", slots,
                 "--output=" + Path(output)});
    EXPECT_EQ(run.end.code(), 0) << run.standard_error;
  };
  export_to("all.npz", "--slots");
  export_to("values.npz", "--noslots");
  const auto import_to = [&](const std::string& tensors,
                             const std::string& directory,
                             const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {
        "import", Path(tensors), "--job=" + Path("job.textproto"),
        "--set=end.steps=9", "--checkpoint_dir=" + Path(directory)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunTool(arguments);
  };
  const std::string synchronous = "--set=parameter_server.synchronous={}";
  const CompletedProcess refused =
      import_to("all.npz", "refused", {synchronous, "--step=2"});
  EXPECT_EQ(refused.end.code(), 2);
  EXPECT_THAT(refused.standard_error,
              HasSubstr("step 2 after 5 updates: in synchronous training"));
  EXPECT_FALSE(fs::exists(Path("refused")));
  EXPECT_EQ(import_to("all.npz", "same", {synchronous}).end.code(), 0);
  EXPECT_EQ(import_to("all.npz", "async", {"--step=2"}).end.code(), 0);
  // New slots have had no updates, whatever the step.
  EXPECT_EQ(import_to("values.npz", "fresh", {}).end.code(), 0);
  const auto fresh = nlohmann::json::parse(
      RunTool({"checkpoint", "show", "--json", Path("fresh")}).standard_output);
  EXPECT_EQ(fresh["global_step"], 5);
  EXPECT_EQ(fresh["variables"][0]["updates"], 0);
}

TEST_F(ExchangeFaultsTest, TwoVocabulariesOfOneFileAreRefused) {
  std::ifstream file(Path("job.textproto"));
  std::string job;
  std::getline(file, job, '\0');
  job.insert(job.find("column { name: \"item\""),
             "column { name: \"item\" vocabulary { value: \"4\" } } ");
  std::ofstream(Path("job.textproto")) << job;
  Train("before", 1);
  const CompletedProcess exported = RunTool(
      {"export", Path("before"), "--format=npz", "--output=" + Path("npz")});
  EXPECT_EQ(exported.end.code(), 2);
  EXPECT_THAT(exported.standard_error,
              AllOf(HasSubstr("npz.vocabulary.pair.item.txt: two vocabularies"),
                    HasSubstr("another name")));
}

constexpr char kKerasJob[] = R"(
  model {
    input_shape: [4]
    layer { name: "hidden" dense { units: 3 activation: RELU } }
    layer { name: "logits" dense { units: 2 } }
    loss { sparse_categorical_crossentropy {} }
  }
  train { libsvm { file: "none" } batch_size: 4 }
  optimizer { adam { learning_rate: 0.01 } }
  end { steps: 10 }
)";

// What real Keras has saved, with optimizers of both kinds.
TEST(KerasImportTest, CheckpointsHaveTheValuesThatKerasHad) {
  const std::string directory = EmptyTestDirectory();
  std::ofstream(directory + "/job.textproto") << kKerasJob;
  for (const std::string name : {"keras_legacy", "keras_new", "keras_3"}) {
    const std::string imported = directory + "/" + name;
    const std::string values = directory + "/values_" + name;
    for (const auto& [from, to] :
         {std::pair(kTestData + name, imported),
          std::pair(absl::StrCat(kTestData, name, ".npz"), values)}) {
      const CompletedProcess run =
          RunTool({"import", from, "--job=" + directory + "/job.textproto",
                   "--step=3", "--checkpoint_dir=" + to});
      ASSERT_EQ(run.end.code(), 0) << run.standard_error;
    }
    // Numbers of steps, which the values lack, do not count.
    EXPECT_EQ(RunTool({"diff", imported, values}).end.code(), 0);
    const auto inspected = nlohmann::json::parse(
        RunTool({"checkpoint", "show", "--json", imported}).standard_output);
    EXPECT_EQ(inspected["global_step"], 3);
    EXPECT_EQ(inspected["variables"][0]["updates"], 3);
  }
}

TEST(KerasImportTest, OtherModelsAreRefusedByName) {
  const std::string directory = EmptyTestDirectory();
  std::string job = kKerasJob;
  job.replace(job.find("units: 3"), 8, "units: 7");
  std::ofstream(directory + "/job.textproto") << job;
  const CompletedProcess run =
      RunTool({"import", absl::StrCat(kTestData, "keras_legacy"),
               "--job=" + directory + "/job.textproto",
               "--checkpoint_dir=" + directory + "/ckpt"});
  EXPECT_EQ(run.end.code(), 2);
  EXPECT_THAT(run.standard_error,
              HasSubstr("hidden/kernel is float32 [4, 3], the job's is float32 "
                        "[4, 7]"));
  EXPECT_FALSE(fs::exists(directory + "/ckpt"));
}

}  // namespace
}  // namespace parasol
