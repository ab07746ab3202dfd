#include "cluster/rpc/server.h"

#include <sys/resource.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "base/status_matchers.h"
#include "cluster/rpc/channel.h"
#include "grpc/compression.h"
#include "grpc/support/time.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "proto/parameter.grpc.pb.h"

namespace parasol {
namespace {

using testing::HasSubstr;

// grpc.health.v1: an empty request asks for the whole server; the answer's
// field 1 is the state.
constexpr char kServing[] = "\x08\x01";
constexpr char kNotServing[] = "\x08\x02";

struct Reply {
  grpc::Status status;
  std::string bytes;
};

Reply Check(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(gpr_time_from_seconds(30, GPR_TIMESPAN));
  const grpc::ByteBuffer request(nullptr, 0);
  grpc::ByteBuffer response;
  absl::Notification done;
  Reply reply;
  stub.UnaryCall(&context, "/grpc.health.v1.Health/Check", {}, &request,
                 &response, [&](grpc::Status status) {
                   reply.status = status;
                   done.Notify();
                 });
  done.WaitForNotification();
  std::vector<grpc::Slice> slices;
  if (reply.status.ok() && response.Dump(&slices).ok()) {
    for (const grpc::Slice& slice : slices) {
      reply.bytes.append(slice.begin(), slice.end());
    }
  }
  return reply;
}

absl::StatusOr<std::unique_ptr<RpcServer>> StartAt(const std::string& address) {
  static wire::ParameterService::Service* const unimplemented =
      new wire::ParameterService::Service;
  return RpcServer::Start(address, {unimplemented});
}

std::string Local(const RpcServer& server) {
  return absl::StrCat("127.0.0.1:", server.port());
}

// A service whose calls end when they are released.
class HeldService : public wire::ParameterService::Service {
 public:
  grpc::Status Snapshot(grpc::ServerContext*, const wire::SnapshotRequest*,
                        wire::SnapshotResponse*) override {
    released_.WaitForNotification();
    return grpc::Status::OK;
  }
  void Release() { released_.Notify(); }

 private:
  absl::Notification released_;
};

TEST(RpcServerTest, CallsBeyondTheThreadsAreRefusedNotQueued) {
  HeldService service;
  ASSERT_OK_AND_ASSIGN(auto server,
                       RpcServer::Start("127.0.0.1:0", {&service},
                                        RpcServer::ClientLimits{.threads = 4}));
  const auto channel = MakeControlChannel(Local(*server));
  const auto stub = wire::ParameterService::NewStub(channel);
  const auto call = [&stub] {
    grpc::ClientContext context;
    context.set_deadline(gpr_time_from_seconds(30, GPR_TIMESPAN));
    wire::SnapshotResponse response;
    return stub->Snapshot(&context, wire::SnapshotRequest(), &response)
        .error_code();
  };
  absl::Mutex mu;
  int refused = 0;
  int answered = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < 12; ++i) {
    clients.emplace_back([&] {
      const grpc::StatusCode code = call();
      absl::MutexLock lock(&mu);
      refused += code == grpc::StatusCode::RESOURCE_EXHAUSTED;
      answered += code == grpc::StatusCode::OK;
    });
  }
  const auto is_refused = [&] { return refused > 0; };
  {
    absl::MutexLock lock(&mu);
    EXPECT_TRUE(
        mu.AwaitWithTimeout(absl::Condition(&is_refused), absl::Seconds(20)));
  }
  service.Release();
  for (std::thread& client : clients) client.join();
  EXPECT_GT(answered, 0);
  EXPECT_EQ(refused + answered, 12);
  EXPECT_EQ(call(), grpc::StatusCode::OK);
}

// A message of a few KiB that is gigabytes when it is unpacked would be taken
// before anybody looks at it.
TEST(RpcServerTest, CompressedMessagesAreRefused) {
  HeldService service;
  service.Release();
  ASSERT_OK_AND_ASSIGN(auto server,
                       RpcServer::Start("127.0.0.1:0", {&service}));
  const auto stub =
      wire::ParameterService::NewStub(MakeControlChannel(Local(*server)));
  wire::SnapshotRequest request;
  request.set_directory(std::string(1 << 20, 'x'));
  const auto call = [&](grpc_compression_algorithm algorithm) {
    grpc::ClientContext context;
    context.set_deadline(gpr_time_from_seconds(30, GPR_TIMESPAN));
    context.set_compression_algorithm(algorithm);
    wire::SnapshotResponse response;
    return stub->Snapshot(&context, request, &response).error_code();
  };
  EXPECT_EQ(call(GRPC_COMPRESS_NONE), grpc::StatusCode::OK);
  EXPECT_EQ(call(GRPC_COMPRESS_GZIP), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(call(GRPC_COMPRESS_DEFLATE), grpc::StatusCode::UNIMPLEMENTED);
}

TEST(RpcServerTest, LargeHeadersAreRefused) {
  HeldService service;
  service.Release();
  ASSERT_OK_AND_ASSIGN(auto server,
                       RpcServer::Start("127.0.0.1:0", {&service}));
  const auto stub =
      wire::ParameterService::NewStub(MakeControlChannel(Local(*server)));
  const auto call = [&](size_t bytes) {
    grpc::ClientContext context;
    context.set_deadline(gpr_time_from_seconds(30, GPR_TIMESPAN));
    context.AddMetadata("x", std::string(bytes, 'x'));
    wire::SnapshotResponse response;
    return stub->Snapshot(&context, {}, &response).error_code();
  };
  EXPECT_EQ(call(8 << 10), grpc::StatusCode::OK);
  EXPECT_NE(call(64 << 10), grpc::StatusCode::OK);
}

TEST(RpcServerTest, ALackOfDescriptorsIsNoPortInUse) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 3;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const absl::Status status = RpcServer::Start("127.0.0.1:0", {}).status();
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("ulimit -n, which is 3")));
}

