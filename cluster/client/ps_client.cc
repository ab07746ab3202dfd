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
      : call_deadline_(call_deadline),
        own_(std::move(callee)),
        address_(address),
        channel_(std::make_shared<ControlChannel>(address, own_)) {}

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

  void MoveTo(const std::string& address, std::optional<int> host) override {
    absl::MutexLock lock(&mu_);
    if (address.empty() || address == address_) return;
    address_ = address;
    channel_ = std::make_shared<ControlChannel>(
        address, host ? Callee::Ps(own_.trust, *host) : own_);
  }

  void CancelCalls() override {
    absl::MutexLock lock(&mu_);
    for (grpc::ClientContext* call : calls_) call->TryCancel();
  }

 private:
  // The way that a call takes.
  struct Route {
    std::string address;
    std::shared_ptr<ControlChannel> to;
    std::shared_ptr<grpc::Channel> channel;
  };

  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(
      grpc::Status (wire::ParameterService::Stub::*rpc)(grpc::ClientContext*,
                                                        const Request&,
                                                        Response*),
      const Request& request,
      absl::Duration deadline = absl::InfiniteDuration()) {
    grpc::ClientContext context;
    context.set_deadline(DeadlineIn(std::min(deadline, call_deadline_)));
    const Route route = Begin(request.order().incarnation(), context);
    const auto stub = wire::ParameterService::NewStub(route.channel);
    // It may have come back a moment ago.
    ReconnectNow(*route.channel);
    Response response;
    const grpc::Status status =
        (stub.get()->*rpc)(&context, request, &response);
    End(route, context, status);
    if (!status.ok()) {
      return FromGrpcStatus(status, absl::StrCat("ps at ", route.address));
    }
    return response;
  }

  // Each process of the ps gets a connection of its own: one that was replaced
  // may still answer over the old one.
  Route Begin(uint64_t incarnation, grpc::ClientContext& call) {
    absl::MutexLock lock(&mu_);
    calls_.insert(&call);
    if (std::exchange(incarnation_, incarnation) != incarnation) {
      channel_->Drop();
    }
    return {address_, channel_, channel_->Get()};
  }

  void End(const Route& route, grpc::ClientContext& call,
           const grpc::Status& status) {
    route.to->NoteResult(route.channel, status);
    absl::MutexLock lock(&mu_);
    calls_.erase(&call);
    // Perhaps another process has answered.
    if (status.error_code() == grpc::StatusCode::FAILED_PRECONDITION) {
      route.to->Drop();
    }
  }

  const absl::Duration call_deadline_;
  // The place's own process, as a callee.
  const Callee own_;

  absl::Mutex mu_;
  std::string address_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<ControlChannel> channel_ ABSL_GUARDED_BY(mu_);
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
