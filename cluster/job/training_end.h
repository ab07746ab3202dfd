#ifndef PARASOL_CLUSTER_JOB_TRAINING_END_H_
#define PARASOL_CLUSTER_JOB_TRAINING_END_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "proto/checkpoint.pb.h"
#include "proto/job.pb.h"

namespace parasol {

// The end of a job that ends by itself only: end.never, and the end.steps of a
// program with a loop of its own.
inline constexpr int64_t kEndless = int64_t{1} << 50;

// The end of a job, in steps of the cluster: at end.steps, or when each of the
// training examples has been seen end.epochs times, whichever is first. The
// last batch of an epoch may be smaller: an epoch has as many steps as the set
// has batches, counted shard by shard; in synchronous training, where a step
// has a batch of every shard, as many as the largest shard has. A fraction is
// rounded up to a step. An end in epochs needs a worker's report of the number
// of examples. What a run has seen before it goes on counts as it was: its
// epochs may have had more or fewer steps. Pure.
class TrainingEnd {
 public:
  explicit TrainingEnd(const job::Job& job);

  // Goes on from a checkpoint of the step `step`, whose manifest has `seen`,
  // and whose job had `examples_per_step` in a step (0: not known), by which
  // epochs are counted that `seen` does not know. What no chief can have
  // written counts as not known. Call it before all others.
  void GoOn(const durable::EpochsSeen& seen, int64_t step,
            int64_t examples_per_step = 0);
  // Returns what a checkpoint is to have.
  durable::EpochsSeen Seen() const;

  // Takes a worker's count of the examples of the whole training set, and of
  // each of its shards; without shards, they are as even as can be.
  //   InvalidArgument  another worker has counted differently: batches are
  //                    numbers in one set, which all workers have; or there are
  //                    none and the end depends on them; or a shard has none.
  absl::Status ObserveExamples(int64_t train_examples,
                               absl::Span<const int64_t> shard_examples = {});
  // Returns true if a worker has counted.
  bool has_examples() const { return train_examples_.has_value(); }

  // Returns the number of batches of an epoch in each shard; empty while no
  // worker has reported shards.
  std::vector<int64_t> ShardBatches() const;

  // Returns the number of steps of an epoch; nullopt while no worker has
  // reported examples.
  std::optional<int64_t> steps_per_epoch() const {
    return has_examples() && *train_examples_ > 0
               ? std::optional<int64_t>(StepsPerEpoch())
               : std::nullopt;
  }

  // Returns the number of examples that replicas or workers see in an epoch,
  // together; nullopt while no worker has reported it, and where each replica
  // has the whole set.
  std::optional<int64_t> examples_per_epoch() const {
    return total_replicas_ > 0 && has_whole_shards_ ? std::nullopt
                                                    : train_examples_;
  }

  // Returns the last step, which may be one that the run has behind it; nullopt
  // while it depends on a count that no worker has reported.
  std::optional<int64_t> step() const;

 private:
  absl::Status CheckExamples(int64_t train_examples,
                             absl::Span<const int64_t> shard_examples) const;
  int64_t StepsPerEpoch() const;
  // Returns the step and the epochs from which on epochs have the present
  // number of steps.
  durable::EpochsSeen Base() const;

  const job::TrainingEnd end_;
  const int64_t batch_size_;
  const int64_t total_replicas_;  // 0: not synchronous
  // True if a replica's shard is the whole set: an epoch then has as many steps
  // as if the set were split.
  const bool has_whole_shards_;
  std::optional<int64_t> train_examples_;
  std::vector<int64_t> shard_examples_;
  // Epochs and step of the checkpoint that the run goes on from.
  durable::EpochsSeen seen_;
  int64_t resumed_step_ = 0;
  int64_t examples_per_step_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_TRAINING_END_H_
