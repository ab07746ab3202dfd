#include "ml/input/format/tfrecord_set.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/format/idx_writer.h"
#include "ml/input/testing/input_files.h"
#include "ml/input/testing/read_all.h"
#include "ml/input/testing/tf_example_writer.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kModel[] =
    "loss { binary_crossentropy {} } input { name: 'x' dense { shape: 2 } } ";
constexpr char kSet[] = "tfrecord { file: 'set.tfrecord' label: 'y' } ";

std::string Labelled(const std::vector<float>& x, int64_t y) {
  return TfRecord(ExampleOf(RealFeature("x", x) + IntegerFeature("y", {y})));
}

TEST(TfRecordSetTest, FeaturesOfEveryKindAreColumns) {
  const std::string records =
      TfRecord(ExampleOf(IntegerFeature("y", {1}) +
                         RealFeature("x", {0.5, -2}) +
                         TextFeature("word", {"a", "b"}) +
                         IntegerFeature("id", {7}) + RealFeature("w", {3}))) +
      TfRecord(ExampleOf(RealFeature("x", {1, 2}) + RealFeature("w", {0}) +
                         RealFeature("y", {0}) + IntegerFeature("id", {})));
  for (const std::string& bytes : {records, Gzip(records)}) {
    WriteTestFile("set.tfrecord", bytes);
    ASSERT_OK_AND_ASSIGN(
        const Batch batch,
        ReadAll("tfrecord { file: 'set.tfrecord' label: 'y' weight: 'w' }",
                absl::StrCat(kModel,
                             "input { name: 'i' ids { column { name: 'word' "
                             "vocabulary { value: 'b' } } column { name: 'id' "
                             "identity { num_ids: 10 } } } } input { name: "
                             "'id' ids {} }")));
    EXPECT_THAT(batch.dense[0].values, ElementsAre(0.5, -2, 1, 2));
    EXPECT_THAT(batch.ids[0].offsets, ElementsAre(0, 3, 5));
    EXPECT_THAT(batch.ids[0].ids, ElementsAre(1, 0, 10, 2, 13));
    EXPECT_THAT(batch.ids[1].offsets, ElementsAre(0, 1, 1));
    EXPECT_THAT(batch.ids[1].ids, ElementsAre(7));
    EXPECT_THAT(batch.labels, ElementsAre(1, 0));
    EXPECT_THAT(batch.weights, ElementsAre(3, 0));
  }
}

TEST(TfRecordSetTest, LabelsMayBeProbabilities) {
  WriteTestFile("set.tfrecord",
                TfRecord(ExampleOf(RealFeature("x", {1}) +
                                   RealFeature("y", {.25, .75}))) +
                    TfRecord(ExampleOf(RealFeature("x", {1}) +
                                       IntegerFeature("y", {1}))));
  ASSERT_OK_AND_ASSIGN(
      const Batch batch,
      ReadAll(kSet,
              "loss { categorical_crossentropy {} } layer { dense { units: 2 } "
              "} input { name: 'x' dense { shape: 1 } }"));
  EXPECT_THAT(batch.labels, ElementsAre(.25, .75, 0, 1));
}

// 1,000 records without the columns that the last one has.
std::string LateColumns() {
  std::string records;
  for (int i = 0; i < 1000; ++i) {
    records += TfRecord(ExampleOf(RealFeature("x", {1, 2})));
  }
  return records + TfRecord(ExampleOf(
                       RealFeature("x", {3, 4}) + IntegerFeature("y", {1}) +
                       IntegerFeature("z", {1}) + RealFeature("late", {5})));
}

TEST(TfRecordSetTest, ALabelMayComeLate) {
  WriteTestFile("set.tfrecord", LateColumns());
  constexpr char kOutputs[] =
      "layer { name: 'o' dense { units: 1 } } output { name: 'o' loss { "
      "binary_crossentropy {} } label { column: 'y' } mask: 'z' } ";
  ASSERT_OK_AND_ASSIGN(
      const Batch batch,
      ReadAll("tfrecord { file: 'set.tfrecord' }",
              absl::StrCat(kOutputs,
                           "input { name: 'x' dense { shape: 2 } } input { "
                           "name: 'l' dense { column { name: 'late' "
                           "default_value: 7 } } }")));
  ASSERT_EQ(batch.size, 1001);
  EXPECT_EQ(batch.targets[0].weights[0], 0);
  EXPECT_EQ(batch.targets[0].weights[1000], 1);
  EXPECT_EQ(batch.targets[0].labels[1000], 1);
  EXPECT_EQ(batch.dense[1].values[0], 7);
  EXPECT_EQ(batch.dense[1].values[1000], 5);
}

TEST(TfRecordSetTest, ALabelThatNoRecordHasIsNamed) {
  WriteTestFile("set.tfrecord", LateColumns());
  EXPECT_THAT(
      ReadAll("tfrecord { file: 'set.tfrecord' label: 'lable' }", kModel),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("tfrecord.label: no example has a feature "
                         "\"lable\"")));
}

