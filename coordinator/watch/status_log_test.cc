#include "coordinator/watch/status_log.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

absl::Time At(int seconds) { return absl::FromUnixSeconds(seconds); }

TEST(StatusLog, NamesTheMissingTasksEveryTenSeconds) {
  StatusLog log(At(0));
  wire::JobStatus status;
  status.set_phase(wire::WAITING_FOR_PS);
  status.add_missing_task("ps/1");
  status.add_missing_task("ps/3");
  EXPECT_THAT(log.Lines(status, At(1)), ElementsAre("WAITING_FOR_PS, step 0"));
  EXPECT_THAT(log.Lines(status, At(9)), IsEmpty());
  EXPECT_THAT(log.Lines(status, At(10)), ElementsAre("waiting for ps/1, ps/3"));
  EXPECT_THAT(log.Lines(status, At(11)), IsEmpty());
  EXPECT_THAT(log.Lines(status, At(20)), ElementsAre("waiting for ps/1, ps/3"));
}

TEST(StatusLog, SaysForHowLongItWaits) {
  StatusLog log(At(0));
  wire::JobStatus status;
  status.set_phase(wire::TRAINING);
  status.add_awaited_task("worker/1");
  status.mutable_waited()->set_seconds(80);
  log.Lines(status, At(1));
  EXPECT_THAT(
      log.Lines(status, At(10)),
      ElementsAre("others wait for the steps of worker/1 for 1m20s", "step 0"));
}

TEST(StatusLog, SaysHowFarEvaluationsAreBehindAndWhoIsWaitedFor) {
  StatusLog log(At(0));
  wire::JobStatus status;
  status.set_phase(wire::TRAINING);
  status.set_global_step(2550);
  status.set_due_evaluations(9);
  log.Lines(status, At(1));
  EXPECT_THAT(log.Lines(status, At(10)),
              ElementsAre("step 2550, 9 evaluations due, the newest one is "
                          "none"));
  status.set_evaluated_step(255);
  status.set_awaited_evaluation(510);
  status.mutable_evaluation_waited()->set_seconds(20);
  EXPECT_THAT(log.Lines(status, At(20)),
              ElementsAre("step 2550, 9 evaluations due, the newest one is of "
                          "step 255"))
      << "short waits are no news";
  status.add_awaited_task("evaluator/0");
  EXPECT_THAT(log.Lines(status, At(30)),
              ElementsAre("waiting for evaluator/0 to evaluate step 510 for "
                          "20s",
                          testing::StartsWith("step 2550")));
}

TEST(StatusLog, NamesTheTasksThatHaveYetToLeaveAJobThatHasEnded) {
  StatusLog log(At(0));
  wire::JobStatus status;
  status.set_phase(wire::COMPLETE);
  status.add_staying_task("ps/1");
  status.add_staying_task("worker/0");
  status.mutable_staying_limit()->set_seconds(27);
  EXPECT_THAT(log.Lines(status, At(1)), ElementsAre("COMPLETE, step 0"));
  EXPECT_THAT(log.Lines(status, At(3)), IsEmpty());
  EXPECT_THAT(log.Lines(status, At(4)),
              ElementsAre("waiting for ps/1, worker/0 to leave, for at most "
                          "27s more"));
  EXPECT_THAT(log.Lines(status, At(13)), IsEmpty());
  status.clear_staying_task();
  EXPECT_THAT(log.Lines(status, At(14)), IsEmpty());
}

TEST(StatusLog, SaysHowFarTrainingIs) {
  StatusLog log(At(0));
  wire::JobStatus status;
  status.set_phase(wire::TRAINING);
  status.set_global_step(12);
  status.set_end_step(100);
  EXPECT_THAT(log.Lines(status, At(1)), ElementsAre("TRAINING, step 12/100"));
  status.set_loss(0.25);
  status.set_examples_per_second(1000);
  EXPECT_THAT(log.Lines(status, At(10)),
              ElementsAre("step 12/100, loss 0.2500, 1000 examples/s"));
}

TEST(StatusLog, SaysWhatKeepsTheLastCheckpointFromBeingWritten) {
  StatusLog log(At(0));
  wire::JobStatus status;
  status.set_phase(wire::FINISHING);
  EXPECT_THAT(log.Lines(status, At(1)), ElementsAre("FINISHING, step 0"));
  status.set_trouble("no checkpoint of step 0 in 3 attempts: disk full");
  EXPECT_THAT(log.Lines(status, At(361)),
              ElementsAre("no checkpoint of step 0 in 3 attempts: disk full",
                          "FINISHING since 6m"));
}

TEST(StatusLog, NumbersAreFields) {
  wire::JobStatus status;
  status.set_phase(wire::TRAINING);
  status.set_global_step(12);
  EXPECT_EQ(JobFields(status).json(), R"(,"phase":"TRAINING","step":12)");
  status.set_end_step(100);
  status.set_loss(0.5);
  status.set_examples_per_second(40);
  EXPECT_EQ(JobFields(status).json(),
            R"(,"phase":"TRAINING","step":12,"end_step":100,"loss":0.5,)"
            R"("examples_per_second":40)");
}

TEST(StatusLog, SaysWhyAJobFailed) {
  StatusLog log(At(0));
  wire::JobStatus status;
  status.set_phase(wire::FAILED);
  status.set_failure("worker/1: loss is not finite");
  EXPECT_THAT(log.Lines(status, At(1)),
              ElementsAre("FAILED, step 0: worker/1: loss is not finite"));
}

}  // namespace
}  // namespace parasol
