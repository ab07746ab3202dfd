#ifndef PARASOL_TESTS_SIMULATION_EVALUATOR_H_
#define PARASOL_TESTS_SIMULATION_EVALUATOR_H_

#include <cstdint>
#include <memory>
#include <set>

#include "proto/checkpoint.pb.h"
#include "tests/simulation/shard_values.h"
#include "tests/simulation/world.h"

namespace parasol::simulation {

// The model of an evaluator: evaluates the oldest checkpoint that it has not
// evaluated, one after the other, and is never hit by a fault. The losses are
// drawn, so that some checkpoints are better than earlier ones.
class Evaluator {
 public:
  // `world` must outlive this object.
  explicit Evaluator(World& world) : world_(world) {}

  // Begins, if the schedule has an evaluator.
  void Start();

 private:
  using Values = std::shared_ptr<const ShardValues>;

  void Look();
  void Finish(int64_t step, const durable::CheckpointManifest& manifest);

  World& world_;
  // The first shards of the checkpoints that were evaluated.
  std::set<Values> evaluated_;
  // The steps of the checkpoints whose results are there.
  std::set<int64_t> steps_;
};

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_EVALUATOR_H_
