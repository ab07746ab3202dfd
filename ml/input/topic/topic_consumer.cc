#include "ml/input/topic/topic_consumer.h"

#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <set>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "base/log.h"
#include "base/shown_text.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

constexpr char kVariable[] = "PARASOL_KAFKA_CONFIG";
constexpr absl::Duration kLogInterval = absl::Seconds(10);
constexpr int kWarning = 4;  // severity in syslog's sense
constexpr size_t kErrorBytes = 512;

// What the consumer decides, whatever a user's file says.
struct Property {
  const char* name;
  const char* value;
};
constexpr std::array<Property, 11> kOwn = {{
    {"enable.auto.commit", "false"},
    {"isolation.level", "read_committed"},
    {"auto.offset.reset", "error"},
    {"enable.partition.eof", "true"},
    {"allow.auto.create.topics", "false"},
    {"check.crcs", "true"},
    // More than a slice has: librdkafka rests for a second when its queue is
    // full.
    {"queued.min.messages", "100000"},
    {"queued.max.messages.kbytes", "65536"},
    {"fetch.error.backoff.ms", "100"},
    // What is read is there: a broker that has nothing more answers soon.
    {"fetch.wait.max.ms", "20"},
    {"reconnect.backoff.max.ms", "2000"},
}};

struct ConfDeleter {
  void operator()(rd_kafka_conf_t* conf) const { rd_kafka_conf_destroy(conf); }
};
using Conf = std::unique_ptr<rd_kafka_conf_t, ConfDeleter>;

bool IsBrokers(absl::string_view name) {
  return name == "bootstrap.servers" || name == "metadata.broker.list";
}

absl::Status Set(rd_kafka_conf_t* conf, const std::string& name,
                 const std::string& value) {
  char error[kErrorBytes];
  if (rd_kafka_conf_set(conf, name.c_str(), value.c_str(), error,
                        sizeof(error)) == RD_KAFKA_CONF_OK) {
    return absl::OkStatus();
  }
  // The error may show a value, which may be secret.
  return absl::InvalidArgumentError(absl::StrCat(
      "librdkafka ", rd_kafka_version_str(), " does not take this value of ",
      ShownText(name), ", or has no such property"));
}

absl::Status ReadSettings(const std::string& path, rd_kafka_conf_t* conf) {
  std::ifstream file(path);
  if (!file) {
    return absl::InvalidArgumentError(absl::StrCat(
        kVariable, "=", OneLine(path), ": the file can't be read"));
  }
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    const absl::string_view text = absl::StripAsciiWhitespace(line);
    if (text.empty() || text.front() == '#') continue;
    const size_t equals = text.find('=');
    if (equals == absl::string_view::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat(kVariable, "=", OneLine(path), ", line ", number,
                       ": is no name=value"));
    }
    const std::string name(absl::StripAsciiWhitespace(text.substr(0, equals)));
    if (IsBrokers(name)) continue;
    RETURN_IF_ERROR(
        Set(conf, name,
            std::string(absl::StripAsciiWhitespace(text.substr(equals + 1)))))
        << kVariable << "=" << OneLine(path) << ", line " << number;
  }
  // A folder is opened like a file, and a disk may refuse in the middle.
  if (file.bad()) {
    return absl::InvalidArgumentError(
        absl::StrCat(kVariable, "=", OneLine(path),
                     ": can't be read to its end; name a file"));
  }
  return absl::OkStatus();
}

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(absl::ToInt64Milliseconds(duration));
}

}  // namespace

