#ifndef PARASOL_LOOP_REPLICA_CONTEXT_H_
#define PARASOL_LOOP_REPLICA_CONTEXT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "loop/core/world.h"
#include "ml/tape/tensor.h"

namespace parasol::loop {

// How values of replicas become one.
enum class ReduceOp { kSum, kMean };
inline constexpr ReduceOp kSum = ReduceOp::kSum;
inline constexpr ReduceOp kMean = ReduceOp::kMean;

// One replica, in its step. All replicas of all processes make the same calls
// in the same order; otherwise the step fails on all of them, and the error
// says which call it was.
class ReplicaContext {
 public:
  ReplicaContext(World& world, int local) : world_(world), local_(local) {}

  // This replica's number among all of the program, from 0 on, and among those
  // of its process. Under parameter_server the replicas of one worker are in
  // sync, and there are others.
  int replica_id() const { return world_.replica_id(local_); }
  int local_id() const { return local_; }
  // This replica's number among those whose gradients one update has: which
  // piece of a global batch it computes.
  int replica_id_in_sync_group() const {
    return world_.first_replica() + local_;
  }
  int num_replicas_in_sync() const { return world_.num_replicas(); }
  // Number of steps that were run before this one, in all runs of the program:
  // with replica_id() the key of what is drawn at random.
  int64_t step() const { return world_.steps() - 1; }

  // Returns the sum or the mean of all replicas' values, whose shapes must be
  // the same. A tape has no gradient through it.
  Tensor AllReduce(ReduceOp op, const Tensor& value);
  // Returns all replicas' values, one behind the other along `axis`. Their
  // other sizes must be the same.
  Tensor Gather(const Tensor& value, int axis = 0);

 private:
  World& world_;
  const int local_;
};

}  // namespace parasol::loop

#endif  // PARASOL_LOOP_REPLICA_CONTEXT_H_
