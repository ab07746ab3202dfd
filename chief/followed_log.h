#ifndef PARASOL_CHIEF_FOLLOWED_LOG_H_
#define PARASOL_CHIEF_FOLLOWED_LOG_H_

#include <cstddef>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "coordinator/steps/followed_files.h"
#include "proto/checkpoint.pb.h"
#include "storage/durable_file.h"

namespace parasol {

// Limits of a FollowedLog. Tests choose others.
struct FollowedLogLimits {
  // Number of the newest lines that are kept when there are twice as many, and
  // when a chief begins.
  size_t lines = size_t{1} << 16;
  // Largest file that is read.
  size_t bytes = size_t{1} << 30;
};

// The files that chiefs of a run have taken of a training set that grows, in
// the file followed.jsonl of the checkpoint directory: a line for each. A chief
// writes a file's line before any worker hears of its batches, so the next
// chief gives them the same numbers. Not thread-safe.
class FollowedLog {
 public:
  // Opens the log, and adds to `files`, which has what the checkpoint says, the
  // files that were taken after it. Lines of other runs, and those that can't
  // follow, are removed.
  //   InvalidArgument  the file is larger than any chief writes.
  //   any other        as for ReadFile() and ReplaceFileDurably().
  static absl::StatusOr<FollowedLog> Open(const std::string& directory,
                                          const std::string& run_id,
                                          FollowedFiles& files,
                                          const FollowedLogLimits& limits = {});

  // The files that Open() has found, in their order.
  struct Known {
    std::vector<std::string> paths = {};
    // True if they are all that the run has taken.
    bool are_all = false;
    // The newest ones, GrownFiles::kWatched at most.
    std::deque<durable::FollowedFile> newest = {};
  };
  // Moves them out.
  Known TakeKnown() { return std::move(known_); }

  // Adds a file's line, which survives a loss of power. In a store each attempt
  // asks `may_write` first, as AppendLineDurably() does.
  absl::Status Append(const durable::FollowedFile& file,
                      MayWrite may_write = MayWriteAlways);

 private:
  FollowedLog(std::string path, std::string run_id,
              const FollowedLogLimits& limits)
      : path_(std::move(path)), run_id_(std::move(run_id)), limits_(limits) {}

  // Returns the text of the file; empty if it is not there.
  absl::StatusOr<std::string> Read();
  // Has the newest of these lines in the file, whose text is `before`.
  absl::Status Keep(absl::Span<const absl::string_view> lines,
                    const std::string& before);

  std::string path_;
  std::string run_id_;
  FollowedLogLimits limits_;
  bool is_there_ = false;
  size_t lines_ = 0;
  Known known_;
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_FOLLOWED_LOG_H_