class TopicConsumer::Connection {
 public:
  Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    if (topic_ != nullptr) rd_kafka_topic_destroy(topic_);
    if (client_ != nullptr) rd_kafka_destroy(client_);
  }

  absl::Status Open(const Options& options) {
    Conf conf(rd_kafka_conf_new());
    if (!options.settings.empty()) {
      RETURN_IF_ERROR(ReadSettings(options.settings, conf.get()));
    }
    for (const Property& own : kOwn) {
      RETURN_IF_ERROR(Set(conf.get(), own.name, own.value));
    }
    RETURN_IF_ERROR(
        Set(conf.get(), "bootstrap.servers", options.topic.brokers));
    rd_kafka_conf_set_opaque(conf.get(), this);
    rd_kafka_conf_set_log_cb(conf.get(), Log);
    char error[kErrorBytes];
    client_ = rd_kafka_new(RD_KAFKA_CONSUMER, conf.get(), error, sizeof(error));
    if (client_ == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("librdkafka can't begin: ", OneLine(error)));
    }
    conf.release();  // NOLINT: the client owns it now
    topic_ = rd_kafka_topic_new(client_, options.topic.topic.c_str(), nullptr);
    if (topic_ == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("librdkafka refuses the topic ", options.topic.topic,
                       ": ", rd_kafka_err2str(rd_kafka_last_error())));
    }
    return absl::OkStatus();
  }

  rd_kafka_t* client() const { return client_; }
  rd_kafka_topic_t* topic() const { return topic_; }

  // Returns ": " and what librdkafka has said last; "" if it is nothing.
  std::string LastWords() const {
    absl::MutexLock lock(&mu_);
    return last_words_.empty() ? "" : absl::StrCat(": ", last_words_);
  }
  void ForgetWords() {
    absl::MutexLock lock(&mu_);
    last_words_.clear();
  }

 private:
  // Called by librdkafka's threads.
  static void Log(const rd_kafka_t* client, int level, const char* /*facility*/,
                  const char* text) {
    if (level > kWarning) return;
    const std::string shown = OneLine(text);
    LOG_EVERY(WARNING, kLogInterval) << "librdkafka: " << shown;
    auto* const self = static_cast<Connection*>(rd_kafka_opaque(client));
    if (self == nullptr) return;
    absl::MutexLock lock(&self->mu_);
    self->last_words_ = shown;
  }

  mutable absl::Mutex mu_;
  std::string last_words_ ABSL_GUARDED_BY(mu_);
  rd_kafka_t* client_ = nullptr;
  rd_kafka_topic_t* topic_ = nullptr;
};

// One reading of a slice: partitions are read at a time, and each is left where
// its range ends.
class TopicConsumer::Reading {
 public:
  Reading(const TopicConsumer& consumer, const TopicSlice& slice)
      : options_(consumer.options_),
        connection_(*consumer.connection_),
        slice_(slice),
        queue_(rd_kafka_queue_new(connection_.client())) {}
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  ~Reading() {
    while (!open_.empty()) Leave(*open_.begin());
    rd_kafka_queue_destroy(queue_);
  }

