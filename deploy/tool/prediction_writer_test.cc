#include "deploy/tool/prediction_writer.h"

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "deploy/tool/testing/model_checkpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/format/records.h"
#include "ml/input/format/tf_example.h"
#include "ml/input/format/tfrecord_set.h"
#include "storage/durable_file.h"
#include "storage/tensor_files/npy_header.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Outputs of three examples, two numbers each, written in two batches.
absl::StatusOr<std::string> Written(const std::string& path) {
  ASSIGN_OR_RETURN(const auto writer, PredictionWriter::Create(path, 2));
  RETURN_IF_ERROR(writer->Append({0.1f, -2, INFINITY, 1e-45f}));
  RETURN_IF_ERROR(writer->Append({NAN, 3}));
  EXPECT_FALSE(std::filesystem::exists(path));
  RETURN_IF_ERROR(writer->Finish());
  return ReadFile(path, 1 << 20);
}

TEST(PredictionWriterTest, CsvHasALineForEachExample) {
  EXPECT_THAT(Written(EmptyTestDirectory() + "/p.csv"),
              IsOkAndHolds("0.1,-2\ninf,1e-45\nnan,3\n"));
}

TEST(PredictionWriterTest, JsonHasNullForWhatIsNotFinite) {
  EXPECT_THAT(Written(EmptyTestDirectory() + "/p.jsonl"),
              IsOkAndHolds("[0.1,-2]\n[null,1e-45]\n[null,3]\n"));
}

TEST(PredictionWriterTest, OutputsHaveTheirNames) {
  const auto written = [](const std::string& name,
                          bool is_first) -> absl::StatusOr<std::string> {
    const std::string path = EmptyTestDirectory() + name;
    ASSIGN_OR_RETURN(
        const auto writer,
        PredictionWriter::Create(path, 3, {{"a", 1}, {"b", 2}}, is_first));
    RETURN_IF_ERROR(writer->Append({1, 2, 3, 4, NAN, 6}));
    RETURN_IF_ERROR(writer->Finish());
    return ReadFile(path, 1 << 20);
  };
  EXPECT_THAT(written("/p.csv", true),
              IsOkAndHolds("a,b_0,b_1\n1,2,3\n4,nan,6\n"));
  EXPECT_THAT(written("/p.csv", false), IsOkAndHolds("1,2,3\n4,nan,6\n"));
  EXPECT_THAT(
      written("/p.jsonl", true),
      IsOkAndHolds("{\"a\":[1],\"b\":[2,3]}\n{\"a\":[4],\"b\":[null,6]}\n"));
}

TEST(PredictionWriterTest, NpyKnowsTheNumberOfExamplesAtTheEnd) {
  ASSERT_OK_AND_ASSIGN(const std::string bytes,
                       Written(EmptyTestDirectory() + "/p.npy"));
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
  IndexTfRecords(records.AddFile("p.tfrecord", bytes), records);
  ASSERT_EQ(records.size(), 3);
  std::vector<float> outputs;
  for (int64_t i = 0; i < records.size(); ++i) {
    ASSERT_OK_AND_ASSIGN(const absl::string_view example,
                         TfRecordBytes(records, i));
    ASSERT_OK(ForEachFeature(
        example, [&](absl::string_view name, absl::string_view feature) {
          EXPECT_EQ(name, "outputs");
          std::vector<FieldValue> values;
          const absl::Status status = ReadFeature(feature, values);
          EXPECT_EQ(values.size(), 2);
          for (const FieldValue& value : values) {
            outputs.push_back(static_cast<float>(value.AsNumber().value_or(0)));
          }
          return status;
        }));
  }
  // 0 stands for what is not finite.
  EXPECT_THAT(outputs, ElementsAre(0.1f, -2, 0, 1e-45f, 0, 3));
}

TEST(PredictionWriterTest, OtherSuffixesAreRefused) {
  EXPECT_THAT(PredictionWriter::Create("/tmp/p.txt", 2).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--output=/tmp/p.txt")));
}

}  // namespace
}  // namespace parasol
