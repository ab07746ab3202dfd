#ifndef PARASOL_ML_INPUT_SHARDING_H_
#define PARASOL_ML_INPUT_SHARDING_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "ml/input/example_order.h"
#include "proto/job.pb.h"

namespace parasol {

// The 64 random bits of (seed, number): the finalizer of SplitMix64 over both.
uint64_t RandomBits(uint64_t seed, uint64_t number);

// The examples of a set that a data set's Split has left. Immutable.
class Selection {
 public:
  // `file_starts` as ExampleSet has them. A split that is not set leaves all.
  Selection(const std::vector<int64_t>& file_starts, const job::Split* split);

  int64_t size() const { return file_starts_.back(); }
  // The example at a position, from 0 to size() - 1; ascending.
  int64_t operator[](int64_t position) const {
    return is_everything_ ? position : examples_[position];
  }
  // As those of the set, but of positions.
  const std::vector<int64_t>& file_starts() const { return file_starts_; }

 private:
  bool is_everything_;
  std::vector<int64_t> examples_;
  std::vector<int64_t> file_starts_;
};

// The positions of a selection that one reader has.
class Shard {
 public:
  struct Options {
    int shard = 0;
    int num_shards = 1;
    int64_t shuffle_buffer = 0;
    uint64_t seed = 0;
  };

  // `policy` is one of the job's, of which AUTO is FILE where that leaves no
  // shard empty, DATA otherwise: the same for all shards.
  //   InvalidArgument  there is no such shard, or it would be empty, or FILE
  //                    has fewer files than shards.
  static absl::StatusOr<Shard> Create(const Selection& selection,
                                      job::Dataset::AutoShard policy,
                                      const Options& options);

  // Over the numbers that PositionOf() takes.
  const ShardOrder& order() const { return order_; }
  int64_t size() const;
  int64_t PositionOf(int64_t number) const;

 private:
  struct Range {
    int64_t first_number;
    int64_t first_position;
  };

  void AddFile(int64_t begin, int64_t end);

  ShardOrder order_;
  std::vector<Range> ranges_;  // none: a number is its position
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_SHARDING_H_
