#ifndef PARASOL_ML_INPUT_TOPIC_RECORD_MERGE_H_
#define PARASOL_ML_INPUT_TOPIC_RECORD_MERGE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace parasol {

// A record of a slice, and where its bytes are.
struct PlacedRecord {
  int64_t milliseconds = 0;  // time of the record
  uint64_t begin = 0;        // first byte, where they were put
  uint32_t bytes = 0;
};

// Returns the records of all partitions, each of which has them in its order,
// in one order: of records that are next in their partitions, the oldest one,
// and of equally old ones, the lower partition's. Pure.
std::vector<PlacedRecord> Merged(
    const std::vector<std::vector<PlacedRecord>>& partitions);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_TOPIC_RECORD_MERGE_H_
