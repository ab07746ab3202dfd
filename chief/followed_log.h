#ifndef PARASOL_CHIEF_FOLLOWED_LOG_H_
#define PARASOL_CHIEF_FOLLOWED_LOG_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/steps/followed_files.h"
#include "proto/checkpoint.pb.h"

namespace parasol {

// The files that chiefs of a run have taken of a training set that grows, in
// the file followed.jsonl of the checkpoint directory: a line for each. A chief
// writes a file's line before any worker hears of its batches, so the next
// chief gives them the same numbers. Not thread-safe.
class FollowedLog {
 public:
  // Number of the newest lines that a chief keeps when it begins.
  static constexpr int kMaxLines = 1 << 16;

  // Opens the log, and adds to `files`, which has what the checkpoint says, the
  // files that were taken after it. Lines of other runs, and those that can't
  // follow, are removed.
  //   any  as for ReadFile() and ReplaceFileDurably().
  static absl::StatusOr<FollowedLog> Open(const std::string& directory,
                                          const std::string& run_id,
                                          FollowedFiles& files);

  // Adds a file's line, which survives a loss of power.
  absl::Status Append(const durable::FollowedFile& file);

 private:
  FollowedLog(std::string path, std::string run_id)
      : path_(std::move(path)), run_id_(std::move(run_id)) {}

  std::string path_;
  std::string run_id_;
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_FOLLOWED_LOG_H_
