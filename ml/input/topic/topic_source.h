#ifndef PARASOL_ML_INPUT_TOPIC_TOPIC_SOURCE_H_
#define PARASOL_ML_INPUT_TOPIC_TOPIC_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "ml/input/topic/slice_copy.h"
#include "ml/input/topic/topic_consumer.h"
#include "ml/input/topic/topic_slice.h"
#include "proto/job.pb.h"

namespace parasol {

// How long brokers may give nothing that a request awaits. A task that is told
// to end waits for the request that it has made.
inline constexpr absl::Duration kBrokerPatience = absl::Seconds(20);

// The topic that a data set is, read in slices. Thread-safe; one request at a
// time. Connects at the first one.
class TopicSource {
 public:
  // A slice as a file.
  struct Brought {
    std::unique_ptr<const SliceCopy> copy;
    int64_t malformed = 0;           // values that are no records, left out
    std::string malformed_why = {};  // names the first one
  };

  // `dataset` is a topic, as ValidateFollow() requires, in a format for which
  // RecordFrameOf() returns something. `settings` as in TopicConsumer.
  //   InvalidArgument  it is none.
  static absl::StatusOr<std::unique_ptr<TopicSource>> Open(
      const std::string& uri, const job::Dataset& dataset,
      std::string settings = TopicConsumer::SettingsOfEnvironment(),
      absl::Duration patience = kBrokerPatience);

  const TopicUri& topic() const { return topic_; }

  // Errors as for TopicConsumer::Create() and Offsets().
  absl::StatusOr<std::vector<PartitionOffsets>> Offsets()
      ABSL_LOCKS_EXCLUDED(mu_);

  // Brings a slice. Its records are in the order of their times, but of each
  // partition in the order of this; a null value is none. Everybody gets the
  // same bytes.
  //   DataLoss   a value is no record, and `skips` is not set: names its place.
  //   any other  as for TopicConsumer::Create() and Read(), and TemporaryFile.
  absl::StatusOr<Brought> Bring(const TopicSlice& slice, bool skips)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Brings the slice of a name.
  //   InvalidArgument  it is none.
  absl::StatusOr<Brought> Bring(const std::string& name, bool skips);

 private:
  TopicSource(TopicUri topic, RecordFrame frame, std::string settings,
              absl::Duration patience)
      : topic_(std::move(topic)),
        frame_(std::move(frame)),
        settings_(std::move(settings)),
        patience_(patience) {}

  absl::Status Connect() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const TopicUri topic_;
  const RecordFrame frame_;
  const std::string settings_;
  const absl::Duration patience_;
  absl::Mutex mu_;
  std::unique_ptr<TopicConsumer> consumer_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_TOPIC_TOPIC_SOURCE_H_
