#include "ps/exchange/parameter_service.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cluster/rights/checked_call.h"
#include "cluster/rpc/status.h"
#include "ps/exchange/buffer_budget.h"
#include "ps/exchange/standby_service.h"

namespace parasol {
namespace {

absl::Status ShuttingDown() {
  return absl::UnavailableError("the ps is shutting down");
}

absl::Status NoStandbys() {
  return absl::NotFoundError("this ps takes no standbys");
}

}  // namespace

ParameterService::ParameterService(ParameterServer& server, PsMetrics& metrics,
                                   int64_t buffer_bytes, PayloadHost* lanes,
                                   ExchangeStream::Access access,
                                   StandbyHost* standbys)
    : server_(server),
      standbys_(standbys),
      environment_{.server = server,
                   .metrics = metrics,
                   .budget = BufferBudget::Create(buffer_bytes),
                   .lanes = lanes,
                   .access = std::move(access)} {}

grpc::Status ParameterService::Load(grpc::ServerContext* context,
                                    const wire::LoadRequest* request,
                                    wire::LoadResponse* response) {
  return CheckedCall(environment_.access.rights, Method::kLoad, *context,
                     response, [&] { return server_.Load(*request); });
}

grpc::Status ParameterService::Snapshot(grpc::ServerContext* context,
                                        const wire::SnapshotRequest* request,
                                        wire::SnapshotResponse* response) {
  const auto is_cancelled = [context] { return context->IsCancelled(); };
  return CheckedCall(environment_.access.rights, Method::kSnapshot, *context,
                     response,
                     [&] { return server_.Snapshot(*request, is_cancelled); });
}

grpc::Status ParameterService::PrepareSnapshot(
    grpc::ServerContext* context, const wire::PrepareSnapshotRequest* request,
    wire::PrepareSnapshotResponse* response) {
  return CheckedCall(environment_.access.rights, Method::kPrepareSnapshot,
                     *context, response,
                     [&] { return server_.PrepareSnapshot(*request); });
}

grpc::Status ParameterService::Follow(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<wire::FollowResponse, wire::FollowRequest>*
        stream) {
  if (standbys_ == nullptr) return ToGrpcStatus(NoStandbys());
  return ServeFollow(*standbys_, environment_, *context, *stream);
}

grpc::Status ParameterService::TakeStandby(
    grpc::ServerContext* context, const wire::TakeStandbyRequest* request,
    grpc::ServerWriter<wire::StandbyState>* writer) {
  if (standbys_ == nullptr) return ToGrpcStatus(NoStandbys());
  return ServeTakeStandby(*standbys_, environment_.access.rights, *context,
                          *request, *writer);
}

void ParameterService::AcceptOn(grpc::ServerCompletionQueue& queue) {
  {
    absl::MutexLock lock(&mu_);
    ++accepting_;
  }
  ExchangeStream::Accept(*this, environment_, queue);
}

void ParameterService::AwaitNoCalls() {
  absl::MutexLock lock(&mu_);
  auto has_none = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return accepting_ == 0;
  };
  mu_.Await(absl::Condition(&has_none));
}

void ParameterService::OnEnded() {
  absl::MutexLock lock(&mu_);
  --accepting_;
}

void ParameterService::Drain() {
  absl::flat_hash_set<std::shared_ptr<ExchangeStream>> streams;
  {
    absl::MutexLock lock(&mu_);
    draining_ = true;
    streams = streams_;
  }
  for (const auto& stream : streams) stream->End(ShuttingDown());
  if (standbys_ != nullptr) standbys_->EndAll();
}

void ParameterService::RequestCall(grpc::ServerContext* context,
                                   ExchangeStream::Call* call,
                                   grpc::ServerCompletionQueue& queue,
                                   void* tag) {
  RequestExchange(context, call, &queue, &queue, tag);
}

void ParameterService::OnOpened(const std::shared_ptr<ExchangeStream>& stream,
                                grpc::ServerCompletionQueue& queue) {
  AcceptOn(queue);
  bool draining;
  {
    absl::MutexLock lock(&mu_);
    draining = draining_;
    streams_.insert(stream);
  }
  if (draining) stream->End(ShuttingDown());
}

void ParameterService::OnClosed(const std::shared_ptr<ExchangeStream>& stream) {
  absl::MutexLock lock(&mu_);
  streams_.erase(stream);
}

}  // namespace parasol
