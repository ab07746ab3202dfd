#ifndef PARASOL_PS_PARAMETER_SERVICE_H_
#define PARASOL_PS_PARAMETER_SERVICE_H_

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "proto/parameter.grpc.pb.h"
#include "ps/exchange_service.h"
#include "ps/parameter_server.h"
#include "ps/ps_metrics.h"

namespace parasol {

// gRPC in and out of a ParameterServer. The gRPC server must be gone before it
// is destroyed.
class ParameterService
    : public wire::ParameterService::WithRawCallbackMethod_Exchange<
          wire::ParameterService::Service> {
 public:
  // `server` and `metrics` must outlive it.
  ParameterService(ParameterServer& server, PsMetrics& metrics)
      : server_(server), metrics_(metrics) {}

  grpc::Status Load(grpc::ServerContext*, const wire::LoadRequest* request,
                    wire::LoadResponse* response) override;
  grpc::Status Snapshot(grpc::ServerContext*,
                        const wire::SnapshotRequest* request,
                        wire::SnapshotResponse* response) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Exchange(
      grpc::CallbackServerContext*) override ABSL_LOCKS_EXCLUDED(mu_);

  // Ends all streams, and those that come, with Unavailable, after the answers
  // to what has been read. Does not wait. May be called twice.
  void Drain() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Forget(ExchangeStream* stream) ABSL_LOCKS_EXCLUDED(mu_);

  ParameterServer& server_;
  PsMetrics& metrics_;

  absl::Mutex mu_;
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
  absl::flat_hash_set<ExchangeStream*> streams_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_PS_PARAMETER_SERVICE_H_
