#include "tool/prediction/prediction_writer.h"

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "cluster/checkpoint/model/testing/model_checkpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/format/tf_example.h"
#include "ml/input/format/tfrecord_set.h"
#include "ml/input/record/records.h"
#include "storage/durable_file.h"
#include "storage/tensor_files/npy_header.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Kind = PredictionField::Kind;

const std::vector<PredictionField>& Fields() {
  static const auto* const fields = new std::vector<PredictionField>{
      {.name = "a \"b\"", .kind = Kind::kText, .columns = {"a \"b\""}},
      {.name = "p", .kind = Kind::kNumber, .columns = {"p"}},
      {.name = "all", .kind = Kind::kNumbers, .columns = {"x,y", "z"}}};
  return *fields;
}

// Predictions of two examples.
absl::StatusOr<std::string> Written(const std::string& path,
                                    bool is_first = true) {
  ASSIGN_OR_RETURN(const auto writer,
                   PredictionWriter::Create(path, Fields(), is_first));
  RETURN_IF_ERROR(writer->Append({{.text = "say \"no\",\n"},
                                  {.numbers = {0.1f}},
                                  {.numbers = {-2, INFINITY}}}));
  RETURN_IF_ERROR(
      writer->Append({{}, {.numbers = {NAN}}, {.numbers = {1e-45f, 3}}}));
  EXPECT_FALSE(std::filesystem::exists(path));
  RETURN_IF_ERROR(writer->Finish());
  return ReadFile(path, 1 << 20);
}

TEST(PredictionWriterTest, CsvHasALineOfNamesAndOneForEachExample) {
  const std::string examples =
      "\"say \"\"no\"\",\n\",0.1,-2,inf\n,nan,1e-45,3\n";
  EXPECT_THAT(Written(EmptyTestDirectory() + "/p.csv"),
              IsOkAndHolds("\"a \"\"b\"\"\",p,\"x,y\",z\n" + examples));
  EXPECT_THAT(Written(EmptyTestDirectory() + "/p.csv", /*is_first=*/false),
              IsOkAndHolds(examples));
}

TEST(PredictionWriterTest, JsonHasNullForWhatIsNotThere) {
  EXPECT_THAT(Written(EmptyTestDirectory() + "/p.jsonl"),
              IsOkAndHolds("{\"a \\\"b\\\"\":\"say \\\"no\\\",\\n\",\"p\":0.1,"
                           "\"all\":[-2,null]}\n"
                           "{\"a \\\"b\\\"\":null,\"p\":null,"
                           "\"all\":[1e-45,3]}\n"));
}

TEST(PredictionWriterTest, BlanksAtTheEdgesAreInQuotes) {
  const std::string path = EmptyTestDirectory() + "/p.csv";
  ASSERT_OK_AND_ASSIGN(const auto writer,
                       PredictionWriter::Create(path, {Fields()[0]}, false));
  ASSERT_OK(writer->Append({{.text = " a"}}));
  ASSERT_OK(writer->Append({{.text = "a b"}}));
  ASSERT_OK(writer->Finish());
  EXPECT_THAT(ReadFile(path, 1 << 20), IsOkAndHolds("\" a\"\na b\n"));
}

TEST(PredictionWriterTest, TheFolderIsMade) {
  const std::string path = EmptyTestDirectory() + "/new/folder/p.csv";
  EXPECT_OK(Written(path).status());
}

TEST(PredictionWriterTest, NpyKnowsTheNumberOfExamplesAtTheEnd) {
  const std::string path = EmptyTestDirectory() + "/p.npy";
  ASSERT_OK_AND_ASSIGN(const auto writer,
                       PredictionWriter::Create(path, {Fields()[2]}));
  for (int i = 0; i < 3; ++i) ASSERT_OK(writer->Append({{.numbers = {1, 2}}}));
  ASSERT_OK(writer->Finish());
  ASSERT_OK_AND_ASSIGN(const std::string bytes, ReadFile(path, 1 << 20));
  ASSERT_OK_AND_ASSIGN(const size_t header, NpyHeaderBytes(bytes));
  ASSERT_OK_AND_ASSIGN(const TensorInfo array,
                       ParseNpyHeader(bytes.substr(0, header)));
  EXPECT_EQ(array.type, ElementType::kFloat32);
  EXPECT_THAT(array.shape, ElementsAre(3, 2));
  EXPECT_EQ(bytes.size(), header + 6 * sizeof(float));
}

// Read with the code that reads training data.
TEST(PredictionWriterTest, ATfRecordHasAnExampleForEachExample) {
  ASSERT_OK_AND_ASSIGN(const std::string bytes,
                       Written(EmptyTestDirectory() + "/p.tfrecord"));
  Records records(Records::Content::kBinary);
  records.AddFile("p.tfrecord", bytes);
  records.AddAll(TfRecordFormat(), 0, /*is_cut=*/false);
  ASSERT_EQ(records.size(), 2);
  RecordReader reader(records);
  std::vector<std::string> texts;
  std::vector<float> numbers;
  for (int64_t i = 0; i < records.size(); ++i) {
    ASSERT_OK_AND_ASSIGN(const absl::string_view example,
                         TfRecordBytes(reader, i));
    ASSERT_OK(ForEachFeature(example, [&](absl::string_view name,
                                          absl::string_view feature) {
      std::vector<FieldValue> values;
      const absl::Status status = ReadFeature(feature, values);
      char buffer[FieldValue::kMaxNumberBytes];
      for (const FieldValue& value : values) {
        if (name == "a \"b\"") {
          texts.emplace_back(value.AsText(buffer));
        } else {
          numbers.push_back(static_cast<float>(value.AsNumber().value_or(0)));
        }
      }
      return status;
    }));
  }
  EXPECT_THAT(texts, ElementsAre("say \"no\",\n"));
  // 0 stands for what is not finite.
  EXPECT_THAT(numbers, ElementsAre(0.1f, -2, 0, 0, 1e-45f, 3));
}

TEST(PredictionWriterTest, OtherSuffixesAreRefused) {
  EXPECT_THAT(PredictionWriter::Create("/tmp/p.txt", Fields()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--output=/tmp/p.txt")));
}

}  // namespace
}  // namespace parasol