TEST(TfRecordSetTest, WrongRecordsAreNamedOrLeftOut) {
  const std::string good = Labelled({1, 2}, 1);
  std::string bad_crc = good;
  bad_crc[20] ^= 1;
  const struct {
    std::string bytes;
    std::string want;
  } cases[] = {
      {bad_crc, "the crc32c of a record is wrong"},
      {Labelled({1}, 1), "column x: 1 values, not 2"},
      {TfRecord(ExampleOf(RealFeature("x", {1, 2}))),
       "the label has 0 values, not 1"},
      {TfRecord("garbage"), "not a tf.Example"},
      {TfRecord(ExampleOf(FeatureEntry("x", "\x12\x7f"))), "not a tf.Example"},
      {TfRecord(ExampleOf(
           FeatureEntry("x", MessageField(2, MessageField(1, "12345"))))),
       "a float_list of half a number"},
      {TfRecord(ExampleOf(
           FeatureEntry("y", MessageField(3, MessageField(1, "\xff\xff"))))),
       "an int64_list of half a number"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.want);
    WriteTestFile("set.tfrecord", good + c.bytes + Labelled({3, 4}, 0));
    EXPECT_THAT(ReadAll(kSet, kModel),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr(absl::StrCat("/set.tfrecord at byte ",
                                                      good.size(), ": ")),
                               HasSubstr(c.want))));
    ASSERT_OK_AND_ASSIGN(
        const Batch rest,
        ReadAll(absl::StrCat(kSet, "on_corrupt: SKIP"), kModel));
    EXPECT_THAT(rest.dense[0].values, ElementsAre(1, 2, 3, 4));
    EXPECT_THAT(rest.labels, ElementsAre(1, 0));
  }
}

TEST(TfRecordSetTest, ABrokenFrameCostsTheRestOfItsFile) {
  const std::string good = Labelled({1, 2}, 1);
  std::string bad_length = good;
  bad_length[0] ^= 1;
  const struct {
    std::string bytes;
    std::string want;
  } cases[] = {
      {bad_length + good, "the crc32c of a record's length is wrong; the last"},
      {good.substr(0, 15), "ends within the frame of a record; the last 15"},
      {good.substr(0, good.size() - 1), "ends within a record of"},
  };
  for (const auto& c : cases) {
    WriteTestFile("set.tfrecord", good + c.bytes);
    WriteTestFile("set_2.tfrecord", Labelled({3, 4}, 0));
    const std::string two = "tfrecord { file: 'set*.tfrecord' label: 'y' } ";
    EXPECT_THAT(ReadAll(two, kModel),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr("/set.tfrecord at byte "),
                               HasSubstr(c.want))));
    ASSERT_OK_AND_ASSIGN(const Batch rest,
                         ReadAll(two + "on_corrupt: SKIP", kModel));
    EXPECT_THAT(rest.labels, ElementsAre(1, 0));
  }
}

// gzip, bzip2 and ORC files begin so.
TEST(TfRecordSetTest, ALengthMayHaveTheBytesOfAnotherFormat) {
  for (const size_t length : {0x8b1f, 0x088b1f, 0x685a42, 0x43524f}) {
    SCOPED_TRACE(length);
    std::string features = RealFeature("x", {1, 2}) + IntegerFeature("y", {1});
    std::string example;
    for (size_t padding = length - 200; example.size() < length; ++padding) {
      example =
          ExampleOf(features + TextFeature("z", {std::string(padding, 'z')}));
    }
    ASSERT_EQ(example.size(), length);
    WriteTestFile("set.tfrecord", TfRecord(example) + Labelled({3, 4}, 0));
    ASSERT_OK_AND_ASSIGN(const Batch all, ReadAll(kSet, kModel));
    EXPECT_THAT(all.labels, ElementsAre(1, 0));
  }
}

// Not gzip's method: the damage is named.
TEST(TfRecordSetTest, ADamagedLengthIsNotTakenForGzip) {
  std::string bytes = TfRecord(std::string(0x8b1f, 'x'));
  bytes[9] ^= 1;
  WriteTestFile("set.tfrecord", bytes);
  EXPECT_THAT(ReadAll(kSet, kModel),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("the crc32c of a record's length is wrong")));
}

TEST(TfRecordSetTest, FeaturesThatNoExampleHasAreNamed) {
  WriteTestFile("set.tfrecord", Labelled({1, 2}, 1));
  const struct {
    std::string dataset;
    std::string input;
    std::string want;
  } cases[] = {
      {"", "dense { shape: 2 }", "tfrecord.label is not set"},
      {"label: 'z'", "dense { shape: 2 }",
       "tfrecord.label: no example has a feature \"z\""},
      {"label: 'y' weight: 'z'", "dense { shape: 2 }",
       "tfrecord.weight: no example has a feature \"z\""},
      {"label: 'y'", "ids { column { name: 'z' hash {} } }",
       "model input i: the data set has no column \"z\", but x, y"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(
        ReadAll(
            absl::StrCat("tfrecord { file: 'set.tfrecord' ", c.dataset, " }"),
            absl::StrCat("input { name: 'i' ", c.input, " }")),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.want)));
  }
}

// All values of a feature, whatever is in their texts.
TEST(TfRecordSetTest, ASequenceIsAFeaturesValues) {
  WriteTestFile("set.tfrecord",
                TfRecord(ExampleOf(IntegerFeature("y", {1}) +
                                   IntegerFeature("id", {4, 5, 6}) +
                                   TextFeature("word", {"a|b", "a"}))) +
                    TfRecord(ExampleOf(IntegerFeature("y", {0}) +
                                       IntegerFeature("id", {}))));
  ASSERT_OK_AND_ASSIGN(
      const Batch batch,
      ReadAll(kSet,
              "loss { binary_crossentropy {} } input { name: 'id' ids { "
              "sequence { length: 2 separator: '|' } } } input { name: 'w' ids "
              "{ column { name: 'word' vocabulary { value: 'a|b' } } "
              "sequence { length: 4 separator: '|' } } }"));
  EXPECT_THAT(batch.ids[0].ids, ElementsAre(5, 6));
  EXPECT_THAT(batch.ids[0].offsets, ElementsAre(0, 2, 2));
  EXPECT_THAT(batch.ids[1].ids, ElementsAre(0, 1));
  EXPECT_THAT(batch.ids[1].offsets, ElementsAre(0, 2, 2));
}

}  // namespace
}  // namespace parasol
