#include "cluster/client/ps_client.h"

#include <algorithm>
#include <cstdint>
#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "cluster/rpc/channel.h"
#include "cluster/rpc/status.h"
#include "grpcpp/client_context.h"
#include "proto/parameter.grpc.pb.h"

namespace parasol {
namespace {

constexpr absl::Duration kPrepareDeadline = absl::Seconds(2);

class GrpcPsClient : public PsClient {
 public:
  GrpcPsClient(const std::string& address, absl::Duration call_deadline)
      : address_(address),
        peer_(absl::StrCat("ps at ", address)),
        call_deadline_(call_deadline) {}

  absl::StatusOr<wire::LoadResponse> Load(
      const wire::LoadRequest& request) override {
    return Call(&wire::ParameterService::Stub::Load, request);
  }
  absl::StatusOr<wire::SnapshotResponse> Snapshot(
      const wire::SnapshotRequest& request) override {
    return Call(&wire::ParameterService::Stub::Snapshot, request);
  }

  absl::StatusOr<wire::PrepareSnapshotResponse> PrepareSnapshot(
      const wire::PrepareSnapshotRequest& request) override {
    return Call(&wire::ParameterService::Stub::PrepareSnapshot, request,
                kPrepareDeadline);
  }

  void CancelCalls() override {
    absl::MutexLock lock(&mu_);
    for (grpc::ClientContext* call : calls_) call->TryCancel();
  }

 private:
  // The connection to one incarnation of the ps.
  struct Connection {
    uint64_t incarnation = 0;
    std::shared_ptr<grpc::Channel> channel;
    std::unique_ptr<wire::ParameterService::Stub> stub;
  };

  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(
      grpc::Status (wire::ParameterService::Stub::*rpc)(grpc::ClientContext*,
                                                        const Request&,
                                                        Response*),
      const Request& request,
      absl::Duration deadline = absl::InfiniteDuration()) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(
        Clock::Real().Now() + std::min(deadline, call_deadline_)));
    const std::shared_ptr<Connection> connection =
        Begin(request.order().incarnation(), context);
    // It may have come back a moment ago.
    ReconnectNow(*connection->channel);
    Response response;
    const grpc::Status status =
        (connection->stub.get()->*rpc)(&context, request, &response);
    End(connection, context, status);
    if (!status.ok()) return FromGrpcStatus(status, peer_);
    return response;
  }

  std::shared_ptr<Connection> Begin(uint64_t incarnation,
                                    grpc::ClientContext& call) {
    absl::MutexLock lock(&mu_);
    calls_.insert(&call);
    if (connection_ == nullptr || connection_->incarnation != incarnation) {
      connection_ = std::make_shared<Connection>();
      connection_->incarnation = incarnation;
      connection_->channel = MakeControlChannel(address_);
      connection_->stub = wire::ParameterService::NewStub(connection_->channel);
    }
    return connection_;
  }

  void End(const std::shared_ptr<Connection>& connection,
           grpc::ClientContext& call, const grpc::Status& status) {
    // Perhaps another process has answered.
    const bool is_refused =
        status.error_code() == grpc::StatusCode::FAILED_PRECONDITION;
    absl::MutexLock lock(&mu_);
    calls_.erase(&call);
    if (is_refused && connection_ == connection) connection_ = nullptr;
  }

  const std::string address_;
  const std::string peer_;
  const absl::Duration call_deadline_;

  absl::Mutex mu_;
  std::shared_ptr<Connection> connection_ ABSL_GUARDED_BY(mu_);
  std::set<grpc::ClientContext*> calls_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

std::unique_ptr<PsClient> PsClient::Create(const std::string& address,
                                           absl::Duration call_deadline) {
  return std::make_unique<GrpcPsClient>(address, call_deadline);
}

}  // namespace parasol
