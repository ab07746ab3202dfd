#include "ml/input/topic/testing/mock_kafka.h"

#include "absl/strings/str_cat.h"
#include "base/log.h"

namespace parasol {
namespace {

rd_kafka_t* Producer(const std::string& brokers) {
  char error[512];
  rd_kafka_conf_t* const conf = rd_kafka_conf_new();
  if (!brokers.empty()) {
    CHECK(rd_kafka_conf_set(conf, "bootstrap.servers", brokers.c_str(), error,
                            sizeof(error)) == RD_KAFKA_CONF_OK)
        << error;
  }
  rd_kafka_conf_set(conf, "linger.ms", "1", error, sizeof(error));
  rd_kafka_t* const producer =
      rd_kafka_new(RD_KAFKA_PRODUCER, conf, error, sizeof(error));
  CHECK(producer != nullptr) << error;
  return producer;
}

}  // namespace

MockKafka::MockKafka(int brokers)
    : owner_(Producer("")),
      cluster_(rd_kafka_mock_cluster_new(owner_, brokers)),
      producer_(Producer(rd_kafka_mock_cluster_bootstraps(cluster_))) {}

MockKafka::~MockKafka() {
  rd_kafka_destroy(producer_);
  rd_kafka_mock_cluster_destroy(cluster_);
  rd_kafka_destroy(owner_);
}

std::string MockKafka::Uri(absl::string_view topic) const {
  return absl::StrCat("kafka://", rd_kafka_mock_cluster_bootstraps(cluster_),
                      "/", topic);
}

void MockKafka::Create(const std::string& topic, int partitions) {
  CHECK(rd_kafka_mock_topic_create(cluster_, topic.c_str(), partitions, 1) ==
        RD_KAFKA_RESP_ERR_NO_ERROR);
}

void MockKafka::Write(const std::string& topic, int partition,
                      std::optional<absl::string_view> value,
                      int64_t milliseconds) {
  Add(topic, partition, value, milliseconds);
  Flush();
}

void MockKafka::Add(const std::string& topic, int partition,
                    std::optional<absl::string_view> value,
                    int64_t milliseconds) {
  void* const bytes = value ? const_cast<char*>(value->data()) : nullptr;
  const size_t size = value ? value->size() : 0;
  rd_kafka_resp_err_t error;
  while (true) {
    error = rd_kafka_producev(
        producer_, RD_KAFKA_V_TOPIC(topic.c_str()),
        RD_KAFKA_V_PARTITION(partition),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_VALUE(bytes, size),
        RD_KAFKA_V_TIMESTAMP(milliseconds), RD_KAFKA_V_END);
    if (error != RD_KAFKA_RESP_ERR__QUEUE_FULL) break;
    rd_kafka_poll(producer_, 10);
  }
  CHECK(error == RD_KAFKA_RESP_ERR_NO_ERROR) << rd_kafka_err2str(error);
}

void MockKafka::Flush() {
  constexpr int kMilliseconds = 60'000;
  CHECK(rd_kafka_flush(producer_, kMilliseconds) == RD_KAFKA_RESP_ERR_NO_ERROR);
}

}  // namespace parasol
