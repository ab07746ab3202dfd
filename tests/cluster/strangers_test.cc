// Strangers in a cluster without keys: they reach every port and know the
// protocol, and nothing that tasks tell only each other. All roles are in one
// process.

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "cluster/client/chief_client.h"
#include "cluster/rpc/channel.h"
#include "cluster/rpc/status.h"
#include "cluster/trust/process_secret.h"
#include "coordinator/steps/applied_updates.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/chief.grpc.pb.h"
#include "proto/parameter.grpc.pb.h"
#include "tests/cluster/cluster_runs.h"
#include "tests/cluster/test_cluster.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int64_t kEndless = 100'000'000;

class StrangersTest : public ClusterRunsTest {
 protected:
  static std::unique_ptr<ChiefClient> ChiefOf(const TestCluster& cluster) {
    return ChiefClient::Create(cluster.Address("chief", 0), absl::Seconds(5));
  }
  static wire::RegisterRequest RegistrationOf(const std::string& role,
                                              int index) {
    wire::RegisterRequest request;
    request.mutable_task()->set_role(role);
    request.mutable_task()->set_index(index);
    request.mutable_task()->set_incarnation(0xabcdef);
    return request;
  }
};

// A stranger's calls to a ps.
class PsStranger {
 public:
  explicit PsStranger(const std::string& address)
      : stub_(wire::ParameterService::NewStub(MakeTensorChannel(address))) {}

  absl::Status Load(const wire::LoadRequest& request) {
    grpc::ClientContext context;
    wire::LoadResponse response;
    return FromGrpcStatus(stub_->Load(&context, request, &response), "ps");
  }
  absl::Status Prepare(const wire::PrepareSnapshotRequest& request) {
    grpc::ClientContext context;
    wire::PrepareSnapshotResponse response;
    return FromGrpcStatus(stub_->PrepareSnapshot(&context, request, &response),
                          "ps");
  }
  absl::Status Snapshot(const wire::SnapshotRequest& request) {
    grpc::ClientContext context;
    wire::SnapshotResponse response;
    return FromGrpcStatus(stub_->Snapshot(&context, request, &response), "ps");
  }
  // Sends one message, and returns how the stream ends.
  absl::Status Exchange(const wire::ExchangeRequest& request,
                        const std::string& admission) {
    grpc::ClientContext context;
    if (!admission.empty()) context.AddMetadata(kAdmissionKey, admission);
    const auto stream = stub_->Exchange(&context);
    stream->Write(request);
    stream->WritesDone();
    wire::ExchangeResponse response;
    EXPECT_FALSE(stream->Read(&response)) << response.ShortDebugString();
    return FromGrpcStatus(stream->Finish(), "ps");
  }

 private:
  const std::unique_ptr<wire::ParameterService::Stub> stub_;
};

// Returns headers with all that a stranger can hear, and what he guesses.
std::vector<wire::OrderHeader> Headers(uint64_t layout) {
  std::vector<wire::OrderHeader> headers;
  for (const uint64_t incarnation :
       {uint64_t{0}, uint64_t{0x5eed}, PublicNumber(0x5eed), UINT64_MAX}) {
    for (const int64_t chief_epoch :
         {int64_t{0}, int64_t{1}, int64_t{1} << 30, int64_t{1} << 62}) {
      wire::OrderHeader& header = headers.emplace_back();
      header.set_incarnation(incarnation);
      header.set_chief_epoch(chief_epoch);
      header.set_layout(layout);
      header.set_number(chief_epoch);
    }
  }
  return headers;
}

void GiveOrders(const std::string& address, const std::string& run_id,
                uint64_t layout) {
  PsStranger stranger(address);
  for (const wire::OrderHeader& header : Headers(layout)) {
    wire::LoadRequest load;
    load.set_run_id(run_id);
    load.mutable_optimizer()->mutable_adam()->set_learning_rate(1e-30);
    *load.mutable_order() = header;
    wire::PrepareSnapshotRequest prepare;
    prepare.set_run_id(run_id);
    *prepare.mutable_order() = header;
    wire::SnapshotRequest snapshot;
    snapshot.set_run_id(run_id);
    *snapshot.mutable_order() = header;
    for (const absl::Status& refusal :
         {stranger.Load(load), stranger.Prepare(prepare),
          stranger.Snapshot(snapshot)}) {
      EXPECT_THAT(refusal, StatusIs(absl::StatusCode::kFailedPrecondition))
          << header.ShortDebugString();
    }
  }
}

void PushAndPull(const std::string& address, const std::string& run_id,
                 uint64_t layout) {
  PsStranger stranger(address);
  for (const bool is_push : {true, false}) {
    for (const std::string& admission :
         {std::string(), std::string("worker.0.1.00"),
          AdmissionOf({.index = 0, .incarnation = 1}, 0x5eed)}) {
      wire::ExchangeRequest request;
      request.mutable_header()->set_run_id(run_id);
      request.mutable_header()->set_layout(layout);
      request.mutable_header()->set_worker_incarnation(1);
      wire::Operation& operation = *request.mutable_header()->add_operation();
      if (is_push) {
        operation.mutable_row_push()->set_sequence(1);
      } else {
        operation.mutable_pull();
      }
      EXPECT_THAT(stranger.Exchange(request, admission),
                  StatusIs(absl::StatusCode::kPermissionDenied));
    }
  }
}

