#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "chief/data_follower.h"
#include "chief/testing/follower_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/topic/testing/mock_kafka.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kTopicJob[] = R"(
  name: "followed"
  model {
    input { name: "x" dense { column { name: "x" } } }
    layer { input: "x" dense { units: 1 } }
    loss { mean_squared_error {} }
  }
  train {
    csv { file: "kafka://b:1/t" column: ["x", "y"] label { column: "y" } }
    follow: true
    batch_size: 4
  }
  end { never {} }
)";

class TopicFollowerTest : public FollowerFixture {
 protected:
  TopicFollowerTest() : FollowerFixture(kTopicJob) {}

  void Start() {
    DataFollower::Options options;
    options.check_owner = [] { return absl::OkStatus(); };
    options.rest_waits = rest_waits_;
    options.topic =
        TopicSource::Open(kafka_.Uri("t"), job_.train(), "", absl::Seconds(10))
            .value();
    StartWith(std::move(options));
  }
  void AwaitBatches(int64_t batches) {
    Await([this, batches]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      return files_.batches() >= batches;
    });
  }
  int64_t Records() {
    absl::MutexLock lock(&mu_);
    return files_.RecordsOfLast(files_.batches());
  }
  void Write(int partition, int records) {
    for (int i = 0; i < records; ++i) kafka_.Add("t", partition, "1,2");
    kafka_.Flush();
  }

  MockKafka kafka_;
  absl::Duration rest_waits_ = absl::Hours(1);
};

TEST_F(TopicFollowerTest, TakesWholeBatchesAsTheyCome) {
  kafka_.Create("t", 2);
  Write(0, 5);
  Write(1, 4);
  Start();
  AwaitBatches(2);
  Write(0, 3);
  AwaitBatches(3);
  EXPECT_THAT(taken_, ElementsAre("t/000000000000@0:0-4,1:0-4:8",
                                  "t/000000000001@0:4-8,1:4:4"));
  Write(1, 3);
  Await([this]()
            ABSL_NO_THREAD_SAFETY_ANALYSIS { return look_.left_records == 3; });
  EXPECT_EQ(Last().left, 0) << "the job waits for more";
}

TEST_F(TopicFollowerTest, RecordsThatMakeNoBatchAreTakenWhenTheyHaveWaited) {
  rest_waits_ = absl::Milliseconds(50);
  kafka_.Create("t", 1);
  Write(0, 3);
  Start();
  AwaitBatches(1);
  EXPECT_THAT(taken_, ElementsAre("t/000000000000@0:0-3:3"));
}

TEST_F(TopicFollowerTest, TheNextChiefGoesOnWhereThisOneWas) {
  kafka_.Create("t", 1);
  Write(0, 8);
  Start();
  AwaitBatches(2);
  follower_.reset();
  Write(0, 4);
  // As the checkpoint has it; the log has more.
  files_ = FollowedFiles();
  Start();
  AwaitBatches(3);
  EXPECT_THAT(taken_,
              ElementsAre("t/000000000000@0:0-8:8", "t/000000000001@0:8-12:4"));
}

TEST_F(TopicFollowerTest, TakesNoMoreThanThereIsRoomFor) {
  job_.mutable_train()->set_batch_size(1 << 15);
  kafka_.Create("t", 1);
  Write(0, 1 << 17);
  room_ = 1;
  Start();
  Await([this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return taken_.size() == 1 && look_.left == 1;
  });
  EXPECT_EQ(Last().left_records, 1 << 16);
  {
    absl::MutexLock lock(&mu_);
    room_ = 2;
  }
  AwaitBatches(4);
  EXPECT_EQ(taken_.size(), 2);
}

TEST_F(TopicFollowerTest, NullValuesAreNoRecords) {
  kafka_.Create("t", 1);
  for (int i = 0; i < 4; ++i) kafka_.Add("t", 0, std::nullopt);
  kafka_.Flush();
  Start();
  Await([this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return taken_.size() == 1; });
  Write(0, 4);
  AwaitBatches(1);
  EXPECT_THAT(taken_,
              ElementsAre("t/000000000000@0:0-4:0", "t/000000000001@0:4-8:4"));
}

