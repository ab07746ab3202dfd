#include "base/uri/topic_uri.h"

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace parasol {
namespace {

constexpr absl::string_view kScheme = "kafka://";
constexpr absl::string_view kForm =
    "a topic is named kafka://broker:9092,broker2:9092/topic";
constexpr size_t kMaxTopicBytes = 249;
constexpr size_t kMaxBrokersBytes = 4096;

bool IsOf(absl::string_view text, absl::string_view more) {
  return std::all_of(text.begin(), text.end(), [more](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           absl::StrContains(more, c);
  });
}

bool IsBroker(absl::string_view broker) {
  const size_t colon = broker.rfind(':');
  if (colon == absl::string_view::npos || colon == 0) return false;
  const absl::string_view digits = broker.substr(colon + 1);
  uint32_t port = 0;
  constexpr uint32_t kMaxPort = 65535;
  return IsOf(broker.substr(0, colon), ".-_:[]") &&
         std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit) &&
         absl::SimpleAtoi(digits, &port) && port > 0 && port <= kMaxPort;
}

absl::Status Fault(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(what, "; ", kForm));
}

}  // namespace

std::string TopicUri::Of(absl::string_view path) const {
  return absl::StrCat(kScheme, brokers, "/", path);
}

bool IsTopicUri(absl::string_view path) {
  return absl::StartsWith(path, kScheme);
}

absl::StatusOr<TopicUri> ParseTopicUri(absl::string_view uri) {
  if (!absl::ConsumePrefix(&uri, kScheme)) return Fault("this is no topic");
  if (absl::StrContains(uri, '@')) {
    return Fault(
        "a topic's name has no credentials, which are in the file that "
        "PARASOL_KAFKA_CONFIG names");
  }
  const size_t slash = uri.find('/');
  if (slash == absl::string_view::npos) {
    return Fault("the topic's name is missing");
  }
  const TopicUri parts = {.brokers = std::string(uri.substr(0, slash)),
                          .topic = std::string(uri.substr(slash + 1))};
  if (parts.brokers.size() > kMaxBrokersBytes) {
    return Fault("the list of brokers is too long");
  }
  for (const absl::string_view broker : absl::StrSplit(parts.brokers, ',')) {
    if (!IsBroker(broker)) return Fault("a broker is not host:port");
  }
  if (parts.topic.empty() || parts.topic.size() > kMaxTopicBytes ||
      parts.topic == "." || parts.topic == ".." || !IsOf(parts.topic, "._-")) {
    return Fault(
        "a topic's name has 1 to 249 letters, digits, dots, _ and -, and no "
        "wildcard");
  }
  return parts;
}

}  // namespace parasol
