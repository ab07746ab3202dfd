#ifndef PARASOL_PS_SHARD_PARAMETER_SERVER_H_
#define PARASOL_PS_SHARD_PARAMETER_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "cluster/rpc/payload.h"
#include "proto/parameter.pb.h"
#include "ps/operation/operation.h"
#include "ps/shard/parameter_table.h"
#include "ps/shard/ps_metrics.h"
#include "ps/shard/table_cut.h"
#include "ps/step/non_finite.h"

namespace parasol {

// What one ps answers, whatever carries the questions: it is empty until the
// chief orders it to load, then holds the variables of one run until it is
// ordered to load another. The calls are those of proto/parameter.proto, with
// its errors. Thread-safe.
class ParameterServer {
 public:
  struct Options {
    // Names it in errors: "ps/1".
    std::string task;
    uint64_t memory_limit_bytes = UINT64_MAX;
    NonFinite non_finite = NonFinite::kReject;
  };

  // `clock` and `metrics` must outlive it.
  ParameterServer(Options options, Clock& clock, PsMetrics& metrics);
  ~ParameterServer();

  // While another Load runs, waits for it first:
  //   Unavailable  it takes too long.
  absl::StatusOr<wire::LoadResponse> Load(const wire::LoadRequest& request)
      ABSL_LOCKS_EXCLUDED(mu_);

  // One at a time:
  //   Unavailable      another one is being written.
  //   InvalidArgument  the file's name is not plain.
  // Of synchronous training, waits for the update:
  //   Unavailable      it takes too long.
  //   Cancelled        `is_cancelled`, which is asked now and then.
  absl::StatusOr<wire::SnapshotResponse> Snapshot(
      const wire::SnapshotRequest& request,
      const std::function<bool()>& is_cancelled = [] { return false; })
      ABSL_LOCKS_EXCLUDED(mu_);

  // Carries out one operation of a message. Keeps no reference to the request
  // once it returns. `done` is called before that, or later if the operation
  // has to wait: at the latest when the variables are replaced or the server
  // is destroyed.
  void Execute(const ReceivedRequest& request, size_t operation,
               OperationDone done) ABSL_LOCKS_EXCLUDED(mu_);

  // Answers, now and later, with Unavailable whatever waits for other workers'
  // gradients: operations and snapshots. For a ps that leaves.
  void EndWaits() const ABSL_LOCKS_EXCLUDED(mu_);

  // The run whose variables it holds; empty when there are none.
  std::string run_id() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Shard {
    wire::LoadRequest order;
    std::unique_ptr<ParameterTable> table;
  };

  // Marks the server as loading, unless it holds what `order` asks for: then
  // returns that.
  absl::StatusOr<std::shared_ptr<Shard>> BeginLoad(
      const wire::LoadRequest& order) ABSL_LOCKS_EXCLUDED(mu_);
  void EndLoad(std::shared_ptr<Shard> loaded) ABSL_LOCKS_EXCLUDED(mu_);

  // Answers whoever waits for something in it.
  void Abandon(std::shared_ptr<Shard> shard) const;

  absl::StatusOr<std::shared_ptr<Shard>> ShardOf(absl::string_view run_id) const
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status BeginSnapshot(const std::string& file_name)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<wire::SnapshotResponse> WriteSnapshot(
      const wire::SnapshotRequest& request,
      const std::function<bool()>& is_cancelled);

  // `done`, after counting what the operation came to. Keeps `shard` until
  // then.
  OperationDone CountedPush(std::shared_ptr<Shard> shard, uint64_t bytes,
                            OperationDone done);
  OperationDone CountedPull(std::shared_ptr<Shard> shard, OperationDone done);
  void CountPull(const absl::StatusOr<OperationResult>& result);
  void Reject(const absl::Status& status, const OperationDone& done);

  const Options options_;
  Clock& clock_;
  PsMetrics& metrics_;

  mutable absl::Mutex mu_;
  bool loading_ ABSL_GUARDED_BY(mu_) = false;
  // Null while there are no variables. Requests that are being served keep
  // theirs.
  std::shared_ptr<Shard> shard_ ABSL_GUARDED_BY(mu_);
  // Empty: no snapshot is being written.
  std::string snapshot_file_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_PS_SHARD_PARAMETER_SERVER_H_
