#ifndef PARASOL_CLUSTER_PROGRESS_TRAINING_JOURNAL_H_
#define PARASOL_CLUSTER_PROGRESS_TRAINING_JOURNAL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cluster/progress/training_progress.h"
#include "proto/job.pb.h"
#include "storage/event_file.h"

namespace parasol {

// Returns one line without its newline:
//   {"global_step":1200,"epoch":1.5,"loss":0.1,"learning_rate":0.001,
//    "examples_per_second":3000,"seconds":41.2,"run_id":"9f0c"}
// The losses of the model's named outputs are behind "loss", as "ctr/loss", and
// then the values that a program has recorded;
// "from_step" is behind "global_step", and "staleness" behind
// "examples_per_second", where there is one. What is not known or not finite is
// null.
std::string ToJsonLine(const ProgressRecord& record, const std::string& run_id,
                       const std::vector<std::string>& outputs = {});

// Returns the names of the model's named outputs.
std::vector<std::string> OutputNames(const job::Model& model);

// The record of a run's training beside its checkpoints: the file
// training.jsonl, and TensorBoard's event files in tensorboard/train. Written
// by the directory's owner. Not thread-safe.
class TrainingJournal {
 public:
  struct Options {
    std::string checkpoint_directory;
    std::string run_id;
    // The step at which the run begins or goes on.
    int64_t first_step = 0;
    std::vector<std::string> outputs = {};  // OutputNames()
    bool has_event_files = true;
    // Returns an error if the directory has another owner now. A store's
    // training.jsonl is written anew with each addition, so it is asked before.
    std::function<absl::Status()> check_owner = [] { return absl::OkStatus(); };
  };

  // Opens the record for the run: removes the lines of later steps than
  // `first_step`, which the run has gone back behind, and all lines of other
  // runs. Fails as ReadFile() and ReplaceFileDurably() do.
  static absl::StatusOr<std::unique_ptr<TrainingJournal>> Open(Options options);

  ~TrainingJournal();

  // The time of the training by the last line that is left.
  absl::Duration elapsed() const { return elapsed_; }

  // Appends a record to both files. The line has from_step if that is not where
  // the line before it ends. The second one is written also if the first
  // can't be. What is added within kSyncInterval may be lost with the machine,
  // but not with the process: a disk would hold up a training of short epochs.
  // After a failure that is a longer time, up to kMostPause: a store that is
  // away holds up the caller for most of a minute.
  absl::Status Add(const ProgressRecord& record, absl::Time now);

 private:
  explicit TrainingJournal(Options options);
  // Removes lines from the file, and sets elapsed_ and last_step_.
  absl::Status Clean();

  // Returns true if what was added is to survive the machine from now on.
  bool IsSyncDue(absl::Time now);
  absl::Status AddLine(const std::string& line, bool is_synced);

  static constexpr absl::Duration kSyncInterval = absl::Seconds(10);
  static constexpr absl::Duration kMostPause = absl::Minutes(10);

  const Options options_;
  const std::string path_;
  absl::Time next_sync_ = absl::InfinitePast();
  // Time until the next attempt; it begins when the last one has ended, which
  // is known when something is added again.
  absl::Duration pause_ = kSyncInterval;
  bool has_failed_ = false;
  absl::Duration elapsed_;
  int64_t last_step_ = 0;
  std::optional<EventFile> events_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_PROGRESS_TRAINING_JOURNAL_H_
