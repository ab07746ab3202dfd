#ifndef PARASOL_CLUSTER_CHECKPOINT_ORDER_GATE_H_
#define PARASOL_CLUSTER_CHECKPOINT_ORDER_GATE_H_

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "proto/parameter.pb.h"

namespace parasol {

// The checks on a chief's orders before a ps, or a worker that has the
// variables, carries them out: they must be meant for this process, come from
// the newest chief that it knows of, and let it write only where checkpoints
// are being made. Thread-safe.
class OrderGate {
 public:
  // `task` is the name of the ps, "ps/1", and `incarnation` its process.
  OrderGate(std::string task, uint64_t incarnation);

  // Notes the chief with which the ps has registered, and its checkpoint
  // directory. A chief that a newer one has replaced changes nothing.
  void Registered(int64_t chief_epoch, const std::string& checkpoint_directory)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the checkpoint directory of the chief that ordered, empty if it
  // keeps none. A chief's first order may overtake its answer to the
  // registration, so this waits up to `limit` for that.
  //   Unavailable  the answer has not come; the order may be sent again.
  absl::StatusOr<std::string> AwaitDirectory(const wire::OrderHeader& order,
                                             Clock& clock,
                                             absl::Duration limit) const
      ABSL_LOCKS_EXCLUDED(mu_);

  // Returns OK if the order may be looked at; changes nothing.
  //   FailedPrecondition  the order is meant for another process, comes from a
  //                       chief that another one has replaced, or has a smaller
  //                       number than one before; the message names both.
  //   InvalidArgument     no chief has such an epoch or number.
  absl::Status Check(const wire::OrderHeader& order) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // Checks the order as Check() does, and notes its chief and number: older
  // ones are refused from then on. Call it when nothing in the order stands
  // against carrying it out, and before the order changes anything.
  absl::Status Accept(const wire::OrderHeader& order) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns OK if a snapshot may be written to the file `name` in `directory`:
  // a checkpoint's working directory in the chief's checkpoint directory.
  //   InvalidArgument     the directory is another one, or the name is not
  //                       plain.
  //   FailedPrecondition  the ps has yet to register.
  absl::Status CheckSnapshotFile(const std::string& directory,
                                 const std::string& name) const
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Status CheckNewest(const wire::OrderHeader& order) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string task_;
  const uint64_t incarnation_;

  mutable absl::Mutex mu_;
  int64_t chief_epoch_ ABSL_GUARDED_BY(mu_) = 0;
  // The largest number of that chief's orders.
  int64_t number_ ABSL_GUARDED_BY(mu_) = 0;
  // Epoch of the chief with which the ps registered last; -1 before.
  int64_t registered_epoch_ ABSL_GUARDED_BY(mu_) = -1;
  std::string checkpoint_directory_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_ORDER_GATE_H_
