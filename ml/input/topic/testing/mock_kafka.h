#ifndef PARASOL_ML_INPUT_TOPIC_TESTING_MOCK_KAFKA_H_
#define PARASOL_ML_INPUT_TOPIC_TESTING_MOCK_KAFKA_H_

#include <librdkafka/rdkafka.h>
// Behind the other.
#include <librdkafka/rdkafka_mock.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace parasol {

// Brokers of Kafka in this process, on ports that others can connect to. A
// partition keeps about 5 MB.
class MockKafka {
 public:
  explicit MockKafka(int brokers = 1);
  MockKafka(const MockKafka&) = delete;
  MockKafka& operator=(const MockKafka&) = delete;
  ~MockKafka();

  // Returns "kafka://host:port/topic".
  std::string Uri(absl::string_view topic) const;
  void Create(const std::string& topic, int partitions);
  // Writes a record; nullopt: one whose value is null. It is there when this
  // returns.
  void Write(const std::string& topic, int partition,
             std::optional<absl::string_view> value, int64_t milliseconds = 0);
  // Writes a record that is there when Flush() returns.
  void Add(const std::string& topic, int partition,
           std::optional<absl::string_view> value, int64_t milliseconds = 0);
  void Flush();

  rd_kafka_mock_cluster_t* cluster() { return cluster_; }

 private:
  rd_kafka_t* owner_;
  rd_kafka_mock_cluster_t* cluster_;
  rd_kafka_t* producer_;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_TOPIC_TESTING_MOCK_KAFKA_H_
