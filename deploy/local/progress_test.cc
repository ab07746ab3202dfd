#include "deploy/local/progress.h"

#include "gtest/gtest.h"

namespace parasol {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000);

wire::JobStatus Training() {
  wire::JobStatus status;
  status.set_phase(wire::TRAINING);
  status.set_global_step(1200);
  status.set_end_step(4000);
  return status;
}

TEST(ProgressLineTest, ShowsAllThatIsKnown) {
  wire::JobStatus status = Training();
  status.set_examples_per_second(12345.4);
  status.set_loss(0.23142);
  EXPECT_EQ(ProgressLine(
                &status,
                EvaluationLine{1000, {{"accuracy", 0.962}, {"auc", 0.9}}, 0.1},
                absl::Seconds(8)),
            "step 1,200/4,000 (30 %)  8 s left  accuracy 96.20 % at step "
            "1,000  loss 0.2314  12,345 examples/s");
}

TEST(ProgressLineTest, NamesSlowWorkersAndTasksThatAreNotThere) {
  wire::JobStatus status = Training();
  wire::TaskStatus& worker = *status.add_task();
  worker.mutable_task()->set_role("worker");
  worker.mutable_task()->set_index(1);
  worker.set_slow("not heard for 6s");
  status.add_absent_task()->set_task("worker/2");
  status.add_absent_task()->set_task("evaluator/0");
  EXPECT_EQ(ProgressLine(&status, std::nullopt, absl::Seconds(8)),
            "step 1,200/4,000 (30 %)  8 s left  slow: worker/1  without "
            "worker/2, evaluator/0");
}

TEST(ProgressLineTest, AnUntrainedModelIsNoResult) {
  const wire::JobStatus status = Training();
  EXPECT_EQ(
      ProgressLine(&status, EvaluationLine{0, {{"accuracy", 0.0895}}, 2.3},
                   std::nullopt),
      "step 1,200/4,000 (30 %)");
}

TEST(LastTrainingRateTest, IsThatOfTheLastWholeLine) {
  EXPECT_EQ(LastTrainingRate(""), std::nullopt);
  EXPECT_EQ(LastTrainingRate("{\"examples_per_second\":10}\n"
                             "{\"examples_per_second\":20.5}\n"
                             "{\"examples_per_sec"),
            20.5);
  EXPECT_EQ(LastTrainingRate("{\"examples_per_second\":\"x\"}\n"),
            std::nullopt);
  EXPECT_EQ(LastTrainingRate("[[[\n"), std::nullopt);
}

TEST(ProgressLineTest, LeavesOutWhatIsNot) {
  const wire::JobStatus status = Training();
  EXPECT_EQ(ProgressLine(&status, std::nullopt, std::nullopt),
            "step 1,200/4,000 (30 %)");
}

TEST(ProgressLineTest, NamesWhomTheClusterWaitsFor) {
  EXPECT_EQ(ProgressLine(nullptr, std::nullopt, std::nullopt), "starting");
  wire::JobStatus status;
  status.set_phase(wire::WAITING_FOR_PS);
  status.add_missing_task("ps/0");
  status.add_missing_task("ps/1");
  EXPECT_EQ(ProgressLine(&status, std::nullopt, std::nullopt),
            "starting, waiting for ps/0, ps/1");
}

TEST(ProgressLineTest, AMissingPsIsNamedInsteadOfTheTimeLeft) {
  wire::JobStatus status = Training();
  status.add_missing_task("ps/1");
  EXPECT_EQ(ProgressLine(&status, std::nullopt, absl::Minutes(206)),
            "step 1,200/4,000 (30 %)  waiting for ps/1");
}

TEST(ProgressLineTest, AnAwaitedWorkerIsNamedOnceNoStepIsDone) {
  wire::JobStatus status = Training();
  status.add_awaited_task("worker/1");
  EXPECT_EQ(ProgressLine(&status, std::nullopt, absl::Seconds(8)),
            "step 1,200/4,000 (30 %)  8 s left");
  EXPECT_EQ(ProgressLine(&status, std::nullopt, std::nullopt),
            "step 1,200/4,000 (30 %)  waiting for worker/1");
}

