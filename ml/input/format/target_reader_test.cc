// Labels of several outputs, through the formats that have columns.

#include "ml/input/format/target_reader.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/format/given_examples.h"
#include "ml/input/testing/input_files.h"
#include "ml/input/testing/read_all.h"
#include "ml/input/testing/tf_example_writer.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kModel[] =
    "input { name: 'x' dense { column { name: 'x' } } } "
    "layer { name: 'kind' dense { units: 3 } } "
    "output { name: 'click' label { column: 'click' } "
    "  loss { binary_crossentropy {} } } "
    "output { name: 'kind' label { column: 'kind' class: ['a', 'b', 'c'] } "
    "  loss { sparse_categorical_crossentropy {} } } "
    "output { name: 'price' label { column: 'price' } mask: 'click' "
    "  loss { mean_squared_error {} } } ";

void ExpectTargets(const Batch& batch) {
  EXPECT_EQ(batch.size, 4);
  EXPECT_THAT(batch.dense[0].values, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(batch.labels, IsEmpty());
  ASSERT_EQ(batch.targets.size(), 3u);
  EXPECT_THAT(batch.targets[0].labels, ElementsAre(1, 0, 1, 1));
  EXPECT_THAT(batch.targets[0].weights, ElementsAre(1, 1, 1, 1));
  EXPECT_EQ(batch.targets[0].scale, 1);
  EXPECT_THAT(batch.targets[1].labels, ElementsAre(1, 0, 2, 0));
  EXPECT_THAT(batch.targets[1].weights, ElementsAre(1, 0, 1, 1));
  EXPECT_FLOAT_EQ(batch.targets[1].scale, 4.0f / 3);
  // The second example has the mask 0, the third no label.
  EXPECT_THAT(batch.targets[2].labels, ElementsAre(10, 0, 0, 30));
  EXPECT_THAT(batch.targets[2].weights, ElementsAre(1, 0, 0, 1));
  EXPECT_EQ(batch.targets[2].scale, 2);
}

TEST(TargetReaderTest, ReadsColumnsOfACsvFile) {
  WriteTestFile("targets.csv",
                "x,click,kind,price\n1,1,b,10\n2,0,,20\n3,1,c,\n4,1,a,30\n");
  ASSERT_OK_AND_ASSIGN(const Batch batch,
                       ReadAll("csv { file: 'targets.csv' }", kModel));
  ExpectTargets(batch);
}

TEST(TargetReaderTest, ReadsFeaturesOfTfExamples) {
  const auto record = [](float x, int64_t click, const std::string& rest) {
    return TfRecord(ExampleOf(RealFeature("x", {x}) +
                              IntegerFeature("click", {click}) + rest));
  };
  WriteTestFile(
      "targets.tfrecord",
      record(1, 1, TextFeature("kind", {"b"}) + RealFeature("price", {10})) +
          record(2, 0, RealFeature("price", {20})) +
          record(3, 1, TextFeature("kind", {"c"}) + RealFeature("price", {})) +
          record(4, 1,
                 TextFeature("kind", {"a"}) + RealFeature("price", {30})));
  ASSERT_OK_AND_ASSIGN(
      const Batch batch,
      ReadAll("tfrecord { file: 'targets.tfrecord' }", kModel));
  ExpectTargets(batch);
}

TEST(TargetReaderTest, AFaultNamesTheOutputAndTheRecord) {
  const struct {
    std::string row;
    std::string want;
  } cases[] = {
      {"1,2,a,1", "output \"click\": label 2 is not between 0 and 1"},
      {"1,1,d,1", "output \"kind\": label \"d\" is not one of the 3 names"},
      {"1,no,a,1",
       "output \"click\": label \"no\" is not a finite number; of labels that "
       "are texts, label.positive names"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.row);
    WriteTestFile("fault.csv", absl::StrCat("x,click,kind,price\n", c.row));
    EXPECT_THAT(ReadAll("csv { file: 'fault.csv' }", kModel).status(),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr("fault.csv"), HasSubstr(c.want))));
  }
  WriteTestFile("fault.csv", "x,click,kind\n1,1,a\n");
  EXPECT_THAT(ReadAll("csv { file: 'fault.csv' }", kModel).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no column \"price\"")));
}

TEST(TargetReaderTest, ACorruptRecordLeavesNoPartBehind) {
  WriteTestFile("skip.csv", "x,click,kind,price\n1,1,b,1\n2,1,d,2\n3,1,c,3\n");
  ASSERT_OK_AND_ASSIGN(
      const Batch batch,
      ReadAll("on_corrupt: SKIP csv { file: 'skip.csv' }", kModel));
  EXPECT_EQ(batch.size, 2);
  EXPECT_THAT(batch.targets[0].labels, ElementsAre(1, 1));
  EXPECT_THAT(batch.targets[2].labels, ElementsAre(1, 3));
  EXPECT_THAT(batch.targets[2].weights, ElementsAre(1, 1));
}

