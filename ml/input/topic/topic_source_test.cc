#include "ml/input/topic/topic_source.h"

#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/file/file_set.h"
#include "ml/input/file/input_file.h"
#include "ml/input/object/object_cache.h"
#include "ml/input/topic/testing/mock_kafka.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

job::Dataset Lines() {
  job::Dataset dataset;
  dataset.mutable_csv()->add_column("a");
  return dataset;
}

class TopicSourceTest : public testing::Test {
 protected:
  TopicSource& Open(const job::Dataset& dataset = Lines(),
                    absl::Duration patience = absl::Seconds(30)) {
    source_ = TopicSource::Open(kafka_.Uri("t"), dataset, "", patience).value();
    return *source_;
  }
  // Returns the slice from `last` on to what there is now.
  TopicSlice Next(std::optional<TopicSlice> last = std::nullopt) {
    return *NextSlice("t", last, source_->Offsets().value(), 1, true).slice;
  }
  // Returns the bytes of a slice, as those see them who open its URI.
  static std::string Bytes(const SliceCopy& copy) {
    const auto files = FindFiles("", {copy.uri()}, "train.csv.file");
    EXPECT_OK(files);
    EXPECT_EQ(files->bytes, copy.bytes());
    const auto file = InputFile::Open(files->paths.at(0));
    EXPECT_OK(file);
    std::string bytes(copy.bytes() + 1, '\0');
    const auto n = (*file)->Read(absl::MakeSpan(
        reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()));  // NOLINT
    EXPECT_OK(n);
    bytes.resize(*n);
    return bytes;
  }

  MockKafka kafka_;
  std::unique_ptr<TopicSource> source_;
};

TEST_F(TopicSourceTest, ASliceIsAFileOfLinesInTheOrderOfTheirTimes) {
  kafka_.Create("t", 2);
  kafka_.Write("t", 0, "a,1", 10);
  kafka_.Write("t", 1, "b,1", 5);
  kafka_.Write("t", 1, "b,2\r\n", 20);
  kafka_.Write("t", 0, std::nullopt, 30);
  kafka_.Write("t", 0, "a,2\n", 40);
  Open();
  const TopicSlice slice = Next();
  EXPECT_EQ(slice.Name(), "t/000000000000@0:0-3,1:0-2");
  ASSERT_OK_AND_ASSIGN(auto brought, source_->Bring(slice.Name(), false));
  EXPECT_EQ(brought.copy->uri(), kafka_.Uri("t/000000000000@0:0-3,1:0-2"));
  EXPECT_EQ(Bytes(*brought.copy), "b,1\na,1\nb,2\na,2\n");
  // Another part of it, and all of it once more.
  ASSERT_OK_AND_ASSIGN(auto part,
                       source_->Bring("t/000000000001@0:1-3,1:1", false));
  EXPECT_EQ(Bytes(*part.copy), "a,2\n");
  ASSERT_OK_AND_ASSIGN(auto again, source_->Bring(slice, false));
  const std::string uri = brought.copy->uri();
  brought.copy.reset();
  EXPECT_EQ(Bytes(*again.copy), "b,1\na,1\nb,2\na,2\n");
  again.copy.reset();
  EXPECT_EQ(ObjectCache::OfProcess().LentBytes(uri), std::nullopt);
}

TEST_F(TopicSourceTest, RecordsOfTfrecordAreFramed) {
  kafka_.Create("t", 1);
  kafka_.Write("t", 0, std::string("\x00\n\xff", 3));
  kafka_.Write("t", 0, "");
  job::Dataset dataset;
  dataset.mutable_tfrecord();
  Open(dataset);
  ASSERT_OK_AND_ASSIGN(const auto brought, source_->Bring(Next(), false));
  const std::string bytes = Bytes(*brought.copy);
  ASSERT_EQ(bytes.size(), 12 + 3 + 4 + 12 + 4);
  EXPECT_EQ(bytes.substr(0, 8), std::string("\3\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(bytes.substr(12, 3), std::string("\x00\n\xff", 3));
}

TEST_F(TopicSourceTest, AValueThatIsNoRecordIsNamedOrLeftOut) {
  kafka_.Create("t", 1);
  kafka_.Write("t", 0, "1");
  kafka_.Write("t", 0, "\"open");
  kafka_.Write("t", 0, "two\nlines");
  kafka_.Write("t", 0, "\"quoted\"");
  Open();
  const TopicSlice slice = Next();
  EXPECT_THAT(source_->Bring(slice, false).status(),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("/t partition 0 offset 1"),
                             HasSubstr("quotes"))));
  ASSERT_OK_AND_ASSIGN(const auto brought, source_->Bring(slice, true));
  EXPECT_EQ(Bytes(*brought.copy), "1\n\"quoted\"\n");
  EXPECT_EQ(brought.malformed, 2);
  EXPECT_THAT(brought.malformed_why, HasSubstr("offset 1"));
}

