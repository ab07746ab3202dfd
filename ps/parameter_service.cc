#include "ps/parameter_service.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cluster/rpc/status.h"

namespace parasol {
namespace {

absl::Status ShuttingDown() {
  return absl::UnavailableError("the ps is shutting down");
}

}  // namespace

grpc::Status ParameterService::Load(grpc::ServerContext*,
                                    const wire::LoadRequest* request,
                                    wire::LoadResponse* response) {
  return Answer(server_.Load(*request), response);
}

grpc::Status ParameterService::Snapshot(grpc::ServerContext*,
                                        const wire::SnapshotRequest* request,
                                        wire::SnapshotResponse* response) {
  return Answer(server_.Snapshot(*request), response);
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>*
ParameterService::Exchange(grpc::CallbackServerContext*) {
  auto* stream = new ExchangeStream(
      server_, metrics_, [this](ExchangeStream* done) { Forget(done); });
  absl::MutexLock lock(&mu_);
  streams_.insert(stream);
  if (draining_) stream->End(ShuttingDown());
  return stream;
}

void ParameterService::Drain() {
  // Under the lock no stream can end, and so none can be deleted.
  absl::MutexLock lock(&mu_);
  draining_ = true;
  for (ExchangeStream* stream : streams_) stream->End(ShuttingDown());
}

void ParameterService::Forget(ExchangeStream* stream) {
  absl::MutexLock lock(&mu_);
  streams_.erase(stream);
}

}  // namespace parasol
