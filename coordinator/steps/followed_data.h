#ifndef PARASOL_COORDINATOR_STEPS_FOLLOWED_DATA_H_
#define PARASOL_COORDINATOR_STEPS_FOLLOWED_DATA_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "coordinator/steps/followed_files.h"
#include "coordinator/steps/step_plan.h"
#include "proto/checkpoint.pb.h"
#include "proto/chief.pb.h"

namespace parasol {

// Findings of a look for new files of a training set that grows.
struct FollowedLook {
  // Files that were taken since the last look, in order; they are recorded.
  std::vector<durable::FollowedFile> files = {};
  // Number of files that were found and are not taken yet.
  int64_t left = 0;
  // Number of records, about, that were found and are in no file yet.
  int64_t left_records = 0;
  // Number of files that were left out since the start, and why the last was.
  int64_t skipped = 0;
  std::string skipped_why = {};
  // Why files can't be looked for or read now; empty: they can.
  std::string trouble = {};
  // Why the job fails: a file is of no use, and the job says to stop.
  absl::Status failure = absl::OkStatus();
};

// A training set that grows, as the chief follows it: which batches there are,
// which are trained, and since when there are none. Pure.
class FollowedData {
 public:
  // `pattern` is shown to people.
  FollowedData(std::string pattern, FollowedFiles files)
      : pattern_(std::move(pattern)), files_(std::move(files)) {}

  // Takes what a look has found.
  //   InvalidArgument  a file is not the next one.
  absl::Status Take(const FollowedLook& look, absl::Time now);
  // Looks at how far the job is. `is_training`: it would go on if there were
  // records.
  void Observe(const StepPlan& plan, bool is_training, absl::Time now);

  const FollowedFiles& files() const { return files_; }
  // Returns true while all records that there are have been trained.
  bool IsWaiting() const { return waits_since_.has_value(); }
  void AddTo(wire::JobStatus& status, int64_t global_step,
             absl::Time now) const;

 private:
  const std::string pattern_;
  FollowedFiles files_;
  FollowedLook look_;  // the last one, without its files
  bool has_looked_ = false;
  int64_t taken_ = 0;  // number of files, by this chief
  std::optional<absl::Time> newest_at_;
  std::optional<absl::Time> waits_since_;
};

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_STEPS_FOLLOWED_DATA_H_
