#include "ml/input/format/given_examples.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/feature/batch.h"
#include "ml/input/feature/value.h"
#include "ml/input/format/idx_writer.h"
#include "ml/input/testing/input_files.h"
#include "ml/input/testing/read_all.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<GivenExamples> Form(const std::string& dataset,
                                   const std::string& model) {
  ASSIGN_OR_RETURN(const ModelInputs inputs, InputsFromText(model));
  return GivenExamples::Create(FromText<job::Dataset>(dataset), inputs);
}

std::vector<FieldValue> Texts(const std::vector<std::string>& texts) {
  std::vector<FieldValue> values;
  for (const std::string& text : texts) {
    values.push_back(FieldValue::Text(text));
  }
  return values;
}

std::vector<std::string> NamesOf(const GivenExamples& form) {
  std::vector<std::string> names;
  for (const GivenColumn& column : form.columns()) names.push_back(column.name);
  return names;
}

TEST(GivenExamplesTest, AreThoseOfACsvFile) {
  constexpr char kModel[] = R"(
    input { name: "wide" ids {
      column { name: "city" hash { buckets: 1000 } }
      column { name: ["city", "age"] hash { buckets: 1000 } } } }
    input { name: "deep" dense {
      column { name: "age" log1p: true mean: 2 stddev: 0.3 default_value: 4 } } }
  )";
  WriteTestFile("given.csv", "age,city,label\n31.7,Ulm,0\n,Bonn,1\n");
  const std::string dataset =
      R"(csv { file: "given.csv" label { column: "label" } missing: "?" })";
  ASSERT_OK_AND_ASSIGN(const Batch want, ReadAll(dataset, kModel));
  ASSERT_OK_AND_ASSIGN(const GivenExamples form, Form(dataset, kModel));
  ASSERT_THAT(NamesOf(form), ElementsAre("city", "age"));
  EXPECT_TRUE(form.numbers_are_texts());
  EXPECT_TRUE(form.IsMissing("?"));
  Batch batch;
  form.Clear(batch);
  ASSERT_OK(form.Append({Texts({"Ulm"}), Texts({"31.7"})}, batch));
  ASSERT_OK(form.Append({Texts({"Bonn"}), {}}, batch));
  EXPECT_EQ(batch.size, 2);
  EXPECT_EQ(batch.ids[0].ids, want.ids[0].ids);
  EXPECT_EQ(batch.ids[0].offsets, want.ids[0].offsets);
  EXPECT_EQ(batch.dense[0].values, want.dense[0].values);
  EXPECT_EQ(batch.labels.size(), want.labels.size());
}

TEST(GivenExamplesTest, BlanksAroundATextAreThoseThatTheReaderLeavesOut) {
  constexpr char kModel[] = R"(
    input { name: "city" ids { column { name: "city" hash {} } } })";
  WriteTestFile("blanks.csv", "city,label\n \tBad Ems\t ,0\n");
  const std::string dataset =
      R"(csv { file: "blanks.csv" label { column: "label" } })";
  ASSERT_OK_AND_ASSIGN(const Batch want, ReadAll(dataset, kModel));
  ASSERT_OK_AND_ASSIGN(const GivenExamples form, Form(dataset, kModel));
  const std::string given(form.Trimmed(" \tBad Ems\t "));
  EXPECT_EQ(given, "Bad Ems");
  Batch batch;
  form.Clear(batch);
  ASSERT_OK(form.Append({Texts({given})}, batch));
  EXPECT_EQ(batch.ids[0].ids, want.ids[0].ids);
  ASSERT_OK_AND_ASSIGN(
      const GivenExamples tabs,
      Form(R"(csv { label { column: "y" } delimiter: "\t" })", kModel));
  EXPECT_EQ(tabs.Trimmed(" a\t"), "a\t");
  ASSERT_OK_AND_ASSIGN(const GivenExamples records,
                       Form(R"(tfrecord { label: "y" })", kModel));
  EXPECT_EQ(records.Trimmed(" a "), " a ");
}

TEST(GivenExamplesTest, AreThoseOfImages) {
  constexpr char kModel[] = "input_shape: [2, 3]";
  const IdxImages images = CountingImages(2, 2, 3);
  WriteTestFile("images", IdxImagesFile(images));
  WriteTestFile("labels", IdxLabelsFile({1, 0}));
  const std::string dataset =
      R"(idx { images: "images" labels: "labels" }
         image { mean: 0.5 stddev: 0.25 random_flip: true })";
  const std::string unflipped =
      R"(idx { images: "images" labels: "labels" }
         image { mean: 0.5 stddev: 0.25 })";
  ASSERT_OK_AND_ASSIGN(const Batch want, ReadAll(unflipped, kModel));
  ASSERT_OK_AND_ASSIGN(const GivenExamples form, Form(dataset, kModel));
  ASSERT_THAT(NamesOf(form), ElementsAre("image"));
  Batch batch;
  form.Clear(batch);
  for (int example = 0; example < 2; ++example) {
    std::vector<FieldValue> pixels;
    for (int i = 0; i < 6; ++i) {
      pixels.push_back(FieldValue::Integer(images.pixels[example * 6 + i]));
    }
    ASSERT_OK(form.Append({pixels}, batch));
  }
  EXPECT_EQ(batch.dense[0].values, want.dense[0].values);
  EXPECT_THAT(form.Append({Texts({"0", "1", "2", "3", "4", "0.5"})}, batch),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("value 5")));
  EXPECT_THAT(form.Append({Texts({"0", "1", "2", "3", "4", "256"})}, batch),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("value 5")));
  EXPECT_THAT(form.Append({{}}, batch),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("0 values")));
}

