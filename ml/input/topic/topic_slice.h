#ifndef PARASOL_ML_INPUT_TOPIC_TOPIC_SLICE_H_
#define PARASOL_ML_INPUT_TOPIC_TOPIC_SLICE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// Slices of a topic of Kafka: what stands for a file where a training set is a
// topic. Pure.
namespace parasol {

// Largest number of a topic's partitions.
inline constexpr size_t kMaxPartitions = 256;
// Number of offsets that a slice has at most, unless a batch is larger.
inline constexpr int64_t kSliceOffsets = int64_t{1} << 16;
// Largest number of offsets of a slice in any case.
inline constexpr int64_t kMaxSliceOffsets = int64_t{1} << 24;

// Offsets of a partition, from `begin` up to but without `end`.
struct OffsetRange {
  int32_t partition = 0;
  int64_t begin = 0;
  int64_t end = 0;

  friend bool operator==(const OffsetRange& a, const OffsetRange& b) {
    return a.partition == b.partition && a.begin == b.begin && a.end == b.end;
  }
};

// A part of a topic: a range of each partition, empty where nothing was new.
// Slices follow each other; where one ends the next one begins, but for what
// was deleted before it was taken.
struct TopicSlice {
  std::string topic;
  int64_t number = 0;               // position of the slice, from 0
  std::vector<OffsetRange> ranges;  // one a partition, ascending

  // Number of offsets. There may be fewer records: offsets have gaps.
  int64_t offsets() const;
  // Returns the slice as a name, "clicks/000000000012@0:100-200,1:80": nothing
  // is new in partition 1, which ends at 80. Names ascend as numbers do.
  std::string Name() const;
};

// Returns the slice of a name, which may be hostile.
//   InvalidArgument  it is no slice of this topic.
absl::StatusOr<TopicSlice> ParseSlice(absl::string_view name,
                                      absl::string_view topic);

// Offsets that a partition has now, from `low` up to but without `high`.
struct PartitionOffsets {
  int32_t partition = 0;
  int64_t low = 0;
  int64_t high = 0;
};

struct SliceCut {
  std::optional<TopicSlice> slice;  // nullopt: there is none to take now
  int64_t left = 0;                 // number of offsets behind it
  int64_t deleted = 0;      // number of offsets that it passes over, all gone
  std::string deleted_why;  // names them; "" if none are
  // Why a partition is not gone on with; "": all are.
  std::string trouble;
};

// Cuts the next slice behind `last` (nullopt: from the oldest offset on). It
// has whole batches of `batch_size` offsets, as far as offsets have no gaps;
// `takes_rest`: the last batch may be smaller.
SliceCut NextSlice(const std::string& topic,
                   const std::optional<TopicSlice>& last,
                   const std::vector<PartitionOffsets>& now, int64_t batch_size,
                   bool takes_rest);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_TOPIC_TOPIC_SLICE_H_
