#include "ps/ps_task.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "base/metrics.h"
#include "base/status_matchers.h"
#include "cluster/rows/row_tier.h"
#include "cluster/rpc/channel.h"
#include "cluster/rpc/server.h"
#include "cluster/trust/process_secret.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/chief.grpc.pb.h"
#include "proto/parameter.grpc.pb.h"
#include "ps/testing/requests.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::Duration kTestLimit = absl::Seconds(30);

// Says what it is told to, and remembers what it was told.
class FakeChief : public wire::ChiefService::Service {
 public:
  void SetPhase(wire::JobPhase phase, std::string failure = "") {
    absl::MutexLock lock(&mu_);
    state_.set_phase(phase);
    state_.set_failure(std::move(failure));
  }
  // As a chief that has restarted.
  void Forget() {
    absl::MutexLock lock(&mu_);
    forgotten_ = true;
  }
  // The run that each registration announced, once there are `count`.
  std::vector<std::string> AwaitRegistrations(size_t count) {
    absl::MutexLock lock(&mu_);
    auto has_enough = [this, count]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return run_ids_.size() >= count;
    };
    EXPECT_TRUE(mu_.AwaitWithTimeout(absl::Condition(&has_enough), kTestLimit));
    return run_ids_;
  }
  int leaves() {
    absl::MutexLock lock(&mu_);
    return leaves_;
  }
  // Waits for a heartbeat that says that the run is held in `layout`.
  void AwaitHeldLayout(uint64_t layout) {
    absl::MutexLock lock(&mu_);
    auto is_held = [this, layout]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return held_layout_ == layout;
    };
    EXPECT_TRUE(mu_.AwaitWithTimeout(absl::Condition(&is_held), kTestLimit));
  }
  // Blocks until a heartbeat has said that the ps is leaving.
  void AwaitLeaving() {
    absl::MutexLock lock(&mu_);
    EXPECT_TRUE(
        mu_.AwaitWithTimeout(absl::Condition(&is_leaving_), kTestLimit));
  }
  void LetLeave() {
    absl::MutexLock lock(&mu_);
    state_.set_may_leave(true);
  }

  grpc::Status Register(grpc::ServerContext*,
                        const wire::RegisterRequest* request,
                        wire::RegisterResponse* response) override {
    absl::MutexLock lock(&mu_);
    EXPECT_EQ(request->task().role(), "ps");
    EXPECT_EQ(request->task().index(), 3);
    forgotten_ = false;
    run_ids_.push_back(request->run_id());
    response->set_chief_epoch(2);
    return grpc::Status::OK;
  }
  grpc::Status Heartbeat(grpc::ServerContext*,
                         const wire::HeartbeatRequest* request,
                         wire::HeartbeatResponse* response) override {
    absl::MutexLock lock(&mu_);
    held_layout_ = request->run_id() == "run" ? request->layout() : 0;
    if (forgotten_) {
      return grpc::Status(grpc::StatusCode::NOT_FOUND, "who are you?");
    }
    is_leaving_ |= request->leaving();
    *response = state_;
    response->set_chief_epoch(2);
    return grpc::Status::OK;
  }
  grpc::Status Leave(grpc::ServerContext*, const wire::LeaveRequest*,
                     wire::LeaveResponse*) override {
    absl::MutexLock lock(&mu_);
    ++leaves_;
    return grpc::Status::OK;
  }

 private:
  absl::Mutex mu_;
  wire::HeartbeatResponse state_ ABSL_GUARDED_BY(mu_);
  bool is_leaving_ ABSL_GUARDED_BY(mu_) = false;
  bool forgotten_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::string> run_ids_ ABSL_GUARDED_BY(mu_);
  int leaves_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t held_layout_ ABSL_GUARDED_BY(mu_) = UINT64_MAX;  // none was said
};

