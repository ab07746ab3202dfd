#ifndef PARASOL_ML_INPUT_TOPIC_TOPIC_CONSUMER_H_
#define PARASOL_ML_INPUT_TOPIC_TOPIC_CONSUMER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/uri/topic_uri.h"
#include "ml/input/topic/topic_slice.h"

namespace parasol {

// A record of a topic.
struct TopicRecord {
  size_t range = 0;  // number of the slice's range that it is in
  int64_t offset = 0;
  int64_t milliseconds = 0;  // time that its writer says; -1: none
  std::optional<absl::string_view> value = std::nullopt;  // nullopt: null
};

// A connection to a topic's brokers, by librdkafka. It is in no group and
// commits no offset. Not thread-safe; connects when it is asked for something.
class TopicConsumer {
 public:
  struct Options {
    TopicUri topic;
    // Path of a file of librdkafka's properties, "name=value" lines, such as
    // SASL and TLS need; "": none. What the consumer sets itself is not taken.
    std::string settings = SettingsOfEnvironment();
    // How long brokers may give nothing that is awaited.
    absl::Duration patience = absl::Seconds(60);
    Clock* clock = &Clock::Real();
  };

  // Returns the value of PARASOL_KAFKA_CONFIG; "" if it is not set.
  static std::string SettingsOfEnvironment();

  //   InvalidArgument  the file can't be read, or librdkafka refuses a line:
  //                    names the file, the line and the property.
  static absl::StatusOr<std::unique_ptr<TopicConsumer>> Create(Options options);
  ~TopicConsumer();

  // Returns the offsets of all partitions, ascending: up to the last one that
  // readers of committed records see.
  //   InvalidArgument  there are more than kMaxPartitions.
  //   Unavailable      brokers, topic or a partition don't answer, or refuse:
  //                    names them.
  absl::StatusOr<std::vector<PartitionOffsets>> Offsets();

  // Reads a slice: calls `take` for each of its records, in the order of each
  // partition. Stops at its error, and returns it.
  //   NotFound     the broker has deleted some of it.
  //   DataLoss     what the broker has is damaged.
  //   Unavailable  as for Offsets().
  absl::Status Read(const TopicSlice& slice,
                    absl::FunctionRef<absl::Status(const TopicRecord&)> take);

 private:
  class Connection;  // objects of librdkafka
  class Reading;

  TopicConsumer(Options options, std::unique_ptr<Connection> connection);

  const Options options_;
  const std::unique_ptr<Connection> connection_;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_TOPIC_TOPIC_CONSUMER_H_
