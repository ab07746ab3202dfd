#ifndef PARASOL_TOOL_CHECKPOINT_INSPECTION_H_
#define PARASOL_TOOL_CHECKPOINT_INSPECTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/checkpoint.pb.h"
#include "storage/checkpoint_reader.h"
#include "tool/checkpoint/array_statistics.h"

namespace parasol {

// Contents of one checkpoint: its manifest, and statistics of all its values.
struct Inspection {
  // One array of a variable or table: the value, or a slot.
  struct Array {
    std::string name;  // "value", or the slot's name
    ArrayStatistics statistics = {};
  };
  struct Contents {
    int64_t rows = 0;     // rows of a table
    int64_t updates = 0;  // largest number of updates that elements have had
    std::vector<Array> arrays;
  };

  std::string path;
  durable::CheckpointManifest manifest;
  std::vector<Contents> variables;  // order of manifest.variable()
  std::vector<Contents> tables;     // order of manifest.table()
  std::vector<ShardJournal> journals;
};

// Reads all of the checkpoint at `path`, as CheckpointAt() understands it, and
// verifies its files. Fails as OpenCheckpointAt() does, and with
//   DataLoss  the checkpoint is damaged; the message names the file.
absl::StatusOr<Inspection> Inspect(const std::string& path);

// Returns the inspection for people, as lines.
std::string ToText(const Inspection& inspection);

// Returns the inspection as one JSON object, with its newline. A number that is
// not finite is null.
std::string ToJson(const Inspection& inspection);

}  // namespace parasol

#endif  // PARASOL_TOOL_CHECKPOINT_INSPECTION_H_
