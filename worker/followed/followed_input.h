#ifndef PARASOL_WORKER_FOLLOWED_FOLLOWED_INPUT_H_
#define PARASOL_WORKER_FOLLOWED_FOLLOWED_INPUT_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "ml/input/input_pipeline.h"
#include "ml/input/topic/topic_source.h"
#include "proto/job.pb.h"
#include "worker/step/training_files.h"

namespace parasol {

// The batches of a training set that grows, by number: each of the file that
// the chief has named for it. A file is opened when one of its batches is among
// the next ones, on a thread of its own, and closed when none is. What is in a
// batch depends on its file's records, the job's seed and the batches before
// the file alone. For one thread.
class FollowedInput : public InputPipeline {
 public:
  struct Options {
    job::Dataset dataset;  // the job's, with its defaults
    ModelInputs inputs;
    std::string data_dir;
    uint64_t seed = 0;
    // The topic that the set is; null: it is files.
    std::shared_ptr<TopicSource> topic = nullptr;
  };

  // `files` must outlive this object.
  FollowedInput(Options options, const TrainingFiles& files)
      : options_(std::move(options)), files_(files) {}

  // Returns Unimplemented: each file has readers of its own.
  absl::StatusOr<std::unique_ptr<InputPipeline>> OpenAgain(
      const InputOptions& options) const override;
  // Return nothing: nobody knows how many there will be.
  int64_t total_examples() const override { return 0; }
  absl::StatusOr<std::vector<int64_t>> ShardSizes(
      int num_shards) const override {
    return std::vector<int64_t>();
  }

  void SetNext(const std::vector<int64_t>& numbers) override;
  int64_t skipped_records() const override { return skipped_; }
  // Errors as for InputPipeline::Next() and Open(), and
  //   NotFound     the file, or a part of the slice, has gone since the chief
  //                has counted it.
  //   DataLoss     it has changed since.
  //   Unavailable  the folder has gone that it was in, or brokers don't answer.
  // If corrupt records are skipped, so are all batches of a file that has gone
  // or changed. A batch that the chief has seen trained has nothing in it.
  absl::StatusOr<const Batch*> Next() override;

 private:
  // A file that is open, or being opened.
  struct Reader {
    ~Reader() {
      if (opening.joinable()) opening.join();
    }

    wire::TrainingFile file;
    std::thread opening;
    // Set before is_opened. The file of a topic's slice, which the pipeline
    // reads; null: it reads another one.
    std::unique_ptr<const SliceCopy> slice;
    absl::Notification is_opened;
    // Set before is_opened. Null if the file is left out.
    absl::StatusOr<std::unique_ptr<InputPipeline>> pipeline = nullptr;
    std::vector<int64_t> next;  // numbers in it of its next batches
    bool knows_next = false;    // the pipeline has been told of them
    int64_t counted = 0;        // skipped records of the pipeline
    bool is_wanted = false;
    int64_t lent_at = -1;  // number of the call that returned its last batch
  };

  // Returns the file that has this batch: an open one, though the chief may say
  // that all its batches are trained, or one that it has named.
  std::optional<wire::TrainingFile> FileOf(int64_t batch) const;
  // Returns the reader of a file, and begins to open it if there is none.
  Reader& ReaderOf(const wire::TrainingFile& file);
  absl::StatusOr<std::unique_ptr<InputPipeline>> Open(Reader& reader) const;
  // Returns the name that a data set has the file under. Brings a slice.
  absl::StatusOr<std::string> NameOf(Reader& reader) const;
  // Returns DataLoss if the file has not as many bytes as the chief has seen.
  absl::Status CheckBytes(const wire::TrainingFile& file) const;
  // Closes files that are not wanted and none of whose batches is in use.
  void Close();
  // Returns true for the fault of a file, or of all of its records, if corrupt
  // ones are skipped.
  bool IsLeftOut(const absl::Status& fault) const;
  void TellNext(Reader& reader);
  void CountSkipped(Reader& reader);

  const Options options_;
  const TrainingFiles& files_;
  std::deque<int64_t> numbers_;
  std::map<int64_t, std::unique_ptr<Reader>> readers_;  // key: first batch
  // Readers of files that are not wanted any more, and a batch of which may
  // still be read, or which are being opened.
  std::vector<std::unique_ptr<Reader>> last_;
  int64_t calls_ = 0;  // Next() was called so often
  bool has_named_trained_ = false;
  Batch empty_;
  std::atomic<int64_t> skipped_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_FOLLOWED_FOLLOWED_INPUT_H_
