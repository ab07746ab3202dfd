#include "cluster/rpc/peer.h"

#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/rpc/channel.h"
#include "cluster/rpc/server.h"
#include "grpcpp/client_context.h"
#include "gtest/gtest.h"
#include "proto/parameter.grpc.pb.h"

namespace parasol {
namespace {

class PeerNotingService : public wire::ParameterService::Service {
 public:
  grpc::Status Snapshot(grpc::ServerContext* call, const wire::SnapshotRequest*,
                        wire::SnapshotResponse*) override {
    peer = PeerOf(*call);
    return grpc::Status::OK;
  }

  std::optional<PeerIdentity> peer = PeerIdentity();
};

TEST(PeerTest, ConnectionInClearTextProvesNothing) {
  PeerNotingService service;
  ASSERT_OK_AND_ASSIGN(const auto server,
                       RpcServer::Start("127.0.0.1:0", {&service}));
  const auto stub = wire::ParameterService::NewStub(
      MakeControlChannel(absl::StrCat("127.0.0.1:", server->port())));
  grpc::ClientContext context;
  wire::SnapshotResponse response;
  ASSERT_TRUE(stub->Snapshot(&context, {}, &response).ok());
  EXPECT_EQ(service.peer, std::nullopt);
}

}  // namespace
}  // namespace parasol
