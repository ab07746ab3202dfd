#include "coordinator/followed_run.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace parasol {

absl::Status ResumeFollowed(CoordinatorOptions& options) {
  const bool follows = options.job.train().follow();
  const bool has_followed = options.resumed && options.resumed->has_followed();
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
  const durable::FollowedSet& set = options.resumed->followed();
  const int32_t was = options.resumed->job().train().batch_size();
  const int32_t is = options.job.train().batch_size();
  if (was != is && !set.file().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "train.batch_size is ", is, ", but files were taken in batches of ",
        was,
        " and are not trained: keep it, or change it in a job that was "
        "stopped when it waited for data"));
  }
  ASSIGN_OR_RETURN(options.followed, FollowedFiles::Of(set));
  return absl::OkStatus();
}

}  // namespace parasol
