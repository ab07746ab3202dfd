#ifndef PARASOL_TESTS_SIMULATION_SHARD_VALUES_H_
#define PARASOL_TESTS_SIMULATION_SHARD_VALUES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ps/shard/dedup_window.h"

namespace parasol::simulation {

// Number of a worker's step among all steps of the simulation.
using StepId = uint32_t;

// A set of steps.
class StepSet {
 public:
  bool Contains(StepId step) const {
    return step / 64 < words_.size() && (words_[step / 64] >> step % 64 & 1);
  }
  void Add(StepId step) {
    if (step / 64 >= words_.size()) words_.resize(step / 64 + 1);
    words_[step / 64] |= uint64_t{1} << step % 64;
  }
  // Adds the steps of `all` that `except` lacks.
  void AddDifference(const StepSet& all, const StepSet& except) {
    if (words_.size() < all.words_.size()) words_.resize(all.words_.size());
    for (size_t i = 0; i < all.words_.size(); ++i) {
      const uint64_t lacks =
          i < except.words_.size() ? ~except.words_[i] : ~uint64_t{0};
      words_[i] |= all.words_[i] & lacks;
    }
  }

 private:
  std::vector<uint64_t> words_;
};

// A shard's variables: the steps whose gradients they have, and what belongs to
// them.
struct ShardValues {
  std::string run_id;
  uint64_t layout = 0;
  int hyperparameters = 0;
  // The rate that evaluations have reduced; nullopt: the job's own.
  std::optional<double> learning_rate;
  int shard = 0;
  StepSet applied;
  DedupWindows windows;
  // Number of updates of each chunk (synchronous training), or of the variables
  // (groups).
  std::vector<int64_t> updates;
  // The variables and slots themselves (groups).
  std::vector<float> elements;
};

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_SHARD_VALUES_H_
