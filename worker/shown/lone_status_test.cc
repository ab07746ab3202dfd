#include "worker/shown/lone_status.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/client/chief_client.h"
#include "cluster/rpc/server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/shown/lone_status_service.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

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