TEST_F(TopicSourceTest, ALargeTopicIsReadInSlices) {
  kafka_.Create("t", 3);
  for (int i = 0; i < 9000; ++i) {
    kafka_.Add("t", i % 3, absl::StrCat(i, ",", std::string(100, 'x')), i + 1);
  }
  kafka_.Flush();
  Open();
  std::string all;
  std::optional<TopicSlice> last;
  for (int i = 0; i < 9; ++i) {
    TopicSlice slice = {"t", i, {}};
    for (int p = 0; p < 3; ++p) {
      slice.ranges.push_back({p, i * 333LL, i < 8 ? (i + 1) * 333LL : 3000});
    }
    ASSERT_OK_AND_ASSIGN(const auto brought, source_->Bring(slice, false));
    all += Bytes(*brought.copy);
  }
  std::string expected;
  for (int i = 0; i < 9000; ++i) {
    absl::StrAppend(&expected, i, ",", std::string(100, 'x'), "\n");
  }
  EXPECT_TRUE(all == expected);
}

TEST_F(TopicSourceTest, WhatTheBrokerHasDeletedIsGone) {
  kafka_.Create("t", 1);
  kafka_.Write("t", 0, "first");
  Open();
  const TopicSlice slice = Next();
  const std::string large(500'000, 'x');
  for (int i = 0; i < 14; ++i) kafka_.Write("t", 0, large);
  ASSERT_OK_AND_ASSIGN(const auto offsets, source_->Offsets());
  ASSERT_GT(offsets.at(0).low, 0);
  EXPECT_THAT(source_->Bring(slice, false).status(),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr(kafka_.Uri("t") + " partition 0"),
                             HasSubstr("retention.ms"))));
  // Another reading goes on as before.
  EXPECT_OK(source_->Bring(Next(slice), false).status());
}

TEST_F(TopicSourceTest, ATopicThatIsNotThereIsNamed) {
  Open();
  rd_kafka_mock_topic_set_error(kafka_.cluster(), "t",
                                RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
  EXPECT_THAT(source_->Offsets(), StatusIs(absl::StatusCode::kUnavailable,
                                           AllOf(HasSubstr(kafka_.Uri("t")),
                                                 HasSubstr("can't be read"))));
}

TEST_F(TopicSourceTest, BrokersThatDoNotAnswerAreNamedWithTheReason) {
  source_ =
      TopicSource::Open("kafka://127.0.0.1:1/t", Lines(), "", absl::Seconds(3))
          .value();
  EXPECT_THAT(source_->Offsets(),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("kafka://127.0.0.1:1/t"),
                             HasSubstr("refused"))));
  EXPECT_THAT(
      source_->Bring("t/000000000000@0:0-1", false).status(),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("partition 0")));
}

TEST_F(TopicSourceTest, WhatIsNotThereYetIsAwaitedForALimitedTime) {
  kafka_.Create("t", 1);
  kafka_.Write("t", 0, "1");
  Open(Lines(), absl::Seconds(2));
  EXPECT_THAT(source_->Bring("t/000000000000@0:0-2", false).status(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("gives nothing from offset 1 on")));
}

TEST_F(TopicSourceTest, ABrokerThatComesBackIsReadOn) {
  kafka_.Create("t", 1);
  kafka_.Write("t", 0, "1");
  Open();
  const TopicSlice slice = Next();
  rd_kafka_mock_broker_set_down(kafka_.cluster(), 1);
  rd_kafka_mock_broker_set_up(kafka_.cluster(), 1);
  ASSERT_OK_AND_ASSIGN(const auto brought, source_->Bring(slice, false));
  EXPECT_EQ(Bytes(*brought.copy), "1\n");
}

TEST_F(TopicSourceTest, SettingsComeFromAFileAndAreNotShown) {
  const std::string path = absl::StrCat(testing::TempDir(), "/settings");
  const auto offsets = [&](const std::string& text) {
    std::ofstream(path) << text;
    source_ = TopicSource::Open(kafka_.Uri("t"), Lines(), path).value();
    return source_->Offsets().status();
  };
  kafka_.Create("t", 1);
  EXPECT_OK(offsets(
      "# of kcat\nbootstrap.servers=elsewhere:1\n\nclient.id = parasol\n"));
  EXPECT_THAT(offsets("client.id=x\nsasl.secret=abc\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(path), HasSubstr("line 2"),
                             HasSubstr("sasl.secret"), Not(HasSubstr("abc")))));
  EXPECT_THAT(offsets("secret"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("line 1"), Not(HasSubstr("secret")))));
  source_ = TopicSource::Open(kafka_.Uri("t"), Lines(), "/none").value();
  EXPECT_THAT(source_->Offsets(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("PARASOL_KAFKA_CONFIG=/none")));
}

}  // namespace
}  // namespace parasol
