#include "worker/shown/lone_status.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/client/chief_client.h"
#include "cluster/rpc/proto_duration.h"
#include "cluster/rpc/server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/shown/lone_status_service.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// The totals of a process that needs `batch` for each of its batches.
wire::WorkerTotals TotalsOf(int batches, absl::Duration batch) {
  wire::WorkerTotals totals;
  totals.set_steps(batches);
  totals.set_batches(batches);
  *totals.mutable_work() = ToProto(batches * batch);
  *totals.mutable_times()->mutable_compute() = totals.work();
  return totals;
}

class LoneStatusTest : public testing::Test {
 protected:
  LoneStatusTest() {
    job_.set_phase(wire::TRAINING);
    job_.add_finding()->set_text("nobody");
    job_.add_task()->mutable_task()->set_role("worker");
  }

  void Train() {
    shown_.Ask({.status = [this] { return job_; },
                .part = [this]() { return part_; }});
  }
  void Wait(absl::Duration time) {
    part_ = {.kind = wire::Finding::LINK,
             .what = "waiting for sums of gradients",
             .since = clock_.Now()};
    clock_.Advance(time);
  }
  void Hear(int worker, const wire::WorkerTotals& totals = {}) {
    wire::HeartbeatRequest request;
    request.mutable_task()->set_role("worker");
    request.mutable_task()->set_index(worker);
    request.mutable_task()->set_incarnation(40 + worker);
    if (totals.steps() > 0) *request.mutable_totals() = totals;
    EXPECT_OK(shown_.Heartbeat(request).status());
  }

  SimulatedClock clock_;
  LoneStatus shown_{clock_, "nobody has begun"};
  wire::JobStatus job_;
  std::optional<LoneStatus::Doing> part_;
};

TEST_F(LoneStatusTest, WithoutATrainingItSaysWhatIsWaitedFor) {
  EXPECT_EQ(shown_.Status().phase(), wire::LOADING);
  EXPECT_THAT(shown_.Status().finding(0).text(), HasSubstr("nobody has begun"));
  Train();
  EXPECT_EQ(shown_.Status().phase(), wire::TRAINING);
  shown_.Ask({});
  EXPECT_EQ(shown_.Status().phase(), wire::LOADING);
}

TEST_F(LoneStatusTest, APartOfAStepThatTakesLongIsTheFirstFinding) {
  Train();
  part_ = {.kind = wire::Finding::INPUT,
           .what = "waiting for a batch",
           .since = clock_.Now()};
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(shown_.Status().finding(0).text(), "nobody");
  clock_.Advance(absl::Seconds(2));
  const wire::JobStatus status = shown_.Status();
  ASSERT_EQ(status.finding_size(), 2);
  EXPECT_EQ(status.finding(0).kind(), wire::Finding::INPUT);
  EXPECT_EQ(status.finding(0).task(), "worker/0");
  EXPECT_EQ(status.finding(0).text(),
            "worker/0 has been waiting for a batch for 3s");
  EXPECT_EQ(status.finding(1).text(), "nobody");
}

TEST_F(LoneStatusTest, AJobThatIsOverDoesNothing) {
  Train();
  part_ = {.what = "waiting for a batch", .since = clock_.Now()};
  clock_.Advance(absl::Hours(1));
  job_.set_phase(wire::COMPLETE);
  EXPECT_EQ(shown_.Status().finding(0).text(), "nobody");
}

TEST_F(LoneStatusTest, WhatIsDoneBetweenStepsIsAFindingAndASpan) {
  Train();
  TraceRecorder& trace = shown_.inspection().recorder();
  trace.Start({.begin = clock_.Now(),
               .end = clock_.Now() + absl::Hours(1),
               .steps = 1});
  {
    const LoneStatus::Activity writes(&shown_, "checkpoint", "orders",
                                      wire::Finding::CHECKPOINT,
                                      "writing a checkpoint");
    clock_.Advance(absl::Seconds(4));
    EXPECT_EQ(shown_.Status().finding(0).text(),
              "worker/0 has been writing a checkpoint for 4s");
  }
  EXPECT_EQ(shown_.Status().finding(0).text(), "nobody");
  const TraceRecorder::Recorded recorded = trace.Take();
  ASSERT_EQ(recorded.spans.size(), 1);
  EXPECT_EQ(recorded.spans[0].name, std::string("checkpoint"));
  EXPECT_EQ(recorded.spans[0].track, "orders");
  EXPECT_EQ(recorded.spans[0].end - recorded.spans[0].begin, absl::Seconds(4));
}

TEST_F(LoneStatusTest, ThePageIsNewWhenItIsAskedFor) {
  EXPECT_THAT(shown_.PageAt("/status.json").body, HasSubstr("\"job\":null"));
  Train();
  job_.set_global_step(7);
  EXPECT_THAT(shown_.PageAt("/status.json").body,
              HasSubstr("\"global_step\":7"));
  shown_.Ask({});
  EXPECT_THAT(shown_.PageAt("/status.json").body,
              HasSubstr("\"global_step\":7"))
      << "the last status stays";
  EXPECT_EQ(shown_.PageAt("/").status, 200);
  EXPECT_EQ(shown_.PageAt("/other").status, 404);
}

