// What a worker without a cluster does by the evaluations of its checkpoints.

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/status_matchers.h"
#include "cluster/checkpoint/evaluation_log.h"
#include "cluster/job/defaults.h"
#include "cluster/job/job_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/model/graph.h"
#include "storage/checkpoint_reader.h"
#include "storage/checkpoint_store.h"
#include "storage/durable_file.h"
#include "storage/event_histogram.h"
#include "worker/lone_training.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LoneDecisionsTest : public testing::Test {
 protected:
  LoneDecisionsTest()
      : root_(absl::StrCat(
            testing::TempDir(), "/",
            testing::UnitTest::GetInstance()->current_test_info()->name())),
        store_(root_ + "/checkpoints") {
    fs::remove_all(root_);
    fs::create_directories(root_);
    std::ofstream(root_ + "/data.csv") << "x,y\n1,2\n2,4\n3,6\n4,8\n";
  }

  // A job of 200 steps with a checkpoint at every tenth.
  job::Job JobWith(const std::string& fields) const {
    job::Job job = *ParseJob(R"(
      name: "line"
      model {
        input { name: "x" dense { column { name: "x" } } }
        layer { name: "hidden" dense { units: 3 } }
        layer { name: "y" dense { units: 1 } }
        loss { mean_squared_error {} }
      }
      train { csv { file: "data.csv" label { column: "y" } } batch_size: 2 }
      eval { csv { file: "data.csv" label { column: "y" } } batch_size: 4 }
      checkpoint { every_steps: 10 }
    )",
                             "job");
    job.mutable_checkpoint()->set_directory(store_.directory());
    const auto more = ParseJob(fields, "more");
    EXPECT_OK(more);
    job.MergeFrom(*more);
    FillDefaults(job);
    return job;
  }

  absl::Status Train(const job::Job& job) {
    SimulatedClock clock;
    MetricsRegistry metrics;
    LoneTraining training({.trainer = {.job = job,
                                       .graph = *ResolveGraph(job.model()),
                                       .replicas = {.devices = {"cpu"}},
                                       .data_dir = root_}},
                          clock, metrics);
    return training.Run();
  }

  // The steps of the lines of evaluations.jsonl.
  std::vector<int64_t> EvaluatedSteps() const {
    std::vector<int64_t> steps;
    const std::string run_id = store_.ReadManifest(Steps().back())->run_id();
    const auto evaluations = ReadEvaluations(store_.directory(), run_id);
    for (const Evaluation& evaluation : *evaluations) {
      steps.push_back(evaluation.global_step);
    }
    return steps;
  }
  std::vector<int64_t> Steps() const { return *store_.ListSteps(); }

  // All elements of the model's first kernel, and its slots.
  std::vector<float> Values(int64_t step) const {
    const auto checkpoint = CheckpointReader::Open(store_.PathOf(step));
    std::vector<float> all;
    for (const int array : {0, 1, 2}) {
      std::vector<float> elements(3);
      EXPECT_OK((*checkpoint)
                    ->ReadElements("hidden/kernel", array, 0,
                                   absl::MakeSpan(elements)));
      all.insert(all.end(), elements.begin(), elements.end());
    }
    return all;
  }

  const std::string root_;
  const CheckpointStore store_;
};

// No loss improves by a million.
constexpr char kStopping[] =
    "optimizer { adam {} } checkpoint { max_to_keep: 100 } end { steps: 200 "
    "early_stopping { patience: 2 min_delta: 1e6 } }";

TEST_F(LoneDecisionsTest, EarlyStoppingEndsTheJobWithAFinalCheckpoint) {
  const job::Job job = JobWith(kStopping);
  ASSERT_OK(Train(job));
  EXPECT_THAT(Steps(), ElementsAre(0, 10, 20, 30));
  EXPECT_TRUE(store_.ReadManifest(30)->final());
  EXPECT_THAT(EvaluatedSteps(), ElementsAre(10, 20, 30));
  EXPECT_THAT(ReadFile(store_.directory() + "/training.jsonl", 10000),
              IsOkAndHolds(HasSubstr("{\"global_step\":30,\"epoch\":15.0,")));
  EXPECT_TRUE(IsDirectory(store_.directory() + "/tensorboard/train"));
  EXPECT_TRUE(IsDirectory(store_.directory() + "/tensorboard/eval"));
  // The job is complete.
  const int64_t made = store_.ReadManifest(30)->created_unix_micros();
  ASSERT_OK(Train(job));
  EXPECT_THAT(Steps(), ElementsAre(0, 10, 20, 30));
  EXPECT_EQ(store_.ReadManifest(30)->created_unix_micros(), made);
}

