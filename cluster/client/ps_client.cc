#include "cluster/client/ps_client.h"

#include <algorithm>
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
      : peer_(absl::StrCat("ps at ", address)),
        call_deadline_(call_deadline),
        channel_(MakeControlChannel(address)),
        stub_(wire::ParameterService::NewStub(channel_)) {}

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
    context.set_deadline(absl::ToChronoTime(
        Clock::Real().Now() + std::min(deadline, call_deadline_)));
    // It may have come back a moment ago.
    ReconnectNow(*channel_);
    {
      absl::MutexLock lock(&mu_);
      calls_.insert(&context);
    }
    Response response;
    const grpc::Status status =
        (stub_.get()->*rpc)(&context, request, &response);
    {
      absl::MutexLock lock(&mu_);
      calls_.erase(&context);
    }
    if (!status.ok()) return FromGrpcStatus(status, peer_);
    return response;
  }

  const std::string peer_;
  const absl::Duration call_deadline_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<wire::ParameterService::Stub> stub_;

  absl::Mutex mu_;
  std::set<grpc::ClientContext*> calls_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

std::unique_ptr<PsClient> PsClient::Create(const std::string& address,
                                           absl::Duration call_deadline) {
  return std::make_unique<GrpcPsClient>(address, call_deadline);
}

}  // namespace parasol
