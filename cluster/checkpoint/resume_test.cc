#include "cluster/checkpoint/resume.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

durable::CheckpointVariable Variable(const std::string& name,
                                     std::vector<int64_t> shape,
                                     std::vector<std::string> slots) {
  durable::CheckpointVariable variable;
  variable.set_name(name);
  for (int64_t size : shape) variable.add_shape(size);
  for (const std::string& slot : slots) variable.add_slot(slot);
  return variable;
}

job::Job AdamJob() {
  job::Job job;
  job.mutable_optimizer()->mutable_adam()->set_learning_rate(0.001);
  job.mutable_end()->set_epochs(1);
  job.mutable_train()->set_batch_size(64);
  return job;
}

durable::CheckpointManifest AdamCheckpoint() {
  durable::CheckpointManifest manifest;
  manifest.set_global_step(100);
  *manifest.mutable_job() = AdamJob();
  *manifest.add_variable() = Variable("kernel", {2, 3}, {"m", "v"});
  *manifest.add_variable() = Variable("bias", {3}, {"m", "v"});
  manifest.add_file();
  manifest.add_file();
  manifest.set_final(true);
  return manifest;
}

std::vector<durable::CheckpointVariable> AdamVariables() {
  return {Variable("kernel", {2, 3}, {"m", "v"}),
          Variable("bias", {3}, {"m", "v"})};
}

TEST(Resume, TheSameModelIsResumableWithAnotherLearningRateAndEnd) {
  job::Job job = AdamJob();
  job.mutable_optimizer()->mutable_adam()->set_learning_rate(0.5);
  job.mutable_end()->set_steps(1000);
  EXPECT_OK(CheckResumable(AdamCheckpoint(), job, {AdamVariables(), {}}));
}

// Steps are counted exactly as float64, too, and nothing may overflow.
TEST(Resume, AStepThatNoJobReachesIsRefused) {
  const auto resumed = [](int64_t step) {
    durable::CheckpointManifest checkpoint = AdamCheckpoint();
    checkpoint.set_global_step(step);
    return CheckResumable(checkpoint, AdamJob(), {AdamVariables(), {}});
  };
  EXPECT_OK(resumed((int64_t{1} << 53) - 1));
  for (const int64_t step : {int64_t{-1}, int64_t{1} << 53, INT64_MAX}) {
    EXPECT_THAT(
        resumed(step),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 AllOf(HasSubstr(absl::StrCat("is of step ", step, ", and ")),
                       HasSubstr("below 2^53"))));
  }
}

// A step is an exchange in one of them alone.
TEST(Resume, LocalStepsNeitherBeginNorEnd) {
  job::Job local = AdamJob();
  local.mutable_parameter_server()->mutable_local_steps()->set_steps(10);
  EXPECT_THAT(CheckResumable(AdamCheckpoint(), local, {AdamVariables(), {}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("without parameter_server.local_steps"),
                             HasSubstr("warm_start"))));
  durable::CheckpointManifest checkpoint = AdamCheckpoint();
  *checkpoint.mutable_job() = local;
  EXPECT_THAT(CheckResumable(checkpoint, AdamJob(), {AdamVariables(), {}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("with parameter_server.local_steps")));
  EXPECT_OK(CheckResumable(checkpoint, local, {AdamVariables(), {}}));
}

// As any other change of an optimizer.
TEST(Resume, ATableWithASlotForEachElementIsNoneWithASlotForEachRow) {
  const auto contents_of = [](const char* slot) {
    CheckpointContents contents = {.variables = AdamVariables()};
    durable::CheckpointTable& table = contents.tables.emplace_back();
    table.set_name("users");
    table.set_width(4);
    table.add_slot(slot);
    if (std::string(slot) == "row_accumulator") table.add_slot_width(1);
    return contents;
  };
  for (const auto& [was, is] : {std::pair("accumulator", "row_accumulator"),
                                std::pair("row_accumulator", "accumulator")}) {
    durable::CheckpointManifest checkpoint = AdamCheckpoint();
    *checkpoint.add_table() = contents_of(was).tables[0];
    EXPECT_OK(CheckResumable(checkpoint, AdamJob(), contents_of(was)));
    EXPECT_THAT(
        CheckResumable(checkpoint, AdamJob(), contents_of(is)),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr(absl::StrCat("the checkpoint has slots ", was,
                                        ", the job has slots ", is))));
  }
}