TEST(TargetReaderTest, AFormatWithoutColumnsIsRefused) {
  WriteTestFile("targets.libsvm", "1 1:1\n");
  EXPECT_THAT(ReadAll("libsvm { file: 'targets.libsvm' }",
                      "input { name: 'features' dense { shape: 1 } } "
                      "output { name: 'click' label { column: 'click' } "
                      "  loss { binary_crossentropy {} } } ")
                  .status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("model.output \"click\""),
                             HasSubstr("libsvm has no columns"))));
}

// Predictions need no labels, and files need not have their columns.
TEST(TargetReaderTest, WithoutLabelsTheirColumnsMayBeMissing) {
  ASSERT_OK_AND_ASSIGN(const ModelInputs inputs, InputsFromText(kModel));
  const auto read = [&](const std::string& text) {
    WriteTestFile("unlabelled.csv", text);
    const auto spec = FromText<job::Dataset>(
        "batch_size: 10 csv { file: 'unlabelled.csv' "
        "column: ['x', 'click', 'kind', 'price'] }");
    const auto pipeline = InputPipeline::Open(
        spec, inputs, {.data_dir = testing::TempDir(), .without_labels = true});
    EXPECT_OK(pipeline.status());
    return **(*pipeline)->Next();
  };
  for (const char* text : {"1\n2\n", "1,1,a,2\n2,,,\n"}) {
    SCOPED_TRACE(text);
    const Batch batch = read(text);
    EXPECT_THAT(batch.dense[0].values, ElementsAre(1, 2));
    EXPECT_THAT(batch.targets[2].labels, ElementsAre(0, 0));
    EXPECT_THAT(batch.targets[2].weights, ElementsAre(1, 1));
  }
}

TEST(TargetReaderTest, GivenExamplesHaveNoLabels) {
  ASSERT_OK_AND_ASSIGN(const ModelInputs inputs, InputsFromText(kModel));
  ASSERT_OK_AND_ASSIGN(
      const GivenExamples given,
      GivenExamples::Create(FromText<job::Dataset>("csv { file: 'x' }"),
                            inputs));
  EXPECT_THAT(given.ignored(), testing::IsSupersetOf({"click", "price"}));
  Batch batch;
  given.Clear(batch);
  ASSERT_OK(given.Append({{FieldValue::Text("5")}}, batch));
  EXPECT_EQ(batch.targets.size(), 3u);
  EXPECT_THAT(batch.targets[1].labels, ElementsAre(0));
}

constexpr char kTowers[] =
    "input { name: 'x' dense { column { name: 'x' } } } "
    "layer { name: 'towers' dense { units: 4 } } "
    "output { name: 'towers' mask: 'bought' loss { in_batch_softmax { "
    "  candidate: 'item' candidate_probability: 'share' } } } "
    "output { name: 'score' label { column: 'bought' } "
    "  loss { pairwise_logistic { group: 'user' } } } ";

void ExpectColumns(const Batch& batch) {
  ASSERT_EQ(batch.size, 3);
  EXPECT_THAT(batch.targets[0].labels, IsEmpty());
  EXPECT_THAT(batch.targets[0].weights, ElementsAre(1, 0, 1));
  EXPECT_THAT(batch.targets[1].labels, ElementsAre(1, 0, 1));
  ASSERT_EQ(batch.columns.size(), 3u);
  const std::vector<uint64_t>& items = batch.columns[0].keys;
  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(items[0], items[2]);
  EXPECT_NE(items[0], items[1]);
  EXPECT_THAT(batch.columns[1].numbers, ElementsAre(.5f, .25f, 1));
  const std::vector<uint64_t>& users = batch.columns[2].keys;
  ASSERT_EQ(users.size(), 3u);
  EXPECT_EQ(users[0], users[1]);
  EXPECT_NE(users[0], users[2]);
}

// What losses read beside labels; in_batch_softmax has no label.
TEST(TargetReaderTest, ReadsColumnsBesideLabels) {
  WriteTestFile("beside.csv",
                "x,bought,item,share,user\n1,1,a,.5,7\n2,0,b,.25,7\n"
                "3,1,a,1,8\n");
  ASSERT_OK_AND_ASSIGN(const Batch of_csv,
                       ReadAll("csv { file: 'beside.csv' }", kTowers));
  ExpectColumns(of_csv);

  const auto record = [](int64_t bought, const std::string& item, float share,
                         int64_t user) {
    return TfRecord(
        ExampleOf(RealFeature("x", {1}) + IntegerFeature("bought", {bought}) +
                  TextFeature("item", {item}) + RealFeature("share", {share}) +
                  IntegerFeature("user", {user})));
  };
  WriteTestFile(
      "beside.tfrecord",
      record(1, "a", .5, 7) + record(0, "b", .25, 7) + record(1, "a", 1, 8));
  ASSERT_OK_AND_ASSIGN(
      const Batch of_tfrecord,
      ReadAll("tfrecord { file: 'beside.tfrecord' }", kTowers));
  ExpectColumns(of_tfrecord);
}

