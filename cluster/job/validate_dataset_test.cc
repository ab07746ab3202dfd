#include "cluster/job/validate_dataset.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/job/dataset_defaults.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::StartsWith;

absl::Status Validated(const std::string& text) {
  job::Job job;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      absl::StrCat("train {", text, "}"), &job));
  FillDatasetDefaults(job);
  return ValidateDataset("train", job.train(), job.model()).first();
}

TEST(ValidateDatasetTest, EveryFormatHasASmallestForm) {
  for (const char* text :
       {"idx { images: 'a' labels: 'b' }", "cifar { file: 'a' }",
        "libsvm { file: 'a' }", "csv { file: '*' label { column: 'y' } }",
        "criteo { file: 'a' }", "ratings { file: 'a' }",
        "tfrecord { file: 'a' label: 'y' }",
        "parquet { file: 'a' label { column: 'y' } }"}) {
    EXPECT_OK(Validated(text)) << text;
  }
}

TEST(ValidateDatasetTest, FaultsAreNamedByTheirField) {
  const std::string csv = "csv { file: 'a' label { column: 'y' } ";
  const std::string libsvm = "libsvm { file: 'a' } ";
  const struct {
    std::string text;
    std::string want;
  } cases[] = {
      {"", "train: no format is chosen"},
      {"idx { images: 'a' }", "train.idx.labels: is not set"},
      {"cifar {}", "train.cifar.file: is not set"},
      {"libsvm { file: 'a' file: '' }", "train.libsvm.file[1]: is not set"},
      {"libsvm { file: 'a' first_index: 2 }", "train.libsvm.first_index: 2 is"},
      {"csv { file: 'a' }", "train.csv.label.column: is not set"},
      {csv + "delimiter: '' }", "train.csv.delimiter: \"\" is not 1 to 16"},
      {csv + "delimiter: '\"' }", "train.csv.delimiter: "},
      {csv + "skip_lines: -1 }", "train.csv.skip_lines: -1 is not in"},
      {csv + "column: 'y' column: 'y' }", "train.csv.column: y appears twice"},
      {csv + "column: 'x' }",
       "train.csv.label.column: the column list has no \"y\""},
      {csv + "column: 'y' weight_column: 'w' }",
       "train.csv.weight_column: the column list has no \"w\""},
      {"csv { file: 'a' label { column: 'y' positive: 'a' class: 'b' } }",
       "train.csv.label: has both positive and class"},
      {"tfrecord { file: 'a' }", "train.tfrecord.label: is not set"},
      {"parquet { label { column: 'y' } }", "train.parquet.file: is not set"},
      {"parquet { file: 'a' }", "train.parquet.label.column: is not set"},
      {"parquet { file: 'a' label { column: 'y' positive: 'a' class: 'b' } }",
       "train.parquet.label: has both positive and class"},
      {libsvm + "batch_size: 0", "train.batch_size: 0 is not in"},
      {libsvm + "shuffle_buffer: -1", "train.shuffle_buffer: -1 is not in"},
      {libsvm + "prefetch_batches: 0", "train.prefetch_batches: 0 is not in"},
      {libsvm + "decode_threads: 0", "train.decode_threads: 0 is not in"},
      {libsvm + "image { mean: 1 }", "train.image: only idx and cifar"},
      {"cifar { file: 'a' } image { stddev: 0 }",
       "train.image.stddev: 0 is not greater than 0"},
      {"cifar { file: 'a' } image { random_crop_padding: -1 }",
       "train.image.random_crop_padding: -1 is not in"},
      {libsvm + "split { from: 0.5 to: 0.5 }",
       "train.split: from is 0.5 and to is 0.5; they must be 0 <= from"},
      {libsvm + "split { to: 1.5 }", "train.split: from is 0 and to is 1.5"},
      {libsvm + "split { to: nan }", "train.split: from is 0 and to is nan"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.text);
    const absl::Status status = Validated(c.text);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), StartsWith(c.want));
  }
}

// With named outputs the labels are columns, and said there alone.
TEST(ValidateDatasetTest, LabelsOfNamedOutputsAreColumns) {
  const auto validated = [](const std::string& text) {
    job::Job job;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        absl::StrCat("model { output { name: 'a' label { column: 'y' } mask: "
                     "'m' } } train {",
                     text, "}"),
        &job));
    FillDatasetDefaults(job);
    return ValidateDataset("train", job.train(), job.model()).first();
  };
  for (const char* text :
       {"csv { file: '*' }", "csv { file: '*' column: ['x', 'y', 'm'] }",
        "criteo { file: 'a' }", "ratings { file: 'a' }",
        "tfrecord { file: 'a' }", "parquet { file: 'a' }"}) {
    EXPECT_OK(validated(text)) << text;
  }
  const struct {
    std::string text;
    std::string want;
  } cases[] = {
      {"csv { file: 'a' label { column: 'y' } }",
       "train.csv.label.column: model.output says the columns of the labels"},
      {"tfrecord { file: 'a' label: 'y' }",
       "train.tfrecord.label: model.output says the columns of the labels"},
      {"parquet { file: 'a' label { column: 'y' } }",
       "train.parquet.label.column: model.output says the columns of the"},
      {"csv { file: 'a' column: ['x', 'y'] }",
       "train.csv: of output \"a\": the column list has no \"m\""},
      {"libsvm { file: 'a' }",
       "train: model.output \"a\" has its labels in a "},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.text);
    EXPECT_THAT(std::string(validated(c.text).message()), StartsWith(c.want));
  }
}

TEST(ValidateDatasetTest, LossesThatCompareExamplesSayWhatTheyNeed) {
  const auto validated = [](const std::string& loss, const std::string& text) {
    job::Job job;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        absl::StrCat("model { loss {", loss,
                     "} metric { ndcg { group: 'u' } } "
                     "} train {",
                     text, "}"),
        &job));
    FillDatasetDefaults(job);
    return ValidateDataset("train", job.train(), job.model()).first();
  };
  const std::string pairs = "pairwise_logistic { group: 'g' }";
  const std::string csv = "csv { file: 'a' label { column: 'y' } ";
  EXPECT_OK(validated(pairs, csv + "}"));
  // What metrics read is not train's.
  EXPECT_OK(validated(pairs, csv + "column: ['g', 'y'] }"));
  EXPECT_OK(validated("in_batch_softmax {}", "csv { file: 'a' }"));
  EXPECT_OK(validated("in_batch_softmax {}", "tfrecord { file: 'a' }"));
  const struct {
    std::string loss;
    std::string text;
    std::string want;
  } cases[] = {
      {pairs, csv + "column: ['x', 'y'] }",
       "train.csv: a loss or a metric: the column list has no \"g\""},
      {pairs, "libsvm { file: 'a' }",
       "train: a loss or a metric reads the column \"g\", and this format"},
      {pairs, csv + "} micro_batch_size: 8",
       "train.micro_batch_size: pairwise_logistic and in_batch_softmax "
       "compare"},
      {"mean_squared_error {}", "csv { file: 'a' }",
       "train.csv.label.column: is not set"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.want);
    EXPECT_THAT(std::string(validated(c.loss, c.text).message()),
                StartsWith(c.want));
  }
}

}  // namespace
}  // namespace parasol