class PsTaskTest : public testing::Test {
 protected:
  PsTaskTest()
      : chief_server_(RpcServer::Start("127.0.0.1:0", {&chief_}).value()) {
    options_.task.set_role("ps");
    options_.task.set_index(3);
    options_.task.set_incarnation(77);
    options_.listen_address = "127.0.0.1:0";
    options_.chief_address = absl::StrCat("127.0.0.1:", chief_server_->port());
    chief_.SetPhase(wire::TRAINING);
  }

  std::unique_ptr<PsTask> Start() {
    return PsTask::Start(options_, Clock::Real(), registry_).value();
  }
  std::unique_ptr<wire::ParameterService::Stub> StubFor(const PsTask& task) {
    return wire::ParameterService::NewStub(
        MakeControlChannel(absl::StrCat("127.0.0.1:", task.port())));
  }

  PsTaskOptions options_;
  MetricsRegistry registry_;
  FakeChief chief_;
  std::unique_ptr<RpcServer> chief_server_;
};

wire::LoadRequest EmptyOrder() {
  wire::LoadRequest order;
  order.set_run_id("run");
  order.mutable_order()->set_incarnation(77);
  order.mutable_order()->set_chief_epoch(2);
  order.mutable_order()->set_layout(5);
  order.mutable_optimizer()->mutable_sgd()->set_learning_rate(1);
  order.set_num_shards(1);
  return order;
}

