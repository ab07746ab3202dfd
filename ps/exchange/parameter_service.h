#ifndef PARASOL_PS_EXCHANGE_PARAMETER_SERVICE_H_
#define PARASOL_PS_EXCHANGE_PARAMETER_SERVICE_H_

#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "cluster/payload_lane/payload_host.h"
#include "cluster/rpc/server.h"
#include "proto/parameter.grpc.pb.h"
#include "ps/exchange/exchange_service.h"
#include "ps/shard/parameter_server.h"
#include "ps/shard/ps_metrics.h"
#include "ps/standby/standby_host.h"

namespace parasol {

// The gRPC service in front of a ParameterServer. The gRPC server must be gone
// before it is destroyed.
class ParameterService : public wire::ParameterService::WithRawMethod_Exchange<
                             wire::ParameterService::Service>,
                         public PolledService,
                         private ExchangeStream::Host {
 public:
  static constexpr int64_t kDefaultBufferBytes = 256 << 20;
  static constexpr int kDefaultThreads = 2;

  // All streams together buffer about `buffer_bytes` (BufferBudget). `lanes`
  // takes the lanes of streams whose workers ask for one; null: there are none.
  // `access` says who may call. `standbys` are for other ps's shards;
  // null: it takes none. `server`, `metrics`, `lanes` and `standbys` must
  // outlive the service.
  ParameterService(ParameterServer& server, PsMetrics& metrics,
                   int64_t buffer_bytes = kDefaultBufferBytes,
                   PayloadHost* lanes = nullptr,
                   ExchangeStream::Access access = {},
                   StandbyHost* standbys = nullptr);

  grpc::Status Load(grpc::ServerContext* context,
                    const wire::LoadRequest* request,
                    wire::LoadResponse* response) override;
  grpc::Status Snapshot(grpc::ServerContext* context,
                        const wire::SnapshotRequest* request,
                        wire::SnapshotResponse* response) override;
  grpc::Status PrepareSnapshot(
      grpc::ServerContext* context, const wire::PrepareSnapshotRequest* request,
      wire::PrepareSnapshotResponse* response) override;

  grpc::Status Follow(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<wire::FollowResponse, wire::FollowRequest>*
          stream) override;
  grpc::Status TakeStandby(
      grpc::ServerContext* context, const wire::TakeStandbyRequest* request,
      grpc::ServerWriter<wire::StandbyState>* writer) override;

  grpc::Service& service() override { return *this; }
  void AcceptOn(grpc::ServerCompletionQueue& queue) override
      ABSL_LOCKS_EXCLUDED(mu_);
  void AwaitNoCalls() override ABSL_LOCKS_EXCLUDED(mu_);

  // Ends all streams, and those that come later, with Unavailable, after
  // sending the results of operations that were read. Does not block. May be
  // called twice.
  void Drain() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void RequestCall(grpc::ServerContext* context, ExchangeStream::Call* call,
                   grpc::ServerCompletionQueue& queue, void* tag) override;
  void OnOpened(const std::shared_ptr<ExchangeStream>& stream,
                grpc::ServerCompletionQueue& queue) override
      ABSL_LOCKS_EXCLUDED(mu_);
  void OnClosed(const std::shared_ptr<ExchangeStream>& stream) override
      ABSL_LOCKS_EXCLUDED(mu_);
  void OnEnded() override ABSL_LOCKS_EXCLUDED(mu_);

  ParameterServer& server_;
  StandbyHost* const standbys_;  // null: none
  const ExchangeStream::Environment environment_;

  absl::Mutex mu_;
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
  // Number of streams, including those that wait for their call.
  int accepting_ ABSL_GUARDED_BY(mu_) = 0;
  absl::flat_hash_set<std::shared_ptr<ExchangeStream>> streams_
      ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_PS_EXCHANGE_PARAMETER_SERVICE_H_