TEST(Resume, AnotherModelIsRefusedByItsFirstDifference) {
  job::Job sgd;
  sgd.mutable_optimizer()->mutable_sgd();
  EXPECT_THAT(
      CheckResumable(AdamCheckpoint(), sgd, {AdamVariables(), {}}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("optimizer adam"), HasSubstr("optimizer sgd"))));
  EXPECT_THAT(
      CheckResumable(AdamCheckpoint(), AdamJob(),
                     {.variables = {Variable("kernel", {2, 4}, {"m", "v"}),
                                    Variable("bias", {3}, {"m", "v"})}}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("kernel [2, 3]"), HasSubstr("kernel [2, 4]"))));
  EXPECT_THAT(CheckResumable(AdamCheckpoint(), AdamJob(), {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("2 variables, the job has 0")));
  EXPECT_THAT(CheckResumable(
                  AdamCheckpoint(), AdamJob(),
                  {.variables = {Variable("kernel", {2, 3}, {"m", "v", "vhat"}),
                                 Variable("bias", {3}, {"m", "v", "vhat"})}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("slots m, v, vhat")));
}

// Their slots have the same names, and another meaning.
TEST(Resume, AnotherCustomOptimizerIsRefused) {
  durable::CheckpointManifest checkpoint = AdamCheckpoint();
  job::Job job = AdamJob();
  checkpoint.mutable_job()->mutable_optimizer()->mutable_custom()->set_type(
      "yogi");
  job.mutable_optimizer()->mutable_custom()->set_type("yogi");
  EXPECT_OK(CheckResumable(checkpoint, job, {AdamVariables(), {}}));
  job.mutable_optimizer()->mutable_custom()->set_type("adabelief");
  EXPECT_THAT(CheckResumable(checkpoint, job, {AdamVariables(), {}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("custom \"yogi\""),
                             HasSubstr("custom \"adabelief\""))));
}

// Adam's and AdamW's slots have the same names.
TEST(Resume, AnotherOptimizerOfALayerIsRefused) {
  durable::CheckpointManifest checkpoint = AdamCheckpoint();
  checkpoint.mutable_variable(0)->set_name("deep/kernel");
  checkpoint.mutable_variable(1)->set_name("deep/wide/bias");
  job::Job job = AdamJob();
  job.mutable_model()->add_layer()->set_name("deep");
  job::Layer& wide = *job.mutable_model()->add_layer();
  wide.set_name("deep/wide");
  wide.mutable_optimizer()->mutable_adamw();
  *checkpoint.mutable_job() = job;
  const CheckpointContents contents = {
      .variables = {Variable("deep/kernel", {2, 3}, {"m", "v"}),
                    Variable("deep/wide/bias", {3}, {"m", "v"})}};
  EXPECT_OK(CheckResumable(checkpoint, job, contents));
  wide.mutable_optimizer()->mutable_adamw()->set_learning_rate(1);
  EXPECT_OK(CheckResumable(checkpoint, job, contents));
  wide.clear_optimizer();
  EXPECT_THAT(
      CheckResumable(checkpoint, job, contents),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("the checkpoint has optimizer adamw for "
                         "deep/wide/bias, the job has optimizer adam")));
}

TEST(Resume, ACheckpointWithoutAnOptimizerIsRefused) {
  durable::CheckpointManifest checkpoint = AdamCheckpoint();
  checkpoint.clear_job();
  EXPECT_THAT(
      CheckResumable(checkpoint, AdamJob(), {AdamVariables(), {}}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("has no optimizer, the job has optimizer adam")));
}

