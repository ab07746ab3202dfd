#ifndef PARASOL_LOOP_CORE_LOCAL_ITERATIONS_H_
#define PARASOL_LOOP_CORE_LOCAL_ITERATIONS_H_

#include <cstdint>
#include <utility>

#include "cluster/job/training_end.h"
#include "loop/peers/peers.h"

namespace parasol::loop {

// The iterations that a worker makes between two exchanges with the ps. To the
// chief an exchange is a step: number n has the iterations n * steps, ...,
// n * steps + steps - 1, the last one those that are left. Pure.
class LocalIterations {
 public:
  // `steps`: of an exchange, 1 or more.
  explicit LocalIterations(int64_t steps) : steps_(steps) {}

  // Says how many iterations all workers make, up to kEndless.
  void EndAfter(int64_t iterations);
  // Returns the number of exchanges that have them.
  int64_t exchanges() const;
  // Returns the number of iterations that so many exchanges have.
  int64_t IterationsOf(int64_t exchanges) const;

  // Begins an exchange, when none is under way.
  void Begin(int64_t exchange);
  bool is_under_way() const { return is_under_way_; }
  // The number of the iteration that is next in it.
  int64_t next() const { return next_; }
  // Counts an iteration of it. Returns true if it was the last one: the
  // exchange is not under way any more.
  bool Add(const Iteration& iteration);
  // Returns what all of the exchange's iterations have said, as one iteration
  // of the cluster.
  Iteration Take() { return std::move(sum_); }

 private:
  const int64_t steps_;
  int64_t end_ = kEndless;  // of the iterations
  bool is_under_way_ = false;
  int64_t next_ = 0;
  Iteration sum_;
};

}  // namespace parasol::loop

#endif  // PARASOL_LOOP_CORE_LOCAL_ITERATIONS_H_