TEST_F(LoneDecisionsTest, EvaluationsHaveHistogramsIfTheJobWantsThem) {
  for (const bool wanted : {false, true}) {
    SCOPED_TRACE(wanted);
    fs::remove_all(store_.directory());
    job::Job job = JobWith(kStopping);
    job.set_tensorboard_histograms(wanted);
    ASSERT_OK(Train(job));
    const std::string directory = store_.directory() + "/tensorboard/eval";
    ASSERT_OK_AND_ASSIGN(const std::vector<std::string> names,
                         ListDirectory(directory));
    ASSERT_EQ(names.size(), 1u);
    ASSERT_OK_AND_ASSIGN(const std::string events,
                         ReadFile(directory + "/" + names[0], 100000));
    for (const int64_t step : {10, 20, 30}) {
      std::vector<float> kernel = Values(step);
      kernel.resize(3);  // without slots
      EXPECT_EQ(absl::StrContains(events, HistogramBytes(HistogramOf(kernel))),
                wanted)
          << step;
    }
    EXPECT_EQ(absl::StrContains(events, "hidden/kernel"), wanted);
  }
}

TEST_F(LoneDecisionsTest, EvaluationsBeforeARestartCount) {
  job::Job job = JobWith(kStopping);
  job.mutable_end()->set_steps(20);
  ASSERT_OK(Train(job));
  job.mutable_end()->set_steps(200);
  ASSERT_OK(Train(job));
  EXPECT_EQ(Steps().back(), 30);
  EXPECT_TRUE(store_.ReadManifest(30)->final());
}

TEST_F(LoneDecisionsTest, EvaluationsOfAnotherRunDoNotCount) {
  const job::Job job = JobWith(kStopping);
  ASSERT_OK(Train(job));
  for (const int64_t step : Steps()) fs::remove_all(store_.PathOf(step));
  ASSERT_OK(Train(job));
  EXPECT_EQ(Steps().back(), 30);
}

// The second process goes back behind the checkpoint of step 20, and has none
// of that step itself; the third one goes on from it.
TEST_F(LoneDecisionsTest, EvaluationsOfAnAbandonedCheckpointDoNotCount) {
  job::Job job = JobWith(kStopping);
  job.mutable_end()->set_steps(20);
  ASSERT_OK(Train(job));
  for (const auto& file : fs::directory_iterator(store_.PathOf(20))) {
    if (file.path().extension() == ".sst") fs::resize_file(file.path(), 10);
  }
  job.mutable_checkpoint()->set_every_steps(1000);
  job.mutable_end()->set_steps(25);
  ASSERT_OK(Train(job));
  ASSERT_EQ(Steps().back(), 25);
  EXPECT_EQ(store_.ReadManifest(25)->earlier_owner_size(), 1);
  EXPECT_EQ(store_.ReadManifest(25)->earlier_owner(0).last_step(), 10);
  EXPECT_THAT(EvaluatedSteps(), ElementsAre(10, 20, 25));
  // With the evaluation of step 20 the job would end at 25: two evaluations
  // without an improvement.
  job.mutable_checkpoint()->set_every_steps(10);
  job.mutable_end()->set_steps(200);
  ASSERT_OK(Train(job));
  ASSERT_EQ(Steps().back(), 30);
  EXPECT_TRUE(store_.ReadManifest(30)->final());
}

TEST_F(LoneDecisionsTest, TheBestCheckpointIsKeptAndNamed) {
  // The first one has the largest loss.
  ASSERT_OK(
      Train(JobWith("optimizer { sgd {} } end { steps: 60 } checkpoint { "
                    "max_to_keep: 2 keep_best { mode: MAX } }")));
  EXPECT_THAT(Steps(), ElementsAre(10, 50, 60));
  const auto best = ReadFile(store_.directory() + "/BEST", 1000);
  EXPECT_THAT(best, IsOkAndHolds(HasSubstr(
                        "{\"checkpoint\":\"ckpt-000000000010\","
                        "\"global_step\":10,\"metric\":\"loss\",\"value\":")));
}

