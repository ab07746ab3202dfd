#include "ml/input/format/custom_source.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/format/given_examples.h"
#include "ml/input/format/raw_columns.h"
#include "ml/input/input_pipeline.h"
#include "ml/input/testing/input_files.h"
#include "ml/input/testing/read_all.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kExamples = 25;
constexpr int64_t kFirstFile = 11;
constexpr int64_t kCorrupt = 7;

// The columns of examples whose label is their number: "name" has no value in
// every third one, "x" has two values. Two files.
class Numbered : public ExampleSource {
 public:
  explicit Numbered(std::string corrupt) : corrupt_(std::move(corrupt)) {}

  const std::vector<std::string>& columns() const override { return columns_; }
  std::string label() const override {
    return corrupt_ == "label" ? "lable" : "number";
  }
  std::string weight() const override { return "weight"; }
  const std::vector<int64_t>& file_starts() const override {
    return corrupt_ == "starts" ? wrong_ : starts_;
  }
  std::unique_ptr<Reader> NewReader() const override {
    return std::make_unique<NumberedReader>(corrupt_ == "example");
  }

 private:
  class NumberedReader : public Reader {
   public:
    explicit NumberedReader(bool corrupt) : corrupt_(corrupt) {}

    absl::Status Read(int64_t example, ColumnValues& row) override {
      if (corrupt_ && example == kCorrupt) {
        return absl::DataLossError("the source's example 7 is corrupt");
      }
      name_ = absl::StrCat("n", example);
      row[0].push_back(FieldValue::Integer(example));
      if (example % 3 > 0) row[1].push_back(FieldValue::Text(name_));
      row[2].push_back(FieldValue::Real(.5f * example));
      row[3].push_back(FieldValue::Integer(1 + example % 2));
      return absl::OkStatus();
    }

   private:
    const bool corrupt_;
    std::string name_;
  };

  const std::string corrupt_;
  const std::vector<std::string> columns_ = {"number", "name", "x", "weight"};
  const std::vector<int64_t> starts_ = {0, kFirstFile, kExamples};
  const std::vector<int64_t> wrong_ = {1, kExamples};
};

absl::StatusOr<std::unique_ptr<const ExampleSource>> OpenNumbered(
    const job::CustomDataset& spec, const SourceOptions& options) {
  if (spec.parameter_size() > 0 && spec.parameter(0).value() == "files") {
    return absl::InvalidArgumentError(absl::StrJoin(options.files, " "));
  }
  return std::make_unique<Numbered>(
      spec.parameter_size() > 0 ? spec.parameter(0).value() : "");
}

const ExampleSourceRegistration kRegistration("numbered", OpenNumbered);

constexpr char kModel[] =
    "input { name: 'x' dense { column { name: 'x' } } } "
    "input { name: 'name' ids { column { name: 'name' hash {} } } } "
    "layer { dense { units: 1 } } loss { mean_squared_error {} }";

// Writes the examples as lines of two files.
std::string Csv(bool is_corrupt) {
  std::string files[2] = {"number,name,x,weight\n", "number,name,x,weight\n"};
  for (int64_t i = 0; i < kExamples; ++i) {
    absl::StrAppend(&files[i < kFirstFile ? 0 : 1], i, ",",
                    i % 3 > 0 ? absl::StrCat("n", i) : "", ",",
                    is_corrupt && i == kCorrupt ? "bad" : absl::StrCat(.5 * i),
                    ",", 1 + i % 2, "\n");
  }
  WriteTestFile("numbered_0.csv", files[0]);
  WriteTestFile("numbered_1.csv", files[1]);
  return "csv { file: ['numbered_0.csv', 'numbered_1.csv'] delimiter: ',' "
         "label { column: 'number' } weight_column: 'weight' } ";
}

std::string Custom(const std::string& corrupt) {
  return absl::StrCat(
      "custom { type: 'numbered' ",
      corrupt.empty() ? ""
                      : absl::StrCat("parameter { value: '", corrupt, "' }"),
      " } ");
}

std::string TextOf(const Batch& batch) {
  return absl::StrCat(batch.size, ": ",
                      absl::StrJoin(batch.dense[0].values, ","), "; ",
                      absl::StrJoin(batch.ids[0].offsets, ","), "; ",
                      absl::StrJoin(batch.ids[0].ids, ","), "; ",
                      absl::StrJoin(batch.labels, ","), "; ",
                      absl::StrJoin(batch.weights, ","));
}

// The first batches that a reader gives.
absl::StatusOr<std::vector<std::string>> Batches(const std::string& dataset,
                                                 InputOptions options,
                                                 int count) {
  options.data_dir = testing::TempDir();
  ASSIGN_OR_RETURN(const ModelInputs inputs, InputsFromText(kModel));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<InputPipeline> pipeline,
      InputPipeline::Open(FromText<job::Dataset>(dataset), inputs, options));
  std::vector<std::string> batches;
  for (int i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(const Batch* const batch, pipeline->Next());
    if (batch == nullptr) break;
    batches.push_back(TextOf(*batch));
  }
  return batches;
}

