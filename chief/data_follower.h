#ifndef PARASOL_CHIEF_DATA_FOLLOWER_H_
#define PARASOL_CHIEF_DATA_FOLLOWER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "chief/followed_log.h"
#include "chief/grown_files.h"
#include "chief/new_files.h"
#include "coordinator/steps/followed_data.h"
#include "ml/input/feature/model_inputs.h"
#include "ml/input/topic/topic_source.h"
#include "proto/job.pb.h"

namespace parasol {

// Follows a training set that grows, on a thread of its own: looks for new
// files, counts their records, records them in the run's log, and tells of them
// then. A file is read once, here, and stays whole: one that changes while it
// is counted is tried again, and holds up those behind it. Of a topic the files
// are its slices, which are cut here.
class DataFollower {
 public:
  // Time between two looks; more if it takes long to list the folders.
  static constexpr absl::Duration kInterval = absl::Seconds(1);
  // How long records of a topic that make no whole batch wait for others.
  static constexpr absl::Duration kRestWaits = absl::Seconds(10);

  struct Options {
    // `train`, with its defaults, and what the model reads of it.
    job::Dataset dataset;
    ModelInputs inputs;
    std::string data_dir;
    // Called with each look, by this thread. Returns false while no more files
    // are to be taken.
    std::function<bool(const FollowedLook&)> on_look;
    // Asked before a file is recorded: an error if the directory has another
    // owner.
    std::function<absl::Status()> check_owner;
    absl::Duration interval = kInterval;
    absl::Duration rest_waits = kRestWaits;
    // The topic that the set is; null: it is files.
    std::shared_ptr<TopicSource> topic = nullptr;
    // Counts the records of a file by its name; null: as the dataset says.
    // Tests choose it.
    std::function<absl::StatusOr<int64_t>(const std::string&)> count = nullptr;
  };

  // Prepares to go on behind `files`, as the coordinator has them. `clock` must
  // outlive this object.
  DataFollower(Options options, FollowedLog log, const FollowedFiles& files,
               Clock& clock);
  ~DataFollower() { Stop(); }

  // Begins to follow. Called once.
  void Start();
  // Ends the thread; a file that is being counted is read to its end first, and
  // not taken. May be called twice, by one thread.
  void Stop();

 private:
  // Outcome of counting a file that was found.
  struct Counted {
    enum class Kind { kWhole, kLater, kLeftOut, kFailed };
    Kind kind = Kind::kWhole;
    int64_t bytes = 0;
    int64_t records = 0;
    std::string why = {};  // reason; of kWhole, why some records are left out
  };

  void Run();
  // Waits until it is time for the next look. Returns false if this object
  // stops.
  bool Pause();
  void Look();
  void LookAtFolders();
  void LookAtTopic();
  // Returns what follows the slice that was taken last, and notes what there is
  // behind it; nullopt: the job fails.
  std::optional<SliceCut> Cut(const std::vector<PartitionOffsets>& offsets);
  // Takes the file, or leaves it out. Returns false if the look ends with it.
  bool Take(const std::string& name);
  // Names files that have grown since they were taken.
  void LookAtSizes();
  Counted Count(const std::string& name) const;
  Counted CountSlice(const std::string& name);
  // Returns the outcome of counting the `bytes` bytes of a file.
  Counted OutcomeOf(const absl::StatusOr<int64_t>& records, int64_t bytes,
                    const std::string& name) const;
  absl::StatusOr<int64_t> CountRecords(const std::string& name) const;
  void LeaveOut(const std::string& why);
  bool IsStopping() ABSL_LOCKS_EXCLUDED(mu_);

  const Options options_;
  const std::vector<std::string> patterns_;
  Clock& clock_;
  FollowedLog log_;
  // The position alone: files that are told of are forgotten here.
  FollowedFiles files_;
  NewFiles names_;
  GrownFiles sizes_;
  FollowedLook look_;
  bool has_room_ = true;
  bool was_full_ = false;  // the last look ended for want of room
  bool has_looked_ = false;
  // Time at which a topic's records are taken that make no whole batch.
  absl::Time takes_rest_at_ = absl::InfiniteFuture();
  absl::Duration listing_;  // time that the last look took for the folders
  absl::Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_DATA_FOLLOWER_H_
