#include "loop/training.h"

#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/status_matchers.h"
#include "cluster/rpc/proto_duration.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loop/peers/lone_peers.h"
#include "loop/peers/program_status.h"
#include "loop/variable.h"
#include "worker/shown/lone_status.h"

namespace parasol::loop {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class TrainingTest : public testing::Test {
 protected:
  TrainingTest()
      : directory_(absl::StrCat(
            testing::TempDir(), "/training_",
            testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(directory_);
    ProgramSettings settings;
    settings.checkpoint_directory = directory_;
    settings.summary.set_every_steps(4);
    settings.metrics = &metrics_;
    settings.status = &status_;
    auto made = Strategy::WithPeers(
        {"cpu:0"}, {}, std::make_unique<LonePeers>(1, settings, clock_));
    EXPECT_OK(made.status());
    strategy_ = *std::move(made);
    const Strategy::Scope scope(*strategy_);
    EXPECT_OK(Variable::Create("x", Zeros({1})).status());
  }

  std::string Lines() const {
    std::ifstream file(directory_ + "/training.jsonl");
    std::stringstream lines;
    lines << file.rdbuf();
    return lines.str();
  }

  const std::string directory_;
  SimulatedClock clock_;
  MetricsRegistry metrics_;
  ProgramStatus status_{clock_};
  std::unique_ptr<Strategy> strategy_;
};

TEST_F(TrainingTest, RecordedValuesAreInTheRecordAndTheMetrics) {
  Training training(*strategy_, {.iterations = 8});
  while (training.Next()) {
    const auto i = static_cast<double>(training.iteration());
    training.Report(10, .5);
    training.Record("reward", i);
    if (training.iteration() == 5) training.Record("best/reward", 9);
  }
  EXPECT_OK(training.status());
  ASSERT_OK(strategy_->End(training.status()));
  EXPECT_THAT(Lines(), AllOf(HasSubstr(R"("global_step":4,)"),
                             HasSubstr(R"("loss":0.5,"reward":1.5,)"),
                             HasSubstr(R"("loss":0.5,"best/reward":9.0,)"
                                       R"("reward":5.5,)")));
  EXPECT_THAT(
      metrics_.Text(),
      AllOf(
          HasSubstr("parasol_worker_recorded_value{name=\"reward\"} 7"),
          HasSubstr("parasol_worker_recorded_value{name=\"best/reward\"} 9")));
}

TEST_F(TrainingTest, ANameThatCantBeRecordedEndsTheTraining) {
  Training training(*strategy_, {.iterations = 8});
  ASSERT_TRUE(training.Next());
  training.Record("loss", 1);
  EXPECT_FALSE(training.Next());
  EXPECT_THAT(training.status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("Record(): \"loss\" is recorded anyway")));
}

TEST_F(TrainingTest, TooManyNamesEndTheTraining) {
  Training training(*strategy_, {.iterations = 8});
  ASSERT_TRUE(training.Next());
  for (int i = 0; i <= 100; ++i) training.Record(absl::StrCat("n", i), 1);
  EXPECT_FALSE(training.Next());
  EXPECT_THAT(training.status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("\"n100\": a program records values by 100 "
                                 "names at most")));
}

TEST_F(TrainingTest, TheStatusHasTheProgramsEnd) {
  EXPECT_EQ(status_.Status().phase(), wire::LOADING);
  EXPECT_THAT(status_.Status().trouble(), HasSubstr("have not met"));
  Training training(*strategy_, {.iterations = 8});
  ASSERT_TRUE(training.Next());
  EXPECT_EQ(status_.Status().end_step(), 0);
  ASSERT_TRUE(training.Next());
  ASSERT_TRUE(training.Next());
  const wire::JobStatus status = status_.Status();
  EXPECT_EQ(status.phase(), wire::TRAINING);
  EXPECT_EQ(status.global_step(), 2);
  EXPECT_EQ(status.end_step(), 8);
  while (training.Next()) {
  }
  ASSERT_OK(strategy_->End(training.status()));
  EXPECT_EQ(status_.Status().phase(), wire::COMPLETE);
  EXPECT_EQ(status_.Status().end_step(), 8);
  strategy_.reset();
  EXPECT_EQ(status_.Status().phase(), wire::LOADING);
}