TEST(TargetReaderTest, AModelOfOneLossThatReadsNoLabelNeedsNone) {
  constexpr char kModelOfOne[] =
      "input { name: 'user' dense { column { name: 'user' } } } "
      "layer { dense { units: 4 } } "
      "loss { in_batch_softmax { candidate: 'item' } } ";
  WriteTestFile("one.csv", "user,item\n1,a\n2,b\n");
  ASSERT_OK_AND_ASSIGN(Batch batch,
                       ReadAll("csv { file: 'one.csv' }", kModelOfOne));
  EXPECT_THAT(batch.labels, IsEmpty());
  EXPECT_EQ(batch.columns[0].keys.size(), 2u);
  WriteTestFile("one.dat", "1::a::5::0\n2::b::3::0\n");
  ASSERT_OK_AND_ASSIGN(batch,
                       ReadAll("ratings { file: 'one.dat' }", kModelOfOne));
  EXPECT_THAT(batch.labels, IsEmpty());
  EXPECT_EQ(batch.columns[0].keys.size(), 2u);
  WriteTestFile("one.tfrecord",
                TfRecord(ExampleOf(RealFeature("user", {1}) +
                                   TextFeature("item", {"a"}))));
  ASSERT_OK_AND_ASSIGN(
      batch, ReadAll("tfrecord { file: 'one.tfrecord' }", kModelOfOne));
  EXPECT_THAT(batch.labels, IsEmpty());
  EXPECT_EQ(batch.columns[0].keys.size(), 1u);
}

TEST(TargetReaderTest, AFaultBesideLabelsNamesTheColumn) {
  const struct {
    std::string row;
    std::string want;
  } cases[] = {
      {"1,1,a,0,7", "column \"share\": probability 0 is not above 0"},
      {"1,1,a,1.5,7", "column \"share\": probability 1.5 is not above 0"},
      {"1,1,a,,7", "column \"share\": the value has 0 values, not 1"},
      {"1,1,a,1,", "column \"user\": has 0 values, not 1"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.row);
    WriteTestFile("bad.csv", "x,bought,item,share,user\n1,1,a,1,7\n" + c.row);
    EXPECT_THAT(ReadAll("csv { file: 'bad.csv' }", kTowers).status(),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(c.want)));
    ASSERT_OK_AND_ASSIGN(
        const Batch batch,
        ReadAll("on_corrupt: SKIP csv { file: 'bad.csv' }", kTowers));
    EXPECT_EQ(batch.size, 1);
    EXPECT_EQ(batch.columns[0].keys.size(), 1u);
    EXPECT_EQ(batch.columns[1].numbers.size(), 1u);
  }
  WriteTestFile("bad.csv", "x,bought,item,share\n1,1,a,1\n");
  EXPECT_THAT(ReadAll("csv { file: 'bad.csv' }", kTowers).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no column \"user\"")));
  WriteTestFile("bad.libsvm", "1 1:1\n");
  EXPECT_THAT(
      ReadAll("libsvm { file: 'bad.libsvm' }",
              "input { name: 'features' dense { shape: 1 } } layer { dense { "
              "units: 1 } } loss { pairwise_logistic { group: 'g' } } ")
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("reads the column \"g\", and libsvm has no columns")));
}

// A served example need not have them; one that an input reads is read.
TEST(TargetReaderTest, WithoutLabelsColumnsBesideThemAreNotRead) {
  ASSERT_OK_AND_ASSIGN(const ModelInputs inputs, InputsFromText(kTowers));
  ASSERT_OK_AND_ASSIGN(
      const GivenExamples given,
      GivenExamples::Create(FromText<job::Dataset>("csv { file: 'x' }"),
                            inputs));
  EXPECT_THAT(given.ignored(), testing::IsSupersetOf({"item", "share"}));
  Batch batch;
  given.Clear(batch);
  ASSERT_OK(given.Append({{FieldValue::Text("5")}}, batch));
  EXPECT_EQ(batch.columns[0].keys.size(), 1u);
  EXPECT_EQ(batch.columns[1].numbers.size(), 1u);

  std::string text = kTowers;
  text.replace(text.find("name: 'x'", 20), 9, "name: 'user'");
  ASSERT_OK_AND_ASSIGN(const ModelInputs of_user, InputsFromText(text));
  ASSERT_OK_AND_ASSIGN(
      const GivenExamples users,
      GivenExamples::Create(FromText<job::Dataset>("csv { file: 'x' }"),
                            of_user));
  EXPECT_THAT(users.ignored(), testing::Not(testing::Contains("user")));
}

}  // namespace
}  // namespace parasol
