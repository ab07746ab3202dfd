#ifndef PARASOL_COORDINATOR_STEPS_FOLLOWED_FILES_H_
#define PARASOL_COORDINATOR_STEPS_FOLLOWED_FILES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/checkpoint.pb.h"
#include "proto/chief.pb.h"

namespace parasol {

// The files that were taken of a training set that grows, and the batches that
// they have. Batches are numbered from 0 through all files, in the order of the
// files' names, and none has records of two files. Kept are the files of which
// some batch may yet be granted. Pure.
class FollowedFiles {
 public:
  // Number of files that are kept before no more are to be taken.
  static constexpr size_t kMaxKept = 256;
  // Largest number of batches of all files.
  static constexpr int64_t kMaxBatches = int64_t{1} << 50;

  // Begins without files. The first one's batches are `batches` and following.
  explicit FollowedFiles(int64_t batches = 0)
      : batches_(batches), trained_(batches) {}
  // Goes on as a checkpoint says.
  //   DataLoss  no chief can have written it.
  static absl::StatusOr<FollowedFiles> Of(const durable::FollowedSet& set);

  // Returns a file that is to be added next, with its batches.
  durable::FollowedFile Next(absl::string_view path, int64_t bytes,
                             int64_t records, int64_t batch_size) const;
  // Adds a file. One without records has no batches.
  //   InvalidArgument  it is not the next one: its batches do not follow, or
  //                    its name is not greater than the last one's.
  absl::Status Add(const durable::FollowedFile& file);

  // Drops the files of which all batches are among the first `batches`, which
  // nobody will be granted any more.
  void Forget(int64_t batches);
  int64_t trained() const { return trained_; }

  // Number of batches of all files that were taken.
  int64_t batches() const { return batches_; }
  // Name of the file that was taken last; empty: there was none.
  const std::string& last_path() const { return last_path_; }
  bool IsFull() const { return files_.size() >= kMaxKept; }
  // The files that are kept, in order.
  const std::deque<durable::FollowedFile>& kept() const { return files_; }
  // Returns the number of records, about, of the last `batches` batches.
  int64_t RecordsOfLast(int64_t batches) const;

  void AddTo(durable::FollowedSet& set) const;
  // Adds the files of batches from `known` on.
  void AddTo(int64_t known, wire::ClaimStepsResponse& response) const;

 private:
  std::deque<durable::FollowedFile> files_;
  int64_t batches_;
  int64_t trained_;
  std::string last_path_;
};

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_STEPS_FOLLOWED_FILES_H_
