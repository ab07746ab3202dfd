#ifndef PARASOL_ML_INPUT_INPUT_SHARD_H_
#define PARASOL_ML_INPUT_INPUT_SHARD_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "ml/input/example_order.h"
#include "proto/job.pb.h"

namespace parasol {

// Returns 64 random bits for (seed, number): SplitMix64's finalizer over both.
uint64_t RandomBits(uint64_t seed, uint64_t number);

// The examples of a set that a data set's Split selects. Immutable.
class Selection {
 public:
  // Selects from the set with `file_starts`. A null split selects all examples.
  Selection(const std::vector<int64_t>& file_starts, const job::Split* split);

  int64_t size() const { return file_starts_.back(); }
  // Returns the example at a position, 0 to size() - 1; ascending.
  int64_t operator[](int64_t position) const {
    return is_everything_ ? position : examples_[position];
  }
  // Position of each file's first example, then size().
  const std::vector<int64_t>& file_starts() const { return file_starts_; }

 private:
  bool is_everything_;
  std::vector<int64_t> examples_;
  std::vector<int64_t> file_starts_;
};

// The positions of a selection that one reader gets.
class InputShard {
 public:
  struct Options {
    int shard = 0;
    int num_shards = 1;
    int64_t shuffle_buffer = 0;
    uint64_t seed = 0;
  };

  // Returns the shard of `options`. `policy` is the job's. AUTO is FILE if that
  // leaves no shard empty, otherwise DATA; the result is the same for all
  // shards.
  //   InvalidArgument  there is no such shard, or it would be empty, or FILE
  //                    has fewer files than shards.
  static absl::StatusOr<InputShard> Create(const Selection& selection,
                                           job::Dataset::AutoShard policy,
                                           const Options& options);

  // Order of the numbers that PositionOf() takes.
  const InputShardOrder& order() const { return order_; }
  int64_t size() const;
  int64_t PositionOf(int64_t number) const;

 private:
  struct Range {
    int64_t first_number;
    int64_t first_position;
  };

  void AddFile(int64_t begin, int64_t end);

  InputShardOrder order_;
  std::vector<Range> ranges_;  // empty: a number is its position
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_INPUT_SHARD_H_