TEST_F(TopicFollowerTest, WhatWasDeletedBeforeItWasTakenIsNamed) {
  kafka_.Create("t", 1);
  Write(0, 4);
  Start();
  AwaitBatches(1);
  follower_.reset();
  const std::string large = absl::StrCat("1,2", std::string(500'000, ' '));
  for (int i = 0; i < 16; ++i) kafka_.Write("t", 0, large);
  rest_waits_ = absl::ZeroDuration();
  Start();
  Await([this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return look_.skipped > 0; });
  EXPECT_EQ(Last().skipped, 1);
  EXPECT_THAT(Last().skipped_why,
              HasSubstr("t partition 0: the offsets 4 to "));
}

TEST_F(TopicFollowerTest, AValueThatIsNoRecordEndsTheJobByItsPlace) {
  kafka_.Create("t", 1);
  Write(0, 3);
  kafka_.Write("t", 0, "1,\"2");
  Start();
  Await([this]()
            ABSL_NO_THREAD_SAFETY_ANALYSIS { return !look_.failure.ok(); });
  EXPECT_THAT(Last().failure.message(),
              AllOf(HasSubstr("train.follow: "),
                    HasSubstr("/t partition 0 offset 3: ")));
}

TEST_F(TopicFollowerTest, OrIsLeftOutIfCorruptRecordsAre) {
  job_.mutable_train()->set_on_corrupt(job::Dataset::SKIP);
  kafka_.Create("t", 1);
  Write(0, 3);
  kafka_.Write("t", 0, "1,\"2");
  Write(0, 4);
  Start();
  AwaitBatches(2);
  EXPECT_EQ(Records(), 7);
  EXPECT_EQ(Last().skipped, 1);
  EXPECT_THAT(Last().skipped_why, HasSubstr("offset 3"));
}

TEST_F(TopicFollowerTest, ATopicThatIsNotThereIsWaitedFor) {
  rd_kafka_mock_topic_set_error(kafka_.cluster(), "t",
                                RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
  Start();
  Await([this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !troubles_.empty(); });
  EXPECT_THAT(troubles_.front(), HasSubstr(kafka_.Uri("t")));
  EXPECT_OK(Last().failure);
  rd_kafka_mock_topic_set_error(kafka_.cluster(), "t",
                                RD_KAFKA_RESP_ERR_NO_ERROR);
  Write(0, 4);
  AwaitBatches(1);
}

TEST_F(TopicFollowerTest, ABrokerThatComesBackIsGoneOnWith) {
  kafka_.Create("t", 1);
  Write(0, 4);
  Start();
  AwaitBatches(1);
  rd_kafka_mock_broker_set_down(kafka_.cluster(), 1);
  Await([this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !troubles_.empty(); });
  rd_kafka_mock_broker_set_up(kafka_.cluster(), 1);
  Write(0, 4);
  AwaitBatches(2);
  EXPECT_OK(Last().failure);
}

TEST_F(TopicFollowerTest, TooManyPartitionsEndTheJob) {
  kafka_.Create("t", 257);
  Start();
  Await([this]()
            ABSL_NO_THREAD_SAFETY_ANALYSIS { return !look_.failure.ok(); });
  EXPECT_THAT(Last().failure.message(), HasSubstr("257 partitions"));
}

TEST_F(TopicFollowerTest, APositionOfSomethingElseEndsTheJob) {
  kafka_.Create("t", 1);
  Write(0, 4);
  ASSERT_OK(files_.Add(files_.Next("t/000000000001@0:4-x", 1, 4, 4)));
  Start();
  Await([this]()
            ABSL_NO_THREAD_SAFETY_ANALYSIS { return !look_.failure.ok(); });
  EXPECT_THAT(Last().failure.message(),
              HasSubstr("is no slice of the topic t"));
  EXPECT_THAT(taken_, IsEmpty());
}

}  // namespace
}  // namespace parasol
