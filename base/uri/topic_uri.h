#ifndef PARASOL_BASE_URI_TOPIC_URI_H_
#define PARASOL_BASE_URI_TOPIC_URI_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace parasol {

// The name of a topic of Kafka, "kafka://broker:9092,broker2:9092/clicks". All
// of it may be shown: it never has credentials.
struct TopicUri {
  std::string brokers;  // "broker:9092,broker2:9092"
  std::string topic;    // "clicks"

  // Returns the name of what `path`, which begins with the topic, is there.
  std::string Of(absl::string_view path) const;
};

// Returns true if `path` begins with "kafka://".
bool IsTopicUri(absl::string_view path);

// Returns the parts of a topic's URI. Pure.
//   InvalidArgument  another scheme, no brokers, a broker that is no host:port,
//                    a topic that Kafka would not have, or credentials, none of
//                    which is shown.
absl::StatusOr<TopicUri> ParseTopicUri(absl::string_view uri);

}  // namespace parasol

#endif  // PARASOL_BASE_URI_TOPIC_URI_H_
