#include "cluster/client/ps_client.h"

#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "cluster/rpc/channel.h"
#include "cluster/rpc/control_channel.h"
#include "cluster/rpc/status.h"
#include "grpcpp/client_context.h"
#include "proto/parameter.grpc.pb.h"

namespace parasol {
namespace {

class GrpcPsClient : public PsClient {
 public:
  GrpcPsClient(const std::string& address, absl::Duration call_deadline)
      : peer_(absl::StrCat("ps at ", address)),
        call_deadline_(call_deadline),
        channel_(address) {}

  absl::StatusOr<wire::LoadResponse> Load(
      const wire::LoadRequest& request) override {
    return Call(&wire::ParameterService::Stub::Load, request);
  }
  absl::StatusOr<wire::SnapshotResponse> Snapshot(
      const wire::SnapshotRequest& request) override {
    return Call(&wire::ParameterService::Stub::Snapshot, request);
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
      const Request& request) {
    grpc::ClientContext context;
    context.set_deadline(
        absl::ToChronoTime(Clock::Real().Now() + call_deadline_));
    const std::shared_ptr<grpc::Channel> channel = channel_.Get();
    const auto stub = wire::ParameterService::NewStub(channel);
    // It may have come back a moment ago.
    ReconnectNow(*channel);
    {
      absl::MutexLock lock(&mu_);
      calls_.insert(&context);
    }
    Response response;
    const grpc::Status status =
        (stub.get()->*rpc)(&context, request, &response);
    channel_.NoteResult(channel, status);
    {
      absl::MutexLock lock(&mu_);
      calls_.erase(&context);
    }
    if (!status.ok()) return FromGrpcStatus(status, peer_);
    return response;
  }

  const std::string peer_;
  const absl::Duration call_deadline_;
  ControlChannel channel_;

  absl::Mutex mu_;
  std::set<grpc::ClientContext*> calls_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

std::unique_ptr<PsClient> PsClient::Create(const std::string& address,
                                           absl::Duration call_deadline) {
  return std::make_unique<GrpcPsClient>(address, call_deadline);
}

}  // namespace parasol