// He hears the run from the status, and the layout as an evaluator.
TEST_F(StrangersTest, OrdersPushesAndPullsOfStrangersChangeNothing) {
  for (const bool is_synchronous : {false, true}) {
    job::Job job = QuadrantsJob(kEndless);
    job.mutable_checkpoint()->set_every_steps(50);
    if (is_synchronous) MakeSynchronous({.aggregate = 2, .total = 2}, job);
    TestCluster cluster(job, 2, 2,
                        Directory(is_synchronous ? "synchronous" : "orders"));
    ASSERT_OK(cluster.Start());
    ASSERT_OK(cluster.AwaitStep(20));
    const auto chief = ChiefOf(cluster);
    // The cluster's own evaluator has the place: this one takes none.
    wire::RegisterRequest request = RegistrationOf("worker", 7);
    EXPECT_THAT(chief->Register(request),
                StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(chief->GetPlacement(),
                StatusIs(absl::StatusCode::kUnavailable,
                         HasSubstr("worker/7 is not registered")));
    ASSERT_OK_AND_ASSIGN(const wire::JobStatus before, chief->GetStatus());
    for (const int i : {0, 1}) {
      const std::string address = cluster.Address("ps", i);
      GiveOrders(address, before.run_id(), 0);
      PushAndPull(address, before.run_id(), 0);
    }
    ASSERT_OK_AND_ASSIGN(const wire::JobStatus after, chief->GetStatus());
    ASSERT_OK(cluster.AwaitStatus(
        "another checkpoint", [&](const wire::JobStatus& status) {
          return status.global_step() > after.global_step() + 50 &&
                 status.checkpoint() != after.checkpoint();
        }));
    ASSERT_OK_AND_ASSIGN(const wire::JobStatus status, chief->GetStatus());
    EXPECT_EQ(status.phase(), wire::TRAINING);
    EXPECT_THAT(status.missing_task(), IsEmpty());
    EXPECT_THAT(status.failure(), IsEmpty());
  }
}

TEST_F(StrangersTest, AnEvaluatorHearsNothingThatIsForWorkers) {
  TestCluster cluster(QuadrantsJob(kEndless), 1, 1, Directory("evaluator"));
  ASSERT_OK(cluster.StartChief());
  ASSERT_OK(cluster.StartPs(0));
  ASSERT_OK(cluster.StartWorker(0));
  ASSERT_OK(cluster.AwaitStep(5));
  const auto chief = ChiefOf(cluster);
  const wire::RegisterRequest evaluator = RegistrationOf("evaluator", 0);
  ASSERT_OK_AND_ASSIGN(const auto registered, chief->Register(evaluator));
  EXPECT_THAT(chief->GetPlacement(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("only workers do")));
  wire::ClaimStepsRequest claim;
  *claim.mutable_task() = evaluator.task();
  EXPECT_THAT(chief->ClaimSteps(claim),
              StatusIs(absl::StatusCode::kInvalidArgument));
  GiveOrders(cluster.Address("ps", 0), registered.run_id(),
             registered.layout());
  PushAndPull(cluster.Address("ps", 0), registered.run_id(),
              registered.layout());
}

// A process that takes a free place and says that it has done all it is
// granted.
TEST_F(StrangersTest, AClaimLoopWithoutPushesCompletesNoJob) {
  constexpr int64_t kSteps = 200'000;
  job::Job job = QuadrantsJob(kSteps);
  TestCluster cluster(job, 1, 2, Directory("claims"));
  ASSERT_OK(cluster.StartChief());
  ASSERT_OK(cluster.StartPs(0));
  ASSERT_OK(cluster.AwaitPhase(wire::TRAINING));
  const auto chief = ChiefOf(cluster);
  const wire::RegisterRequest worker = RegistrationOf("worker", 1);
  ASSERT_OK(chief->Register(worker));
  wire::ClaimStepsRequest claim;
  *claim.mutable_task() = worker.task();
  claim.set_want(1024);
  claim.set_train_examples(1000);
  for (int i = 0; i < 300; ++i) {
    const auto answer = chief->ClaimSteps(claim);
    ASSERT_OK(answer);
    claim.set_assignment_version(answer->assignment_version());
    claim.set_granted_steps(answer->granted_steps());
    claim.set_completed_steps(answer->granted_steps());
    claim.set_started_steps(answer->granted_steps());
  }
  ASSERT_OK_AND_ASSIGN(const wire::JobStatus status, chief->GetStatus());
  EXPECT_LE(status.global_step(), AppliedUpdates::kAlwaysAhead + 1024);
  EXPECT_EQ(status.phase(), wire::TRAINING);
  EXPECT_THAT(status.trouble(), Not(IsEmpty()));
}

}  // namespace
}  // namespace parasol
