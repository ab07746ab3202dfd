#ifndef PARASOL_COORDINATOR_STEPS_TOLD_BATCHES_H_
#define PARASOL_COORDINATOR_STEPS_TOLD_BATCHES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "google/protobuf/repeated_ptr_field.h"
#include "proto/chief.pb.h"

namespace parasol {

// The batches of a worker's steps, as the worker tells them to a chief that has
// not granted them. Steps are numbered from 0. Pure.
class ToldBatches {
 public:
  // Number of ranges that are taken, more than a worker keeps and holds (of
  // worker/step/granted_steps.h). Of the steps behind them nothing is known.
  static constexpr size_t kMaxRanges = 1 << 17;

  // Steps that follow each other, and whose batches do.
  struct Run {
    // The first step's batch; nullopt: the batches are not known.
    std::optional<int64_t> first;
    int64_t count = 0;  // steps; at least 1
  };

  // Nothing is known.
  ToldBatches() = default;
  // Takes the batches of step `begin` and following. A range that can't be is
  // one whose batches are not known.
  ToldBatches(
      int64_t begin,
      const google::protobuf::RepeatedPtrField<wire::BatchRange>& ranges);

  // Returns true if no batch is known.
  bool empty() const { return known_.empty(); }
  // Returns the steps from `step` on of which the same is known.
  Run From(int64_t step) const;

 private:
  struct Known {
    int64_t begin = 0;  // the first step
    Run run;
  };

  std::vector<Known> known_;  // ascending steps
};

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_STEPS_TOLD_BATCHES_H_