TEST(CustomSourceTest, GivesTheBatchesOfACsvFileWithTheSameExamples) {
  struct Case {
    std::string name;
    std::string settings;
    InputOptions options;
    int batches;
  };
  const Case cases[] = {
      {"in order", "batch_size: 4", {}, 7},
      {"shuffled, several epochs",
       "batch_size: 4 shuffle_buffer: 9",
       {.data_dir = "", .seed = 3, .repeat = true},
       20},
      {"resumed in the second epoch",
       "batch_size: 4 shuffle_buffer: 9",
       {.data_dir = "", .seed = 3, .repeat = true, .first_batch = 9},
       5},
      {"a shard of examples",
       "batch_size: 4 shuffle_buffer: 9",
       {.data_dir = "", .seed = 3, .shard = 1, .num_shards = 3},
       2},
      {"a shard of files",
       "batch_size: 4 auto_shard: FILE",
       {.data_dir = "", .shard = 1, .num_shards = 2},
       4},
      {"a split", "batch_size: 4 split { from: .3 to: .9 seed: 2 }", {}, 3},
  };
  const std::string csv = Csv(/*is_corrupt=*/false);
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    ASSERT_OK_AND_ASSIGN(const std::vector<std::string> want,
                         Batches(csv + c.settings, c.options, c.batches));
    EXPECT_THAT(want, SizeIs(c.batches));
    EXPECT_THAT(Batches(Custom("") + c.settings, c.options, c.batches),
                IsOkAndHolds(want));
  }
}

TEST(CustomSourceTest, CorruptExamplesAreSkippedOrAnError) {
  const std::string skip = "batch_size: 4 on_corrupt: SKIP";
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> want,
                       Batches(Csv(/*is_corrupt=*/true) + skip, {}, 7));
  EXPECT_THAT(Batches(Custom("example") + skip, {}, 7), IsOkAndHolds(want));
  EXPECT_THAT(Batches(Custom("example") + "batch_size: 4", {}, 7),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("the source's example 7 is corrupt")));
}

TEST(CustomSourceTest, NamedOutputsHaveTheirLabelsInItsColumns) {
  ASSERT_OK_AND_ASSIGN(
      const Batch batch,
      ReadAll(Custom(""),
              "input { name: 'x' dense { column { name: 'x' } } } "
              "output { name: 'a' label { column: 'weight' } "
              "  loss { mean_squared_error {} } }"));
  EXPECT_THAT(batch.labels, IsEmpty());
  ASSERT_THAT(batch.targets, SizeIs(1));
  EXPECT_EQ(batch.targets[0].labels[0], 1);
  EXPECT_EQ(batch.targets[0].labels[1], 2);
}

TEST(CustomSourceTest, LossesThatCompareExamplesReadItsColumns) {
  ASSERT_OK_AND_ASSIGN(
      const Batch batch,
      ReadAll(Custom(""),
              "input { name: 'x' dense { column { name: 'x' } } } "
              "layer { dense { units: 1 } } "
              "loss { pairwise_logistic { group: 'weight' } }"));
  EXPECT_EQ(batch.labels[5], 5);
  ASSERT_THAT(batch.columns, SizeIs(1));
  ASSERT_THAT(batch.columns[0].keys, SizeIs(kExamples));
  EXPECT_EQ(batch.columns[0].keys[0], batch.columns[0].keys[2]);
  EXPECT_NE(batch.columns[0].keys[0], batch.columns[0].keys[1]);
}

TEST(CustomSourceTest, ItsColumnsAreThereForToolsAndForServing) {
  ASSERT_OK_AND_ASSIGN(
      const auto columns,
      RawColumns::Open(FromText<job::Dataset>(Custom("")), testing::TempDir()));
  EXPECT_THAT(columns->names(), ElementsAre("number", "name", "x", "weight"));
  EXPECT_EQ(columns->size(), kExamples);
  EXPECT_EQ(columns->label(), "number");
  EXPECT_EQ(columns->weight(), "weight");
  ColumnValues row;
  ASSERT_OK(columns->Read(3, row));
  ASSERT_OK(columns->Read(4, row));
  char buffer[FieldValue::kMaxNumberBytes];
  EXPECT_EQ(row[1].at(0).AsText(buffer), "n4");
  // Examples that are given by value need none of the code.
  ASSERT_OK_AND_ASSIGN(const ModelInputs inputs, InputsFromText(kModel));
  ASSERT_OK_AND_ASSIGN(
      const GivenExamples given,
      GivenExamples::Create(
          FromText<job::Dataset>("custom { type: 'elsewhere' }"), inputs));
  EXPECT_THAT(given.columns(), SizeIs(2));
}

TEST(CustomSourceTest, WhatCannotBeIsNamed) {
  WriteTestFile("some.bin", "");
  struct Case {
    std::string dataset;
    absl::StatusCode code;
    std::string message;
  };
  const Case cases[] = {
      {"custom { type: 'numberd' }", absl::StatusCode::kFailedPrecondition,
       "no custom data source \"numberd\" (it has: numbered); did you mean"},
      {"custom { type: 'numbered' file: 'none*' }", absl::StatusCode::kNotFound,
       "none*"},
      {"custom { type: 'numbered' file: 'some.b*' "
       "parameter { value: 'files' } }",
       absl::StatusCode::kInvalidArgument, "/some.bin"},
      {Custom("label"), absl::StatusCode::kInvalidArgument,
       "the label of the data source \"numbered\": the data source has no "
       "column \"lable\""},
      {Custom("starts"), absl::StatusCode::kInternal, "file_starts() of {1, "}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.dataset);
    EXPECT_THAT(Batches(c.dataset + " batch_size: 4", {}, 1),
                StatusIs(c.code, HasSubstr(c.message)));
  }
}

}  // namespace
}  // namespace parasol