TEST(RpcServerTest, HealthSaysServingOnlyWhenTold) {
  ASSERT_OK_AND_ASSIGN(auto server, StartAt("127.0.0.1:0"));
  for (const auto& channel : {MakeControlChannel(Local(*server)),
                              MakeTensorChannel(Local(*server))}) {
    server->SetServing(false);
    EXPECT_EQ(Check(channel).bytes, kNotServing);
    server->SetServing(true);
    EXPECT_EQ(Check(channel).bytes, kServing);
  }
}

TEST(RpcServerTest, HealthIsServedAlone) {
  ASSERT_OK_AND_ASSIGN(auto server, RpcServer::Start("127.0.0.1:0", {}));
  server->SetServing(true);
  EXPECT_EQ(Check(MakeControlChannel(Local(*server))).bytes, kServing);
}

TEST(RpcServerTest, ATakenPortIsAnErrorThatNamesItAndTheOnlyLine) {
  ASSERT_OK_AND_ASSIGN(auto first, StartAt("localhost:0"));
  for (const std::string host : {"localhost", "127.0.0.1", "[::]"}) {
    const std::string address = absl::StrCat(host, ":", first->port());
    testing::internal::CaptureStderr();
    EXPECT_THAT(StartAt(address),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("can't listen on " + address)));
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  }
}

TEST(RpcServerTest, WhatIsNoAddressIsNamed) {
  for (const std::string address : {"", "host", "host:", "host:99999", ":1"}) {
    EXPECT_THAT(StartAt(address), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("\"" + address + "\"")));
  }
}

TEST(RpcServerTest, StoppingTwiceIsAllowedAndThePortIsFreeAgain) {
  ASSERT_OK_AND_ASSIGN(auto server, StartAt("127.0.0.1:0"));
  const std::string address = Local(*server);
  server->Stop(absl::Seconds(30));
  server->Stop(absl::ZeroDuration());
  EXPECT_OK(StartAt(address));
}

TEST(RpcServerTest, PeersAddressBecomesWhereToListen) {
  EXPECT_EQ(RpcServer::ListenAddress("127.0.0.1:2222"), "127.0.0.1:2222");
  EXPECT_EQ(RpcServer::ListenAddress("localhost:2222"), "localhost:2222");
  EXPECT_EQ(RpcServer::ListenAddress("[::1]:2222"), "[::1]:2222");
  EXPECT_EQ(RpcServer::ListenAddress("ps-0.job:2222"), "[::]:2222");
  EXPECT_EQ(RpcServer::ListenAddress("10.0.0.7:2222"), "[::]:2222");
}

TEST(ChannelTest, AChannelFindsAServerThatStartedLater) {
  std::string address;
  {
    ASSERT_OK_AND_ASSIGN(auto gone, StartAt("127.0.0.1:0"));
    address = Local(*gone);
  }
  auto channel = MakeControlChannel(address);
  EXPECT_EQ(Check(channel).status.error_code(), grpc::StatusCode::UNAVAILABLE);
  ASSERT_OK_AND_ASSIGN(auto server, StartAt(address));
  ASSERT_TRUE(
      channel->WaitForConnected(gpr_time_from_seconds(30, GPR_TIMESPAN)));
  EXPECT_EQ(Check(channel).bytes, kNotServing);
}

}  // namespace
}  // namespace parasol
