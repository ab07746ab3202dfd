#ifndef PARASOL_TOOL_CHECKPOINT_CHECKPOINT_LIST_H_
#define PARASOL_TOOL_CHECKPOINT_CHECKPOINT_LIST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace parasol {

// A checkpoint of a directory: what its manifest says, as far as it could be
// read, and what is wrong with it.
struct CheckpointSummary {
  std::string path;
  int64_t step = 0;
  absl::Time written = absl::InfinitePast();
  // Bytes of all files, with those that other checkpoints share.
  uint64_t bytes = 0;
  int files = 0;
  int increments = 0;  // behind the whole file, of the shard with the most
  bool is_final = false;
  bool is_best = false;  // the file BEST names it
  int journals = 0;      // shards whose files name a place in a journal
  // Each names a file and what is wrong with it; empty: nothing was found.
  std::vector<std::string> damage;
  // Why not all was looked at:
  //   FailedPrecondition  its format_version is not known here.
  //   InvalidArgument, Unavailable  something can't be read now.
  absl::Status unreadable;
};

struct CheckpointList {
  std::string directory;
  // Ascending by step.
  std::vector<CheckpointSummary> checkpoints;

  bool HasDamage() const;
  // Returns the first error of a checkpoint that could not be read.
  absl::Status Unreadable() const;
};

// Parts of the checkpoints that are looked at.
enum class Look {
  kEnds,  // the manifests, the sizes of files, and their ends
  kAll,   // all bytes, too
};

// Lists the checkpoints of a directory, or one of them, if `path` is its own
// directory or "DIR/BEST". A checkpoint that is removed meanwhile is left out;
// one that can't be read says so in its place.
//   NotFound  there is no such directory, or no BEST.
//   DataLoss  BEST is damaged.
//   InvalidArgument, Unavailable  the directory can't be read now.
absl::StatusOr<CheckpointList> ListCheckpoints(const std::string& path,
                                               Look look);

// Returns the list for people, as lines; `now` is the time that ages are of.
std::string ToText(const CheckpointList& list, absl::Time now);

// Returns the list as one JSON object, with its newline.
std::string ToJson(const CheckpointList& list, absl::Time now);

}  // namespace parasol

#endif  // PARASOL_TOOL_CHECKPOINT_CHECKPOINT_LIST_H_