TEST_F(LoneDecisionsTest, EvaluationsHaveTimesOfTheirOwn) {
  const std::string rest =
      "optimizer { adam {} } end { steps: 40 } checkpoint { max_to_keep: 100 }";
  job::Job job = JobWith(absl::StrCat(rest, "evaluation { every_steps: 15 }"));
  ASSERT_OK(Train(job));
  EXPECT_THAT(EvaluatedSteps(), ElementsAre(15, 30, 40));
  EXPECT_THAT(Steps(), ElementsAre(0, 10, 15, 20, 30, 40));
  EXPECT_TRUE(store_.ReadManifest(15)->evaluation_due());
  EXPECT_FALSE(store_.ReadManifest(20)->evaluation_due());
  // Nothing of an evaluation is in what is trained.
  const std::vector<float> values = Values(40);
  fs::remove_all(store_.directory());
  job.clear_evaluation();
  ASSERT_OK(Train(job));
  EXPECT_THAT(EvaluatedSteps(), ElementsAre(40));
  EXPECT_EQ(Values(40), values);
}

// As if the process had been killed after a checkpoint, and before the result
// of its evaluation.
TEST_F(LoneDecisionsTest, AResumedRunEvaluatesWhatTheOneBeforeLeft) {
  for (const std::string fields :
       {"checkpoint { max_to_keep: 100 } evaluation { every_steps: 10 max_lag: "
        "0 }",
        "checkpoint { max_to_keep: 100 } evaluation { every_steps: 10 max_lag: "
        "2 }",
        "checkpoint { max_to_keep: 100 keep_best {} }"}) {
    SCOPED_TRACE(fields);
    fs::remove_all(store_.directory());
    const job::Job job = JobWith(
        absl::StrCat("optimizer { adam {} } end { steps: 40 } ", fields));
    ASSERT_OK(Train(job));
    ASSERT_THAT(EvaluatedSteps(), ElementsAre(10, 20, 30, 40));
    for (const int64_t step : {30, 40}) fs::remove_all(store_.PathOf(step));
    const std::string log = store_.directory() + "/evaluations.jsonl";
    ASSERT_OK_AND_ASSIGN(const std::string lines, ReadFile(log, 10000));
    std::ofstream(log) << lines.substr(0, lines.find('\n') + 1);
    ASSERT_THAT(EvaluatedSteps(), ElementsAre(10));
    ASSERT_OK(Train(job));
    EXPECT_THAT(EvaluatedSteps(), ElementsAre(10, 20, 30, 40));
  }
}

TEST_F(LoneDecisionsTest, TheRateIsReducedWhereTheCheckpointIs) {
  job::Job job = JobWith(
      "end { steps: 40 } checkpoint { max_to_keep: 100 } optimizer { "
      "adam { learning_rate: .01 } reduce_on_plateau { "
      "factor: .5 patience: 1 min_delta: 1e6 min_rate: .003 } }");
  ASSERT_OK(Train(job));
  EXPECT_EQ(store_.ReadManifest(20)->reduced_learning_rate(), 0);
  EXPECT_EQ(store_.ReadManifest(30)->reduced_learning_rate(), .005);
  EXPECT_EQ(store_.ReadManifest(40)->reduced_learning_rate(), .003);
  const std::vector<float> values = Values(40);
  fs::remove_all(store_.directory());
  job.mutable_optimizer()->clear_reduce_on_plateau();
  for (const auto& [end, rate] :
       {std::pair(20, .01), std::pair(30, .005), std::pair(40, .003)}) {
    job.mutable_end()->set_steps(end);
    job.mutable_optimizer()->mutable_adam()->set_learning_rate(rate);
    ASSERT_OK(Train(job));
  }
  EXPECT_EQ(Values(40), values);
}

TEST_F(LoneDecisionsTest, AReducedRateSurvivesARestart) {
  job::Job job = JobWith(
      "end { steps: 40 } checkpoint { max_to_keep: 100 } optimizer { "
      "adam { learning_rate: .01 } reduce_on_plateau { "
      "factor: .5 patience: 1 min_delta: 1e6 min_rate: .003 } }");
  ASSERT_OK(Train(job));
  const std::vector<float> values = Values(40);
  fs::remove_all(store_.directory());
  job.mutable_end()->set_steps(30);
  ASSERT_OK(Train(job));
  job.mutable_end()->set_steps(40);
  ASSERT_OK(Train(job));
  EXPECT_EQ(Values(40), values);
}

}  // namespace
}  // namespace parasol