TEST(Resume, IsCompleteAfterTheFinalCheckpointOfTheSameEnd) {
  struct Case {
    std::string name;
    std::function<void(durable::CheckpointManifest&, job::Job&)> change;
    bool want;
  };
  const Case cases[] = {
      {"the same job", [](auto&, auto&) {}, true},
      {"not final", [](auto& m, auto&) { m.set_final(false); }, false},
      {"more epochs", [](auto&, auto& j) { j.mutable_end()->set_epochs(2); },
       false},
      {"smaller batches",
       [](auto&, auto& j) { j.mutable_train()->set_batch_size(32); }, false},
      {"fewer steps than done",
       [](auto&, auto& j) { j.mutable_end()->set_steps(99); }, true},
      {"more steps", [](auto&, auto& j) { j.mutable_end()->set_steps(101); },
       false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    durable::CheckpointManifest manifest = AdamCheckpoint();
    job::Job job = AdamJob();
    c.change(manifest, job);
    EXPECT_EQ(IsComplete(manifest, job), c.want);
  }
}

TEST(Resume, ATableOfAnotherWidthOrOptimizerIsNamed) {
  durable::CheckpointManifest checkpoint = AdamCheckpoint();
  durable::CheckpointTable& was = *checkpoint.add_table();
  was.set_name("users");
  was.set_width(16);
  was.add_slot("accumulator");
  durable::CheckpointTable is = was;
  EXPECT_OK(CheckResumable(checkpoint, AdamJob(), {AdamVariables(), {is}}));
  is.set_width(8);
  EXPECT_THAT(CheckResumable(checkpoint, AdamJob(), {AdamVariables(), {is}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("users of width 16, the job has users of "
                                 "width 8")));
  is.set_width(16);
  is.clear_slot();
  EXPECT_THAT(CheckResumable(checkpoint, AdamJob(), {AdamVariables(), {is}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("slots accumulator")));
  EXPECT_THAT(CheckResumable(checkpoint, AdamJob(), {AdamVariables(), {}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("1 sparse tables")));
}

class FindCheckpointTest : public testing::Test {
 protected:
  FindCheckpointTest() { std::filesystem::remove_all(directory_); }

  CheckpointStore Store() {
    auto store = CheckpointStore::OpenForWriting(directory_);
    EXPECT_OK(store);
    return *std::move(store);
  }

  // Commits a checkpoint whose only file has `values`.
  void Commit(CheckpointStore& store, int64_t step, const std::string& values) {
    durable::CheckpointManifest manifest = AdamCheckpoint();
    manifest.set_global_step(step);
    manifest.set_run_id("run");
    manifest.clear_file();
    durable::CheckpointFile& file = *manifest.add_file();
    file.set_name("shard");
    file.set_bytes(values.size());
    file.set_crc32c(Crc32cOf("values"));
    ASSERT_OK_AND_ASSIGN(const std::string working, store.Begin(step));
    std::ofstream(working + "/shard") << values;
    ASSERT_OK(store.Commit(working, manifest));
  }

  const std::string directory_ = testing::TempDir() + "/find_checkpoint_test";
};

TEST_F(FindCheckpointTest, AnEmptyDirectoryHasNone) {
  ASSERT_OK_AND_ASSIGN(auto found, FindCheckpoint(Store()));
  EXPECT_FALSE(found.has_value());
}

TEST_F(FindCheckpointTest, ARunGoesOnWithItsNewestCheckpoint) {
  CheckpointStore store = Store();
  ASSERT_OK_AND_ASSIGN(const ResumedRun first,
                       ResumeRun(store, AdamJob(), {AdamVariables(), {}}));
  EXPECT_FALSE(first.checkpoint.has_value());
  EXPECT_FALSE(first.is_complete);
  durable::CheckpointManifest manifest = AdamCheckpoint();
  manifest.clear_file();
  manifest.set_run_id(first.run_id);
  ASSERT_OK_AND_ASSIGN(const std::string working, store.Begin(100));
  ASSERT_OK(store.Commit(working, manifest));

  ASSERT_OK_AND_ASSIGN(const ResumedRun second,
                       ResumeRun(store, AdamJob(), {AdamVariables(), {}}));
  EXPECT_EQ(second.run_id, first.run_id);
  EXPECT_EQ(second.checkpoint->global_step(), 100);
  EXPECT_TRUE(second.is_complete);
  EXPECT_THAT(ResumeRun(store, AdamJob(), {}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(store.PathOf(100))));
}

// All shards are to go on from one step.
TEST_F(FindCheckpointTest, ARunGoesOnWithItsNewestIntactCheckpoint) {
  CheckpointStore store = Store();
  Commit(store, 100, "values");
  Commit(store, 200, "valuEs");
  Commit(store, 300, "Values");
  ASSERT_OK_AND_ASSIGN(
      const ResumedRun run,
      ResumeIntactRun(store, AdamJob(), {AdamVariables(), {}}));
  EXPECT_EQ(run.run_id, "run");
  EXPECT_EQ(run.checkpoint->global_step(), 100);
  EXPECT_THAT(run.damaged, ElementsAre(200, 300));
}

TEST_F(FindCheckpointTest, AVerificationNamesWhatItReadsAndCanBeEnded) {
  CheckpointStore store = Store();
  Commit(store, 100, "values");
  std::string reads;
  const Verification verification = {
      .on_begin = [&](const std::string& path) { reads = path; },
      .cancelled = [&] { return !reads.empty(); }};
  EXPECT_THAT(
      ResumeIntactRun(store, AdamJob(), {AdamVariables(), {}}, verification)
          .status(),
      StatusIs(absl::StatusCode::kCancelled, HasSubstr(store.PathOf(100))));
  EXPECT_EQ(reads, store.PathOf(100));
}

TEST_F(FindCheckpointTest, WithoutAnIntactCheckpointNoNewRunStarts) {
  CheckpointStore store = Store();
  Commit(store, 100, "valuEs");
  EXPECT_THAT(ResumeIntactRun(store, AdamJob(), {AdamVariables(), {}}).status(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr(directory_)));
}

TEST_F(FindCheckpointTest, DamagedCheckpointsAloneStartNoNewRun) {
  CheckpointStore store = Store();
  ASSERT_OK_AND_ASSIGN(std::string working, store.Begin(5));
  durable::CheckpointManifest manifest;
  manifest.set_global_step(5);
  ASSERT_OK(store.Commit(working, manifest));
  for (const auto& file :
       std::filesystem::directory_iterator(store.PathOf(5))) {
    std::ofstream(file.path(), std::ios::app) << "rot";
  }
  EXPECT_THAT(FindCheckpoint(store),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr(directory_)));
}

}  // namespace
}  // namespace parasol