TEST_F(LoneStatusTest, TheLastStatusOfATrainingThatGoesIsOnThePage) {
  Train();
  job_.set_global_step(7);
  shown_.Ask({});
  EXPECT_THAT(shown_.PageAt("/status.json").body,
              HasSubstr("\"global_step\":7"));
}

TEST_F(LoneStatusTest, TheOneThatIsWaitedForStandsBeforeTheWait) {
  shown_.SetProcesses(2);
  Train();
  Hear(1);
  Wait(absl::Seconds(3));
  const wire::JobStatus status = shown_.Status();
  ASSERT_GE(status.finding_size(), 2);
  EXPECT_EQ(status.finding(0).kind(), wire::Finding::STOPPED);
  EXPECT_EQ(status.finding(0).task(), "worker/1");
  EXPECT_EQ(status.finding(1).text(),
            "worker/0 has been waiting for sums of gradients for 3s");
}

TEST_F(LoneStatusTest, OneThatHasBeenHeardIsNamedWhenItIsGone) {
  shown_.SetProcesses(3);
  Train();
  Hear(2);
  Wait(absl::Seconds(12));
  const wire::JobStatus status = shown_.Status();
  EXPECT_THAT(status.missing_task(), ElementsAre("worker/2"))
      << "worker/1 does not tell how it goes";
  ASSERT_GE(status.finding_size(), 2);
  EXPECT_EQ(status.finding(0).kind(), wire::Finding::MISSING);
  EXPECT_EQ(status.finding(0).text(),
            "the job waits for worker/2, which is not there, for 12s");
  EXPECT_EQ(status.finding(1).kind(), wire::Finding::LINK);
}

TEST_F(LoneStatusTest, WhatNoOtherProcessCanEndStaysFirst) {
  shown_.SetProcesses(2);
  Train();
  Hear(1);
  Wait(absl::Seconds(12));
  part_->kind = wire::Finding::INPUT;
  const wire::JobStatus status = shown_.Status();
  EXPECT_EQ(status.finding(0).kind(), wire::Finding::INPUT);
  EXPECT_THAT(status.missing_task(), IsEmpty());
}

TEST_F(LoneStatusTest, ThoseThatTellNothingAreNotBlamed) {
  shown_.SetProcesses(3);
  EXPECT_THAT(shown_.Status().missing_task(), IsEmpty());
  EXPECT_THAT(shown_.Status().trouble(), HasSubstr("with --status_address?"));
  Train();
  Wait(absl::Minutes(1));
  const wire::JobStatus status = shown_.Status();
  EXPECT_EQ(status.task_size(), 1);
  EXPECT_THAT(status.missing_task(), IsEmpty());
  ASSERT_EQ(status.finding_size(), 2);
  EXPECT_EQ(status.finding(0).kind(), wire::Finding::LINK);
  EXPECT_EQ(status.finding(1).text(), "nobody");
}

TEST_F(LoneStatusTest, OfTwoProcessesTheSlowOneIsNamed) {
  shown_.SetProcesses(2);
  for (const int slow : {0, 1}) {
    SCOPED_TRACE(absl::StrCat("worker/", slow));
    Train();
    for (int second = 1; second <= 30; ++second) {
      clock_.Advance(absl::Seconds(1));
      const auto totals = [&](int worker) {
        return TotalsOf(30 * slow + second, worker == slow
                                                ? absl::Milliseconds(900)
                                                : absl::Milliseconds(100));
      };
      shown_.Report(totals(0));
      Hear(1, totals(1));
    }
    const wire::JobStatus status = shown_.Status();
    ASSERT_EQ(status.task_size(), 2);
    EXPECT_THAT(status.task(slow).slow(), HasSubstr("times the others'"));
    EXPECT_THAT(status.task(1 - slow).slow(), IsEmpty());
  }
}

TEST_F(LoneStatusTest, TheServiceAnswersAsAChief) {
  Train();
  LoneStatusService service(shown_);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RpcServer> server,
                       RpcServer::Start("127.0.0.1:0", {&service}, nullptr));
  server->SetServing(true);
  const std::unique_ptr<ChiefClient> client =
      ChiefClient::Create(absl::StrCat("127.0.0.1:", server->port()),
                          absl::Minutes(1), Callee::Chief(nullptr));
  ASSERT_OK_AND_ASSIGN(const wire::JobStatus status, client->GetStatus());
  EXPECT_EQ(status.phase(), wire::TRAINING);
  wire::InspectRequest request;
  request.mutable_inspection()->set_kind(wire::Inspection::STACKS);
  request.mutable_inspection()->set_number(1);
  request.set_task("worker/0");
  ASSERT_OK_AND_ASSIGN(const wire::InspectResponse shown,
                       client->Inspect(request));
  ASSERT_EQ(shown.task_size(), 1);
  EXPECT_THAT(shown.task(0).part(0).stacks(), Not(IsEmpty()));
}

}  // namespace
}  // namespace parasol
