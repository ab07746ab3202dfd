#include "cluster/client/chief_client.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/status_matchers.h"
#include "cluster/rpc/server.h"
#include "cluster/rpc/testing/stalling_proxy.h"
#include "gmock/gmock.h"
#include "grpcpp/server_context.h"
#include "gtest/gtest.h"
#include "proto/chief.grpc.pb.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

class AnsweringChief : public wire::ChiefService::Service {
 public:
  grpc::Status Heartbeat(grpc::ServerContext*,
                         const wire::HeartbeatRequest* request,
                         wire::HeartbeatResponse* response) override {
    heard_of_ = request->task().chief_epoch();
    response->set_chief_epoch(epoch_);
    return grpc::Status::OK;
  }
  grpc::Status ClaimSteps(grpc::ServerContext*,
                          const wire::ClaimStepsRequest* request,
                          wire::ClaimStepsResponse*) override {
    heard_of_ = request->task().chief_epoch();
    return grpc::Status::OK;
  }
  // Answers as a chief that was replaced.
  grpc::Status Leave(grpc::ServerContext* context, const wire::LeaveRequest*,
                     wire::LeaveResponse*) override {
    absl::MutexLock lock(&mu_);
    peers_.insert(context->peer());
    return grpc::Status(grpc::StatusCode::ABORTED, "chief 4 was replaced");
  }
  size_t peers() {
    absl::MutexLock lock(&mu_);
    return peers_.size();
  }
  grpc::Status GetStatus(grpc::ServerContext*, const wire::GetStatusRequest*,
                         wire::JobStatus* response) override {
    response->set_global_step(7);
    return grpc::Status::OK;
  }

  std::atomic<int64_t> epoch_ = 0;
  std::atomic<int64_t> heard_of_ = -1;

 private:
  absl::Mutex mu_;
  std::set<std::string> peers_ ABSL_GUARDED_BY(mu_);
};

class ChiefClientTest : public testing::Test {
 protected:
  AnsweringChief chief_;
  std::unique_ptr<RpcServer> server_ =
      RpcServer::Start("127.0.0.1:0", {&chief_}).value();
  StallingProxy proxy_{server_->port()};
};

TEST_F(ChiefClientTest, ACallAfterOneInADeadConnectionIsAnswered) {
  const auto client = ChiefClient::Create(proxy_.address(), absl::Seconds(2));
  // The first call may find a machine that is busy; it makes the connection.
  absl::StatusOr<wire::JobStatus> first;
  do {
    first = client->GetStatus();
  } while (absl::IsDeadlineExceeded(first.status()));
  ASSERT_OK(first);
  proxy_.Stall();
  EXPECT_THAT(client->GetStatus(), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                            HasSubstr(proxy_.address())));
  // The old connection would keep every call until gRPC's keepalive closes it.
  ASSERT_OK_AND_ASSIGN(const wire::JobStatus status, client->GetStatus());
  EXPECT_EQ(status.global_step(), 7);
}

TEST_F(ChiefClientTest, EachCallNamesTheNewestChiefThatHasAnswered) {
  const auto client = ChiefClient::Create(
      absl::StrCat("127.0.0.1:", server_->port()), absl::Seconds(60));
  for (const int64_t epoch : {3, 5, 4}) {
    chief_.epoch_ = epoch;
    ASSERT_OK(client->Heartbeat({}));
  }
  EXPECT_EQ(chief_.heard_of_, 5);
  ASSERT_OK(client->ClaimSteps({}));
  EXPECT_EQ(chief_.heard_of_, 5);
}

TEST_F(ChiefClientTest, ACallAfterTheAnswerOfAReplacedChiefIsANewConnections) {
  const auto client = ChiefClient::Create(
      absl::StrCat("127.0.0.1:", server_->port()), absl::Seconds(60));
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(client->Leave({}), StatusIs(absl::StatusCode::kUnavailable,
                                            HasSubstr("chief 4 was replaced")));
  }
  EXPECT_EQ(chief_.peers(), 3u);
}

}  // namespace
}  // namespace parasol