TEST_F(TrainingTest, ThePartsOfItsIterationsAreShown) {
  Dataset examples = *Dataset::FromTensors({Zeros({4})});
  const DistributedDataset data = strategy_->DistributeDataset(
      examples.Repeat().Map([this](const Batch& batch) {
        clock_.Advance(absl::Milliseconds(600));
        return batch;
      }));
  auto batches = data.begin();
  Training training(*strategy_, {.iterations = 8});
  wire::JobStatus status;
  while (training.Next()) {
    status = status_.Status();
    ASSERT_OK(strategy_->Run(
        [this](ReplicaContext&, const Batch&) {
          clock_.Advance(absl::Milliseconds(300));
          return absl::OkStatus();
        },
        batches.Next()));
  }
  ASSERT_OK(training.status());
  ASSERT_EQ(status.task_size(), 1);
  EXPECT_EQ(status.task(0).task().role(), "worker");
  const wire::StepTimes& step = status.task(0).pace().step();
  EXPECT_EQ(FromProto(step.input()), absl::Milliseconds(600));
  EXPECT_EQ(FromProto(step.compute()), absl::Milliseconds(300));
  ASSERT_OK(strategy_->End(training.status()));
}

TEST_F(TrainingTest, AnIterationThatGoesOnForLongIsTheFirstFinding) {
  Training training(*strategy_, {.iterations = 8});
  ASSERT_TRUE(training.Next());
  clock_.Advance(absl::Seconds(7));
  EXPECT_THAT(status_.Status().finding(0).text(),
              HasSubstr("worker/0 has been computing one step for 7s"));
  ASSERT_TRUE(training.Next());
  EXPECT_THAT(status_.Status().finding(0).text(), Not(HasSubstr("has been")));
}

TEST_F(TrainingTest, ATraceHasItsIterations) {
  wire::InspectRequest request;
  wire::Inspection& asked = *request.mutable_inspection();
  asked.set_kind(wire::Inspection::TRACE);
  asked.set_number(1);
  asked.set_steps(2);
  *asked.mutable_limit() = ToProto(absl::Minutes(1));
  Training training(*strategy_, {.iterations = 8});
  ASSERT_TRUE(training.Next());
  LoneInspection& inspection = status_.shown().inspection();
  ASSERT_OK_AND_ASSIGN(wire::InspectResponse answer,
                       inspection.Inspect(request));
  EXPECT_EQ(answer.missing_task_size(), 1);
  for (int i = 0; i < 7; ++i) {
    clock_.Advance(absl::Seconds(1));
    ASSERT_TRUE(training.Next());
  }
  request.set_task("worker/0");
  ASSERT_OK_AND_ASSIGN(answer, inspection.Inspect(request));
  EXPECT_EQ(answer.missing_task_size(), 0);
  ASSERT_EQ(answer.task_size(), 1);
  std::map<std::string, int> names;
  for (const wire::TraceSpan& span : answer.task(0).part(0).span()) {
    ++names[span.name()];
  }
  EXPECT_GE(names["step"], 2);
  EXPECT_GE(names["compute"], 2);
}

TEST_F(TrainingTest, AProgramWithoutAnEndShowsNone) {
  Training training(*strategy_, {});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(training.Next());
  EXPECT_EQ(status_.Status().end_step(), 0);
  ASSERT_OK(strategy_->End(absl::OkStatus()));
  EXPECT_EQ(status_.Status().end_step(), 2);
}

}  // namespace
}  // namespace parasol::loop
