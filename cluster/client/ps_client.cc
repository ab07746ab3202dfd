#include "cluster/client/ps_client.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "cluster/rpc/channel.h"
#include "cluster/rpc/control_channel.h"
#include "cluster/rpc/deadline.h"
#include "cluster/rpc/status.h"
#include "grpcpp/client_context.h"
#include "proto/parameter.grpc.pb.h"

namespace parasol {
namespace {

constexpr absl::Duration kPrepareDeadline = absl::Seconds(2);

class GrpcPsClient : public PsClient {
 public:
  GrpcPsClient(const std::string& address, absl::Duration call_deadline,
               Callee callee)
      : peer_(absl::StrCat("ps at ", address)),
        call_deadline_(call_deadline),
        channel_(address, std::move(callee)) {}

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
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(
      grpc::Status (wire::ParameterService::Stub::*rpc)(grpc::ClientContext*,
                                                        const Request&,
                                                        Response*),
      const Request& request,
      absl::Duration deadline = absl::InfiniteDuration()) {
    grpc::ClientContext context;
    context.set_deadline(DeadlineIn(std::min(deadline, call_deadline_)));
    const std::shared_ptr<grpc::Channel> channel =
        Begin(request.order().incarnation(), context);
    const auto stub = wire::ParameterService::NewStub(channel);
    // It may have come back a moment ago.
    ReconnectNow(*channel);
    Response response;
    const grpc::Status status =
        (stub.get()->*rpc)(&context, request, &response);
    End(channel, context, status);
    if (!status.ok()) return FromGrpcStatus(status, peer_);
    return response;
  }

  // Each process of the ps gets a connection of its own: one that was replaced
  // may still answer over the old one.
  std::shared_ptr<grpc::Channel> Begin(uint64_t incarnation,
                                       grpc::ClientContext& call) {
    absl::MutexLock lock(&mu_);
    calls_.insert(&call);
    if (std::exchange(incarnation_, incarnation) != incarnation) {
      channel_.Drop();
    }
    return channel_.Get();
  }

  void End(const std::shared_ptr<grpc::Channel>& channel,
           grpc::ClientContext& call, const grpc::Status& status) {
    channel_.NoteResult(channel, status);
    absl::MutexLock lock(&mu_);
    calls_.erase(&call);
    // Perhaps another process has answered.
    if (status.error_code() == grpc::StatusCode::FAILED_PRECONDITION) {
      channel_.Drop();
    }
  }

  const std::string peer_;
  const absl::Duration call_deadline_;
  ControlChannel channel_;

  absl::Mutex mu_;
  // The process that the channel was made for.
  uint64_t incarnation_ ABSL_GUARDED_BY(mu_) = 0;
  std::set<grpc::ClientContext*> calls_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

std::unique_ptr<PsClient> PsClient::Create(const std::string& address,
                                           absl::Duration call_deadline,
                                           Callee callee) {
  return std::make_unique<GrpcPsClient>(address, call_deadline,
                                        std::move(callee));
}

}  // namespace parasol
