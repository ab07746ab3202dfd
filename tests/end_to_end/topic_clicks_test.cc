// Online training from a topic of Kafka by real processes: records come while
// tasks are killed, and the job is told to stop and started again.

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/testing/tf_example_writer.h"
#include "ml/input/topic/testing/mock_kafka.h"
#include "tests/end_to_end/followed_job.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

constexpr int kTopicPartitions = 3;

class TopicClicksTest : public FollowedJobTest {
 protected:
  TopicClicksTest() { kafka_.Create("clicks", kTopicPartitions); }

  void Start() {
    StartWith(absl::StrCat("tfrecord { file: \"", kafka_.Uri("clicks"),
                           "\" label: \"label\" }"));
  }
  void Write(int batches) {
    for (int i = 0; i < kBatch * batches; ++i, ++records_) {
      kafka_.Add("clicks", static_cast<int>(records_ % kTopicPartitions),
                 ExampleOf(IntegerFeature("number", {records_}) +
                           RealFeature("label", {kCountedLabel})));
    }
    kafka_.Flush();
  }

  MockKafka kafka_;
};

TEST_F(TopicClicksTest, AChiefThatIsKilledAndAStopCostNoRecord) {
  Write(200);
  Start();
  ASSERT_OK(cluster_->AwaitStep(50));
  Kill("chief/0");
  Write(300);
  ASSERT_OK(cluster_->AwaitStep(250));
  Stop();
  Write(100);
  Start();
  Write(30);
  AwaitAll();
  ASSERT_OK_AND_ASSIGN(const wire::JobStatus status, cluster_->Status());
  EXPECT_THAT(status.followed().pattern(), HasSubstr("kafka://127.0.0.1:"));
  EXPECT_THAT(status.followed().newest(), HasSubstr("clicks/0000"));
  Stop();
  EXPECT_EQ(Counts(), Once());
}

TEST_F(TopicClicksTest, AWorkerThatIsKilledLeavesNoRecordOut) {
  Start();
  Write(600);
  ASSERT_OK(cluster_->AwaitStep(150));
  Kill("worker/1");
  Write(100);
  AwaitAll();
  Stop();
  ExpectOnceOrTwice();
}

}  // namespace
}  // namespace parasol