TEST(GivenExamplesTest, ChannelsComeLastAndAreReadByPlane) {
  ASSERT_OK_AND_ASSIGN(const GivenExamples form,
                       Form("cifar {}", "input_shape: [32, 32, 3]"));
  std::vector<FieldValue> pixels;
  for (int i = 0; i < 32 * 32; ++i) {
    for (int channel = 0; channel < 3; ++channel) {
      pixels.push_back(FieldValue::Integer(channel * 51));
    }
  }
  Batch batch;
  form.Clear(batch);
  ASSERT_OK(form.Append({pixels}, batch));
  for (size_t i = 0; i < pixels.size(); ++i) {
    ASSERT_FLOAT_EQ(batch.dense[0].values[i], (i % 3) * 0.2f) << i;
  }
}

TEST(GivenExamplesTest, AreThoseOfLibsvmLines) {
  constexpr char kModel[] = R"(
    input { name: "x" dense { shape: [5] } } input { name: "f" ids {} })";
  WriteTestFile("given.svm", "+1 2:0.5 5:-3\n-1\n");
  const std::string dataset = R"(libsvm { file: "given.svm" })";
  ASSERT_OK_AND_ASSIGN(const Batch want, ReadAll(dataset, kModel));
  ASSERT_OK_AND_ASSIGN(const GivenExamples form, Form(dataset, kModel));
  ASSERT_THAT(NamesOf(form), ElementsAre("features"));
  Batch batch;
  form.Clear(batch);
  ASSERT_OK(form.Append({Texts({"2:0.5 5:-3"})}, batch));
  ASSERT_OK(form.Append({Texts({""})}, batch));
  EXPECT_EQ(batch.dense[0].values, want.dense[0].values);
  EXPECT_EQ(batch.ids[0].ids, want.ids[0].ids);
  EXPECT_EQ(batch.ids[0].weights, want.ids[0].weights);
  EXPECT_EQ(batch.ids[0].offsets, want.ids[0].offsets);
  EXPECT_THAT(form.Append({Texts({"6:1"})}, batch),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("index 6")));
}

TEST(GivenExamplesTest, LabelsAreThoseThatTheLossAccepts) {
  constexpr char kModel[] = R"(
    input { name: "x" dense { shape: [1] } }
    layer { dense { units: 3 } }
    loss { categorical_crossentropy {} })";
  ASSERT_OK_AND_ASSIGN(const GivenExamples form,
                       Form(R"(tfrecord { label: "y" })", kModel));
  Batch batch;
  form.Clear(batch);
  ASSERT_OK(form.Append({{FieldValue::Real(1)}}, batch));
  EXPECT_THAT(batch.labels, ElementsAre(1, 0, 0));
  EXPECT_THAT(form.ignored(), ElementsAre("y", ""));
  EXPECT_THAT(
      Form("", kModel).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no format")));
}

TEST(GivenExamplesTest, AListIsGivenAsInTheFileOrValueByValue) {
  constexpr char kModel[] = R"(
    input { name: "seen" ids { column { name: "seen" hash {} }
                               sequence { length: 3 separator: "|" } } })";
  WriteTestFile("given_lists.csv", "seen,label\na|b|c|d,0\n");
  const std::string dataset =
      R"(csv { file: "given_lists.csv" label { column: "label" } })";
  ASSERT_OK_AND_ASSIGN(const Batch want, ReadAll(dataset, kModel));
  ASSERT_EQ(want.ids[0].ids.size(), 3);
  ASSERT_OK_AND_ASSIGN(const GivenExamples form, Form(dataset, kModel));
  EXPECT_FALSE(form.columns()[0].count().has_value());
  for (const std::vector<std::string>& texts :
       std::vector<std::vector<std::string>>{
           {"a|b|c|d"}, {"a", "b", "c", "d"}, {"a|b", "c|d"}}) {
    Batch batch;
    form.Clear(batch);
    ASSERT_OK(form.Append({Texts(texts)}, batch));
    EXPECT_EQ(batch.ids[0].ids, want.ids[0].ids);
  }
  Batch empty;
  form.Clear(empty);
  ASSERT_OK(form.Append({{}}, empty));
  EXPECT_THAT(empty.ids[0].offsets, ElementsAre(0, 0));
}

}  // namespace
}  // namespace parasol
