#include "base/uri/topic_uri.h"

#include <string>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(TopicUriTest, ATopicHasBrokersAndAName) {
  ASSERT_OK_AND_ASSIGN(const TopicUri parts,
                       ParseTopicUri("kafka://b1:9092,[::1]:9093/my.clicks-2"));
  EXPECT_EQ(parts.brokers, "b1:9092,[::1]:9093");
  EXPECT_EQ(parts.topic, "my.clicks-2");
  EXPECT_EQ(parts.Of("my.clicks-2/1"),
            "kafka://b1:9092,[::1]:9093/my.clicks-2/1");
  EXPECT_TRUE(IsTopicUri("kafka://b:1/t"));
  EXPECT_FALSE(IsTopicUri("s3://b/t"));
}

TEST(TopicUriTest, WhatNamesNoTopicIsRefusedWithItsForm) {
  for (const char* const uri :
       {"s3://b:9092/t", "kafka://", "kafka://b:9092", "kafka://b:9092/",
        "kafka:///t", "kafka://b/t", "kafka://b:0/t", "kafka://b:65536/t",
        "kafka://b:x/t", "kafka://:9092/t", "kafka://b:1,,c:1/t",
        "kafka://b:1/a/b", "kafka://b:1/clicks*", "kafka://b:1/..",
        "kafka://b:1/a b", "kafka://b:1\n/t"}) {
    SCOPED_TRACE(uri);
    EXPECT_THAT(ParseTopicUri(uri),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("kafka://broker:9092,broker2:9092/topic")));
  }
  EXPECT_THAT(ParseTopicUri("kafka://b:1/" + std::string(250, 'a')),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(TopicUriTest, CredentialsAreNotShown) {
  EXPECT_THAT(ParseTopicUri("kafka://me:secret@b:9092/t"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("PARASOL_KAFKA_CONFIG"),
                             Not(HasSubstr("secret")))));
}

}  // namespace
}  // namespace parasol