void Load(wire::ParameterService::Stub& stub, const wire::LoadRequest& order) {
  grpc::ClientContext context;
  wire::LoadResponse response;
  const grpc::Status status = stub.Load(&context, order, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
}

void Load(wire::ParameterService::Stub& stub) {
  wire::LoadRequest order = EmptyOrder();
  *order.add_part() = MakePart(0, "w", 5, 0, 5);
  Load(stub, order);
}

// Shows that the chief has admitted the worker.
void ShowAdmission(grpc::ClientContext& context) {
  context.AddMetadata(kAdmissionKey,
                      AdmissionOf({.index = 0, .incarnation = 9}, 77));
}

// One push, acknowledged or refused.
absl::StatusCode Push(wire::ParameterService::Stub& stub, uint64_t sequence) {
  grpc::ClientContext context;
  ShowAdmission(context);
  const auto stream = stub.Exchange(&context);
  wire::ExchangeRequest request;
  wire::RequestHeader& header = *request.mutable_header();
  header.set_run_id("run");
  header.set_worker_incarnation(9);
  *header.add_operation()->mutable_push() =
      MakePush(sequence, {MakeRange(0, 0, 5)});
  request.add_payload(Floats(5, 1));
  wire::ExchangeResponse response;
  EXPECT_TRUE(stream->Write(request) && stream->Read(&response));
  context.TryCancel();
  if (response.header().result_size() != 1) return absl::StatusCode::kUnknown;
  return static_cast<absl::StatusCode>(response.header().result(0).code());
}

TEST_F(PsTaskTest, StaysUntilACheckpointHasItsUpdatesWhenItIsStopped) {
  const auto task = Start();
  chief_.AwaitRegistrations(1);
  const auto stub = StubFor(*task);
  Load(*stub);
  ASSERT_EQ(Push(*stub, 1), absl::StatusCode::kOk);
  std::thread stopper([&task] { task->Stop(); });
  chief_.AwaitLeaving();
  EXPECT_EQ(Push(*stub, 2), absl::StatusCode::kUnavailable)
      << "the next ps takes it";
  EXPECT_EQ(chief_.leaves(), 0);
  chief_.LetLeave();
  stopper.join();
  EXPECT_THAT(task->Wait(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(chief_.leaves(), 1);
}

// Other ps, which may be told to stop next, may have some.
TEST_F(PsTaskTest, AsksForACheckpointThoughItHasNoUpdatesWhileOthersTrain) {
  const auto task = Start();
  chief_.AwaitRegistrations(1);
  Load(*StubFor(*task));
  chief_.AwaitHeldLayout(5);
  std::thread stopper([&task] { task->Stop(); });
  chief_.AwaitLeaving();
  EXPECT_EQ(chief_.leaves(), 0);
  chief_.LetLeave();
  stopper.join();
  EXPECT_THAT(task->Wait(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(PsTaskTest, WithoutUpdatesItWaitsForNoChiefThatIsGone) {
  options_.drain_timeout = absl::InfiniteDuration();
  options_.drain_silence = absl::InfiniteDuration();
  const auto task = Start();
  chief_.AwaitRegistrations(1);
  Load(*StubFor(*task));
  chief_.AwaitHeldLayout(5);
  chief_server_->Stop(absl::ZeroDuration());
  task->Stop();
  EXPECT_THAT(task->Wait(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(PsTaskTest, LeavesWithoutACheckpointAtItsLimit) {
  options_.drain_timeout = absl::Milliseconds(300);
  const auto task = Start();
  chief_.AwaitRegistrations(1);
  const auto stub = StubFor(*task);
  Load(*stub);
  ASSERT_EQ(Push(*stub, 1), absl::StatusCode::kOk);
  task->Stop();
  EXPECT_THAT(task->Wait(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(chief_.leaves(), 1);
}

TEST_F(PsTaskTest, DoesNotWaitForACheckpointOfAChiefThatIsGone) {
  options_.drain_timeout = absl::InfiniteDuration();
  options_.drain_silence = absl::Milliseconds(300);
  const auto task = Start();
  chief_.AwaitRegistrations(1);
  const auto stub = StubFor(*task);
  Load(*stub);
  ASSERT_EQ(Push(*stub, 1), absl::StatusCode::kOk);
  chief_server_->Stop(absl::ZeroDuration());
  task->Stop();
  EXPECT_THAT(task->Wait(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(PsTaskTest, LeavesWhenTheJobIsComplete) {
  const auto task = Start();
  chief_.SetPhase(wire::COMPLETE);
  EXPECT_OK(task->Wait());
  EXPECT_EQ(chief_.leaves(), 1);
}

TEST_F(PsTaskTest, AFailedJobIsItsError) {
  const auto task = Start();
  chief_.SetPhase(wire::FAILED, "worker/0: the loss is not finite");
  EXPECT_THAT(task->Wait(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                     HasSubstr("the loss is not finite")));
}

TEST_F(PsTaskTest, AnnouncesTheRunThatItHoldsToARestartedChief) {
  const auto task = Start();
  chief_.AwaitRegistrations(1);
  Load(*StubFor(*task));
  chief_.Forget();
  EXPECT_THAT(chief_.AwaitRegistrations(2), ElementsAre("", "run"));
}

TEST_F(PsTaskTest, HeartbeatsSayWhatItHolds) {
  const auto task = Start();
  chief_.AwaitRegistrations(1);
  chief_.AwaitHeldLayout(0);
  Load(*StubFor(*task));
  chief_.AwaitHeldLayout(5);
}

TEST_F(PsTaskTest, ObeysTheChiefThatItHasRegisteredWithAndNoEarlierOne) {
  const auto task = Start();
  chief_.AwaitRegistrations(1);
  chief_.AwaitHeldLayout(0);
  wire::LoadRequest order;
  order.set_run_id("run");
  order.mutable_order()->set_incarnation(77);
  order.mutable_order()->set_chief_epoch(1);
  grpc::ClientContext context;
  wire::LoadResponse response;
  EXPECT_EQ(StubFor(*task)->Load(&context, order, &response).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(PsTaskTest, StopEndsOpenStreamsAndLeaves) {
  const auto task = Start();
  const auto stub = StubFor(*task);
  chief_.AwaitRegistrations(1);
  grpc::ClientContext context;
  ShowAdmission(context);
  const auto stream = stub->Exchange(&context);
  wire::ExchangeResponse response;
  wire::ExchangeRequest request;
  request.mutable_header()->set_worker_incarnation(9);
  request.mutable_header()->add_operation();
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->Read(&response));
  task->Stop();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(task->Wait(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(chief_.leaves(), 1);
}

// Overwrites the files of tiers that this process has open.
void DamageTiers() {
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string target =
        std::filesystem::read_symlink(entry.path(), error).string();
    if (error || !absl::StrContains(target, "parasol-tier-")) continue;
    const Descriptor file(open(entry.path().c_str(), O_WRONLY));
    const std::string zeros(1 << 20, 0);
    const off_t end = lseek(file.get(), 0, SEEK_END);
    for (off_t offset = 0; offset < end; offset += zeros.size()) {
      ASSERT_GT(pwrite(file.get(), zeros.data(), zeros.size(), offset), 0);
    }
  }
}

TEST_F(PsTaskTest, ARowThatIsLostEndsItForASuccessor) {
  constexpr uint64_t kRows = 500;  // of 16 KiB, nearly a segment
  constexpr uint64_t kPushes = 8;
  const auto task = Start();
  chief_.AwaitRegistrations(1);
  const auto stub = StubFor(*task);
  wire::LoadRequest order = EmptyOrder();
  wire::TableSpec& table = *order.add_table();
  table.set_name("t");
  table.set_width(4096);
  table.mutable_initializer()->mutable_zeros();
  // A row of each stripe, beside what is on its way to the disk.
  table.mutable_tier()->set_memory_bytes(
      RowTier::kSegmentsInMemory * RowTierOptions().segment_bytes + (3 << 20));
  Load(*stub, order);
  grpc::ClientContext context;
  ShowAdmission(context);
  const auto stream = stub->Exchange(&context);
  const auto code_of = [&](uint64_t first, bool pushes) {
    wire::ExchangeRequest request;
    wire::RequestHeader& header = *request.mutable_header();
    header.set_run_id("run");
    header.set_worker_incarnation(9);
    std::vector<uint64_t> ids(kRows);
    std::iota(ids.begin(), ids.end(), first);
    request.add_payload(std::string(reinterpret_cast<const char*>(ids.data()),
                                    kRows * sizeof(uint64_t)));
    if (pushes) {
      wire::RowPush& push = *header.add_operation()->mutable_row_push();
      push.set_sequence(1 + first);
      push.set_rows(kRows);
      request.add_payload(Floats(kRows * 4096, 1));
    } else {
      header.add_operation()->mutable_row_pull()->set_rows(kRows);
    }
    wire::ExchangeResponse response;
    EXPECT_TRUE(stream->Write(request) && stream->Read(&response));
    return static_cast<absl::StatusCode>(response.header().result(0).code());
  };
  for (uint64_t i = 0; i < kPushes; ++i) {
    ASSERT_EQ(code_of(i * kRows, /*pushes=*/true), absl::StatusCode::kOk);
  }
  ASSERT_EQ(code_of(0, /*pushes=*/false), absl::StatusCode::kOk);
  DamageTiers();
  absl::StatusCode code = absl::StatusCode::kOk;
  for (uint64_t i = 0; i < kPushes && code == absl::StatusCode::kOk; ++i) {
    code = code_of(i * kRows, /*pushes=*/false);
  }
  EXPECT_EQ(code, absl::StatusCode::kUnavailable);
  EXPECT_THAT(task->Wait(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("is lost")));
}

TEST_F(PsTaskTest, StopEndsTheWaitForAChiefThatIsNotThere) {
  chief_server_->Stop(absl::ZeroDuration());
  const auto task = Start();
  task->Stop();
  EXPECT_THAT(task->Wait(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(PsTaskTest, GivesUpAChiefThatIsNotThere) {
  options_.chief_timeout = absl::Milliseconds(300);
  chief_server_->Stop(absl::ZeroDuration());
  EXPECT_THAT(Start()->Wait(), StatusIs(absl::StatusCode::kUnavailable,
                                        HasSubstr(options_.chief_address)));
}

TEST_F(PsTaskTest, RefusesAnAddressThatIsTaken) {
  options_.listen_address = options_.chief_address;
  EXPECT_THAT(PsTask::Start(options_, Clock::Real(), registry_),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace parasol