  absl::Status Run(absl::FunctionRef<absl::Status(const TopicRecord&)> take) {
    RETURN_IF_ERROR(Begin());
    absl::Time until = options_.clock->Now() + options_.patience;
    while (!open_.empty()) {
      rd_kafka_message_t* const message = rd_kafka_consume_queue(
          queue_, std::max(1, Milliseconds(until - options_.clock->Now())));
      if (message == nullptr) {
        if (options_.clock->Now() < until) continue;
        return NothingComes();
      }
      const absl::Cleanup destroy = [message] {
        rd_kafka_message_destroy(message);
      };
      const auto range = std::find_if(
          slice_.ranges.begin(), slice_.ranges.end(), [&](const auto& each) {
            return each.partition == message->partition;
          });
      if (range == slice_.ranges.end()) {
        RETURN_IF_ERROR(Refused(*message));
        continue;
      }
      const auto place = static_cast<size_t>(range - slice_.ranges.begin());
      if (!open_.contains(place)) continue;
      const bool is_end = message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
      if (!is_end) {
        RETURN_IF_ERROR(Refused(*message));
        // An error that may pass has no record.
        if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) continue;
        // Bytes come: whoever gives them is not lost.
        until = options_.clock->Now() + options_.patience;
      }
      // Offsets have gaps, where records were compacted or not committed.
      if (message->offset >= range->end) {
        Leave(place);
        continue;
      }
      if (is_end || message->offset < next_[place]) continue;
      next_[place] = message->offset + 1;
      RETURN_IF_ERROR(take(RecordOf(*message, place)));
      if (message->offset + 1 == range->end) Leave(place);
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Begin() {
    next_.resize(slice_.ranges.size());
    for (size_t i = 0; i < slice_.ranges.size(); ++i) {
      const OffsetRange& range = slice_.ranges[i];
      next_[i] = range.begin;
      if (range.begin == range.end) continue;
      if (rd_kafka_consume_start_queue(connection_.topic(), range.partition,
                                       range.begin, queue_) != 0) {
        return absl::UnavailableError(absl::StrCat(
            Where(range.partition),
            ": can't be read: ", rd_kafka_err2str(rd_kafka_last_error())));
      }
      open_.insert(i);
    }
    return absl::OkStatus();
  }

  void Leave(size_t place) {
    rd_kafka_consume_stop(connection_.topic(), slice_.ranges[place].partition);
    open_.erase(place);
  }

  static TopicRecord RecordOf(const rd_kafka_message_t& message, size_t place) {
    TopicRecord record = {.range = place, .offset = message.offset};
    rd_kafka_timestamp_type_t type;
    record.milliseconds = rd_kafka_message_timestamp(&message, &type);
    if (message.payload != nullptr) {
      record.value = absl::string_view(
          static_cast<const char*>(message.payload), message.len);
    }
    return record;
  }

  // Returns what an error that has come instead of a record is to the caller.
  absl::Status Refused(const rd_kafka_message_t& message) const {
    if (message.err == RD_KAFKA_RESP_ERR_NO_ERROR) return absl::OkStatus();
    const std::string what = absl::StrCat(
        Where(message.partition), ": ",
        OneLine(message.payload != nullptr ? rd_kafka_message_errstr(&message)
                                           : rd_kafka_err2str(message.err)));
    switch (message.err) {
      case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
      case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
        return absl::NotFoundError(absl::StrCat(
            what,
            "; the broker has deleted records that this run has not trained: "
            "keep them for longer (retention.ms)"));
      case RD_KAFKA_RESP_ERR__BAD_MSG:
      case RD_KAFKA_RESP_ERR__BAD_COMPRESSION:
        return absl::DataLossError(what);
      // librdkafka connects again.
      case RD_KAFKA_RESP_ERR__TRANSPORT:
      case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
      case RD_KAFKA_RESP_ERR__TIMED_OUT:
        return absl::OkStatus();
      default:
        return absl::UnavailableError(what);
    }
  }

  absl::Status NothingComes() const {
    const size_t place = *open_.begin();
    return absl::UnavailableError(absl::StrCat(
        Where(slice_.ranges[place].partition), " gives nothing from offset ",
        next_[place], " on for ", absl::FormatDuration(options_.patience),
        ", and this run needs the records up to ", slice_.ranges[place].end - 1,
        connection_.LastWords()));
  }

  std::string Where(int32_t partition) const {
    return absl::StrCat("kafka://", options_.topic.brokers, "/",
                        options_.topic.topic, " partition ", partition);
  }

  const Options& options_;
  const Connection& connection_;
  const TopicSlice& slice_;
  rd_kafka_queue_t* const queue_;
  std::set<size_t> open_;      // ranges that are not read to their ends
  std::vector<int64_t> next_;  // for each range, the offset behind the last
};

TopicConsumer::TopicConsumer(Options options,
                             std::unique_ptr<Connection> connection)
    : options_(std::move(options)), connection_(std::move(connection)) {}

TopicConsumer::~TopicConsumer() = default;

std::string TopicConsumer::SettingsOfEnvironment() {
  const char* const value = std::getenv(kVariable);
  return value == nullptr ? "" : value;
}

absl::StatusOr<std::unique_ptr<TopicConsumer>> TopicConsumer::Create(
    Options options) {
  auto connection = std::make_unique<Connection>();
  RETURN_IF_ERROR(connection->Open(options));
  return std::unique_ptr<TopicConsumer>(
      new TopicConsumer(std::move(options), std::move(connection)));
}

absl::StatusOr<std::vector<PartitionOffsets>> TopicConsumer::Offsets() {
  const std::string where = absl::StrCat("kafka://", options_.topic.brokers,
                                         "/", options_.topic.topic);
  connection_->ForgetWords();
  const auto unavailable = [&](absl::string_view what,
                               rd_kafka_resp_err_t error) {
    return absl::UnavailableError(absl::StrCat(
        where, what, ": ", rd_kafka_err2str(error), connection_->LastWords()));
  };
  const int patience = Milliseconds(options_.patience);
  const rd_kafka_metadata_t* metadata = nullptr;
  rd_kafka_resp_err_t error =
      rd_kafka_metadata(connection_->client(), /*all_topics=*/0,
                        connection_->topic(), &metadata, patience);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return unavailable(": no broker says what the topic has", error);
  }
  const absl::Cleanup destroy = [metadata] {
    rd_kafka_metadata_destroy(metadata);
  };
  if (metadata->topic_cnt != 1) {
    return absl::UnavailableError(
        absl::StrCat(where, ": the broker names no topic"));
  }
  const rd_kafka_metadata_topic_t& topic = metadata->topics[0];
  if (topic.err != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return unavailable(": the topic can't be read", topic.err);
  }
  const auto count = static_cast<size_t>(std::max(0, topic.partition_cnt));
  if (count > kMaxPartitions) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, " has ", count, " partitions, and a training set at most ",
        kMaxPartitions));
  }
  using List = rd_kafka_topic_partition_list_t;
  const auto make = [] { return rd_kafka_topic_partition_list_new(16); };
  const std::unique_ptr<List, void (*)(List*)> ends[] = {
      {make(), rd_kafka_topic_partition_list_destroy},
      {make(), rd_kafka_topic_partition_list_destroy}};
  std::set<int32_t> partitions;
  for (size_t i = 0; i < count; ++i) {
    if (topic.partitions[i].err != RD_KAFKA_RESP_ERR_NO_ERROR &&
        topic.partitions[i].err != RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE) {
      return unavailable(absl::StrCat(" partition ", topic.partitions[i].id),
                         topic.partitions[i].err);
    }
    partitions.insert(topic.partitions[i].id);
  }
  constexpr int64_t kAsked[] = {RD_KAFKA_OFFSET_BEGINNING, RD_KAFKA_OFFSET_END};
  std::vector<PartitionOffsets> offsets;
  for (const int32_t partition : partitions) offsets.push_back({partition});
  for (const int which : {0, 1}) {
    List* const list = ends[which].get();
    for (const int32_t partition : partitions) {
      rd_kafka_topic_partition_list_add(list, options_.topic.topic.c_str(),
                                        partition)
          ->offset = kAsked[which];
    }
    error = partitions.empty() ? RD_KAFKA_RESP_ERR_NO_ERROR
                               : rd_kafka_offsets_for_times(
                                     connection_->client(), list, patience);
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
      return unavailable(": no broker says where the partitions end", error);
    }
    for (PartitionOffsets& each : offsets) {
      const rd_kafka_topic_partition_t* const found =
          rd_kafka_topic_partition_list_find(list, options_.topic.topic.c_str(),
                                             each.partition);
      if (found == nullptr || found->err != RD_KAFKA_RESP_ERR_NO_ERROR ||
          found->offset < 0) {
        return unavailable(
            absl::StrCat(" partition ", each.partition,
                         ": its broker does not say where it ends"),
            found == nullptr ? RD_KAFKA_RESP_ERR_UNKNOWN : found->err);
      }
      (which == 0 ? each.low : each.high) = found->offset;
    }
  }
  return offsets;
}

absl::Status TopicConsumer::Read(
    const TopicSlice& slice,
    absl::FunctionRef<absl::Status(const TopicRecord&)> take) {
  connection_->ForgetWords();
  return Reading(*this, slice).Run(take);
}

}  // namespace parasol
