#ifndef PARASOL_PS_SHARD_PARAMETER_SERVER_H_
#define PARASOL_PS_SHARD_PARAMETER_SERVER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
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
#include "ps/shard/parameter_shard.h"
#include "ps/shard/ps_metrics.h"
#include "ps/shard/shard_snapshot.h"
#include "ps/step/non_finite.h"

namespace parasol {

// The state and the operations of one ps, independent of the transport. It is
// empty until the chief orders it to load, then holds the variables of one run
// until the chief orders another load. Its functions are the calls of
// proto/parameter.proto, with their errors. Thread-safe.
class ParameterServer {
 public:
  struct Options {
    // Name of the ps in errors: "ps/1".
    std::string task;
    uint64_t memory_limit_bytes = UINT64_MAX;
    NonFinite non_finite = NonFinite::kReject;
  };

  // `clock` and `metrics` must outlive the server.
  ParameterServer(Options options, Clock& clock, PsMetrics& metrics);
  ~ParameterServer();

  // Waits first for a Load that is still running:
  //   Unavailable  it takes too long.
  absl::StatusOr<wire::LoadResponse> Load(const wire::LoadRequest& request)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Writes the snapshot. One at a time:
  //   Unavailable      another one is being written.
  //   InvalidArgument  the file's name is not plain.
  // In synchronous training it waits for the update:
  //   Unavailable      it takes too long.
  //   Cancelled        `is_cancelled`, which is asked now and then.
  absl::StatusOr<wire::SnapshotResponse> Snapshot(
      const wire::SnapshotRequest& request,
      const std::function<bool()>& is_cancelled = [] { return false; })
      ABSL_LOCKS_EXCLUDED(mu_);

  // Carries out one operation of a message. Keeps no reference to the request
  // after it returns. `done` is called before that, or later if the operation
  // has to wait: at the latest when the variables are replaced or the server is
  // destroyed.
  void Execute(const ReceivedMessage& request, size_t operation,
               OperationDone done) ABSL_LOCKS_EXCLUDED(mu_);

  // Answers every operation and snapshot that waits for other workers'
  // gradients, now and later, with Unavailable. A ps that leaves calls it.
  void EndWaits() const ABSL_LOCKS_EXCLUDED(mu_);

  // The safety of the pushes that a ps has taken.
  enum class Pushes {
    kNone,     // there are none
    kSaved,    // all are in a snapshot that was written
    kUnsaved,  // some would be lost if it ended
  };
  // Applies no more pushes of asynchronous training, so that a snapshot that
  // follows has all that were acknowledged, and answers them with Unavailable:
  // workers resend them to the next ps. A ps that leaves calls it.
  Pushes Seal() const ABSL_LOCKS_EXCLUDED(mu_);

  // The run whose variables the ps holds; empty if it holds none.
  std::string run_id() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Shard {
    Shard(const wire::LoadRequest& order, std::unique_ptr<ParameterShard> table)
        : order(order), table(std::move(table)) {}

    const wire::LoadRequest order;
    const std::unique_ptr<ParameterShard> table;
    // Number of pushes that are in a snapshot that was written.
    std::atomic<int64_t> saved_pushes = 0;
  };

  // Marks the server as loading and returns null. If the server already holds
  // what `order` asks for, returns that instead.
  absl::StatusOr<std::shared_ptr<Shard>> BeginLoad(
      const wire::LoadRequest& order) ABSL_LOCKS_EXCLUDED(mu_);
  void EndLoad(std::shared_ptr<Shard> loaded) ABSL_LOCKS_EXCLUDED(mu_);

  // Ends the waits of all operations and snapshots of `shard`.
  void Abandon(std::shared_ptr<Shard> shard) const;

  absl::StatusOr<std::shared_ptr<Shard>> ShardOf(absl::string_view run_id) const
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status BeginSnapshot(const std::string& file_name)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<wire::SnapshotResponse> WriteSnapshot(
      const wire::SnapshotRequest& request,
      const std::function<bool()>& is_cancelled);

  // Returns a callback that counts the operation's result in the metrics, then
  // calls `done`. It keeps `shard` until then.
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
  // The shard; null while there are no variables. Requests in progress keep a
  // reference to the shard they began with.
  std::shared_ptr<Shard> shard_ ABSL_GUARDED_BY(mu_);
  // The snapshot's file that is being written; empty if there is none.
  std::string snapshot_file_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_PS_SHARD_PARAMETER_SERVER_H_