TEST(ProgressLineTest, ARunBeyondTheJobsEndShowsNoShare) {
  wire::JobStatus status = Training();
  status.set_phase(wire::FINISHING);
  status.set_global_step(600);
  status.set_end_step(100);
  EXPECT_EQ(ProgressLine(&status, std::nullopt, std::nullopt),
            "step 600, beyond the job's end at step 100  finishing");
}

TEST(ProgressLineTest, WhatKeepsTheLastCheckpointFromBeingWrittenIsNamed) {
  wire::JobStatus status = Training();
  status.set_phase(wire::FINISHING);
  status.set_global_step(4000);
  status.set_trouble("no checkpoint of step 4000 in 3 attempts: disk full");
  EXPECT_EQ(ProgressLine(&status, std::nullopt, std::nullopt),
            "step 4,000/4,000 (100 %)  finishing: no checkpoint of step 4000 "
            "in 3 attempts: disk full");
  status.set_phase(wire::LOADING);
  EXPECT_EQ(ProgressLine(&status, std::nullopt, std::nullopt),
            "loading the variables: no checkpoint of step 4000 in 3 attempts: "
            "disk full");
}

TEST(ProgressLineTest, ACheckpointThatFailsIsNamedInsteadOfTheTimeLeft) {
  wire::JobStatus status = Training();
  status.set_trouble("no checkpoint of step 1000 in 3 attempts: disk full");
  status.mutable_waited()->set_seconds(42);
  EXPECT_EQ(ProgressLine(&status, std::nullopt, absl::Seconds(601)),
            "step 1,200/4,000 (30 %)  no checkpoint of step 1000 in 3 "
            "attempts: disk full for 42 s");
}

TEST(ProgressLineTest, AWaitSaysForHowLong) {
  wire::JobStatus status = Training();
  status.add_awaited_task("worker/1");
  status.mutable_waited()->set_seconds(4);
  EXPECT_EQ(ProgressLine(&status, std::nullopt, std::nullopt),
            "step 1,200/4,000 (30 %)  waiting for worker/1");
  status.mutable_waited()->set_seconds(130);
  EXPECT_EQ(ProgressLine(&status, std::nullopt, std::nullopt),
            "step 1,200/4,000 (30 %)  waiting for worker/1 for 2 min");
  status.set_phase(wire::WAITING_FOR_PS);
  status.add_missing_task("ps/0");
  EXPECT_EQ(ProgressLine(&status, std::nullopt, std::nullopt),
            "starting, waiting for ps/0 for 2 min");
}

TEST(ProgressLineTest, SaysWhereTheJobGoesOnOrThatItIsComplete) {
  wire::JobStatus status = Training();
  EXPECT_EQ(StartLine(status), "");
  status.set_resumed_step(1000);
  status.set_resumed_from("/ckpt/ckpt-000000001000");
  EXPECT_EQ(StartLine(status),
            "resuming at step 1,000 from /ckpt/ckpt-000000001000");
  status.set_was_complete(true);
  status.set_phase(wire::COMPLETE);
  EXPECT_EQ(StartLine(status),
            "nothing to do: complete at step 1,000, /ckpt/ckpt-000000001000");
  EXPECT_EQ(ProgressLine(&status, std::nullopt, std::nullopt), "complete");
}

TEST(ProgressLineTest, LongTimesAreInMinutes) {
  const wire::JobStatus status = Training();
  EXPECT_EQ(ProgressLine(&status, std::nullopt, absl::Seconds(601)),
            "step 1,200/4,000 (30 %)  11 min left");
}

TEST(MeanStepRateTest, CountsFromTheFirstLookAtTheTrainingToItsEnd) {
  MeanStepRate rate;
  wire::JobStatus status;
  status.set_phase(wire::LOADING);
  rate.Observe(status, kStart);
  status = Training();
  rate.Observe(status, kStart + absl::Seconds(10));
  EXPECT_EQ(rate.steps_per_second(), 0);
  status.set_global_step(1300);
  status.set_phase(wire::FINISHING);
  rate.Observe(status, kStart + absl::Seconds(15));
  rate.Observe(status, kStart + absl::Seconds(20));
  EXPECT_EQ(rate.steps_per_second(), 20);
}

}  // namespace
}  // namespace parasol
