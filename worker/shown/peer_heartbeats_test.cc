#include "worker/shown/peer_heartbeats.h"

#include <atomic>
#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/rpc/proto_duration.h"
#include "cluster/rpc/server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/shown/lone_status.h"
#include "worker/shown/lone_status_service.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr absl::Duration kLimit = absl::Minutes(1);

wire::Task Worker(int index) {
  wire::Task task;
  task.set_role("worker");
  task.set_index(index);
  task.set_incarnation(40 + index);
  return task;
}

// A program of three processes: the first one, which answers, worker/1, and
// worker/2, which is not there.
class PeerHeartbeatsTest : public testing::Test {
 protected:
  PeerHeartbeatsTest() {
    first_.SetProcesses(3);
    first_.Ask({.status = [] {
      wire::JobStatus job;
      job.set_phase(wire::TRAINING);
      job.add_task()->mutable_task()->set_role("worker");
      job.mutable_task(0)->set_alive(true);
      return job;
    }});
    server_ = *RpcServer::Start("127.0.0.1:0", {&service_}, nullptr);
    server_->SetServing(true);
    peer_ = std::make_unique<PeerHeartbeats>(
        Worker(1),
        ChiefClient::Create(absl::StrCat("127.0.0.1:", server_->port()),
                            absl::Minutes(1), Callee::Chief(nullptr)),
        Clock::Real());
  }

  // Returns false, and fails, if a fact does not come true in time.
  template <typename Fact>
  static bool Await(Fact fact) {
    const absl::Time deadline = Clock::Real().Now() + kLimit;
    while (!fact()) {
      if (Clock::Real().Now() > deadline) {
        ADD_FAILURE() << "not within " << kLimit;
        return false;
      }
      Clock::Real().Pause(absl::Milliseconds(10));
    }
    return true;
  }
  bool AwaitPeer() {
    return Await([this] {
      const wire::JobStatus status = first_.Status();
      return status.task_size() > 1 && status.task(1).alive();
    });
  }

  // Asks until the tasks that are there have shown all.
  wire::InspectResponse Ask(wire::InspectRequest request) {
    auto answer = first_.Inspect(request);
    Await([&] {
      if (!answer.ok() || answer->missing_task_size() == 0) return true;
      answer = first_.Inspect(request);
      return false;
    });
    EXPECT_OK(answer.status());
    return answer.ok() ? *answer : wire::InspectResponse();
  }

  LoneStatus first_{Clock::Real(), "not yet"};
  LoneStatusService service_{first_};
  std::unique_ptr<RpcServer> server_;
  std::unique_ptr<PeerHeartbeats> peer_;
};

TEST_F(PeerHeartbeatsTest, ThePartsOfAPeersStepsAreShown) {
  int64_t steps = 0;
  peer_->Follow([&steps](wire::HeartbeatRequest& request) {
    wire::WorkerTotals& totals = *request.mutable_totals();
    totals.set_steps(++steps);
    totals.set_batches(steps);
    *totals.mutable_times()->mutable_compute() =
        ToProto(steps * absl::Milliseconds(20));
    *totals.mutable_work() = totals.times().compute();
  });
  Await([this] {
    const wire::JobStatus status = first_.Status();
    return status.task_size() > 1 && status.task(1).pace().step().has_compute();
  });
  peer_->Follow(nullptr);
  const wire::JobStatus status = first_.Status();
  ASSERT_EQ(status.task_size(), 3);
  EXPECT_EQ(status.task(1).task().index(), 1);
  EXPECT_EQ(FromProto(status.task(1).pace().step().compute()),
            absl::Milliseconds(20));
  EXPECT_FALSE(status.task(2).alive());
}

TEST_F(PeerHeartbeatsTest, StacksOfAllWhoAreThere) {
  peer_->ShowThisThreadFirst();
  ASSERT_TRUE(AwaitPeer());
  wire::InspectRequest request;
  request.mutable_inspection()->set_kind(wire::Inspection::STACKS);
  request.mutable_inspection()->set_number(1);
  std::set<std::string> names;
  const wire::InspectResponse all = Ask(request);
  for (const wire::InspectedTask& task : all.task()) {
    names.insert(task.task());
  }
  EXPECT_THAT(names, ElementsAre("worker/0", "worker/1"));
  request.set_task("worker/1");
  EXPECT_THAT(Ask(request).task(0).part(0).stacks(), Not(IsEmpty()));
  request.mutable_inspection()->set_number(2);
  request.set_task("worker/2");
  EXPECT_THAT(first_.Inspect(request).status(),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("worker/2 is not there; there are: worker/0, "
                                 "worker/1")));
}

TEST_F(PeerHeartbeatsTest, ATraceHasTheSpansOfAPeer) {
  ASSERT_TRUE(AwaitPeer());
  wire::InspectRequest request;
  wire::Inspection& asked = *request.mutable_inspection();
  asked.set_kind(wire::Inspection::TRACE);
  asked.set_number(1);
  asked.set_steps(1);
  *asked.mutable_limit() = ToProto(absl::Minutes(1));
  request.set_task("worker/1");
  ASSERT_OK(first_.Inspect(request).status());
  auto answer = first_.Inspect(request);
  Await([&] {
    if (!answer.ok() || answer->missing_task_size() == 0) return true;
    const absl::Time now = Clock::Real().Now();
    for (TraceRecorder* const trace :
         {&first_.inspection().recorder(), &peer_->recorder()}) {
      trace->Add({.name = "compute",
                  .track = "training",
                  .begin = now,
                  .end = now,
                  .step = 1});
      trace->EndStep(now);
    }
    answer = first_.Inspect(request);
    return false;
  });
  ASSERT_OK(answer.status());
  ASSERT_EQ(answer->task_size(), 1);
  EXPECT_GT(answer->task(0).part(0).span_size(), 0);
}

TEST_F(PeerHeartbeatsTest, WhileNobodyTrainsTheOnesThatAreNotThereAreNamed) {
  ASSERT_TRUE(AwaitPeer());
  first_.Ask({});
  const wire::JobStatus status = first_.Status();
  EXPECT_EQ(status.trouble(), "not yet");
  EXPECT_THAT(status.missing_task(), ElementsAre("worker/2"));
  EXPECT_THAT(status.finding(0).text(), HasSubstr("waits for worker/2"));
}

TEST_F(PeerHeartbeatsTest, OneThatIsRefusedSaysSo) {
  testing::internal::CaptureStderr();
  std::atomic<int> sent = 0;
  {
    PeerHeartbeats stranger(
        Worker(3),
        ChiefClient::Create(absl::StrCat("127.0.0.1:", server_->port()),
                            absl::Minutes(1), Callee::Chief(nullptr)),
        Clock::Real());
    stranger.Follow([&sent](wire::HeartbeatRequest&) { ++sent; });
    Await([&] { return sent >= 2; });
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("worker/0 is not told how worker/3 goes: "));
}

TEST_F(PeerHeartbeatsTest, WhoIsNoProcessOfTheProgramIsRefused) {
  wire::HeartbeatRequest request;
  for (const int index : {0, 3, -1}) {
    *request.mutable_task() = Worker(index);
    EXPECT_THAT(first_.Heartbeat(request).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(absl::StrCat(
                             "worker/", index,
                             ": the program has the workers 0 to 2"))));
  }
}

}  // namespace
}  // namespace parasol
