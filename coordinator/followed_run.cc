#include "coordinator/followed_run.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "cluster/job/followed/followed_set.h"

namespace parasol {
namespace {

// Requires that files which may be trained in part have their records in the
// order that they had.
absl::Status CheckOrder(const CoordinatorOptions& options) {
  if (!options.resumed || options.followed->kept().empty()) {
    return absl::OkStatus();
  }
  // Of those that were taken behind the checkpoint nothing is trained.
  const durable::FollowedFile& file = options.followed->kept().front();
  if (file.first_batch() >= options.resumed->followed().batches()) {
    return absl::OkStatus();
  }
  const std::string changed = ChangedOrder(options.resumed->job(), options.job);
  if (changed.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      changed, ", and the ", file.records(), " records of ",
      OneLine(file.path()),
      ", which are not all trained, would be in another order: keep it, or "
      "change it in a job that was stopped when it waited for data"));
}

}  // namespace

absl::Status ResumeFollowed(CoordinatorOptions& options) {
  const bool follows = options.job.train().follow();
  const bool has_followed = options.resumed && options.resumed->has_followed();
  if (has_followed && !follows &&
      !options.resumed->followed().last_path().empty()) {
    const job::Dataset& was = options.resumed->job().train();
    return absl::InvalidArgumentError(absl::StrCat(
        "train.follow is not set, but this run follows ", FollowedPattern(was),
        ", and would forget which files it has trained: set it, or begin a run "
        "in another checkpoint directory (warm_start takes the values)"));
  }
  if (options.resumed && follows != has_followed) {
    options.resumed->clear_unfinished_batch();
    options.resumed->clear_followed();
  }
  if (!follows) return absl::OkStatus();
  if (!has_followed) {
    options.followed =
        FollowedFiles(options.resumed ? options.resumed->global_step() : 0);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(options.followed,
                   FollowedFiles::Of(options.resumed->followed()));
  // The checkpoint may still keep files whose last batches it has.
  const auto& unfinished = options.resumed->unfinished_batch();
  options.followed->Forget(unfinished.empty() ? options.resumed->global_step()
                                              : unfinished[0].first());
  return CheckFollowed(options);
}

absl::Status CheckFollowed(const CoordinatorOptions& options) {
  if (!options.followed) return absl::OkStatus();
  const job::Dataset& train = options.job.train();
  const bool has_followed = options.resumed && options.resumed->has_followed();
  const job::Dataset& was =
      has_followed ? options.resumed->job().train() : train;
  if (!options.followed->last_path().empty() &&
      !AreOneFollowedSet(was, train)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "train.follow: the files are ", FollowedPattern(train),
        ", but this run has followed ", FollowedPattern(was),
        ", and knows new files by their names: keep these, or begin a run in "
        "another checkpoint directory"));
  }
  RETURN_IF_ERROR(CheckOrder(options));
  const int64_t size = std::max(1, train.batch_size());
  const bool is_changed = was.batch_size() != train.batch_size();
  for (const durable::FollowedFile& file : options.followed->kept()) {
    // Some batches of a checkpoint's file may be done, whatever their number.
    const bool is_in_part =
        is_changed &&
        file.first_batch() < options.resumed->followed().batches();
    if (!is_in_part && file.batches() == (file.records() + size - 1) / size) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "train.batch_size is ", size, ", but the ", file.records(),
        " records of ", OneLine(file.path()), " were taken as ", file.batches(),
        " batches of another size and are not all trained: "
        "keep that size, or change it in a job that was stopped when it waited "
        "for data"));
  }
  return absl::OkStatus();
}

}  // namespace parasol
