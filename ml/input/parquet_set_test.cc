// Parquet and Arrow files beside a CSV file with the same rows: every batch is
// the same, whatever wrote them, in memory and on the disk.

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/format/dataset_columns.h"
#include "ml/input/format/raw_columns.h"
#include "ml/input/input_pipeline.h"
#include "ml/input/testing/arrow_environment.h"
#include "ml/input/testing/input_files.h"
#include "ml/input/testing/mutated.h"
#include "ml/input/testing/read_all.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kFolder[] = "ml/input/arrow/testdata";
constexpr int64_t kRows = 40;
constexpr SetMemory kOnDisk = {
    .whole = 0, .block_bytes = 100, .cache_bytes = 700};

// Inputs of all columns but the vector, which CSV has in four.
constexpr char kColumns[] = R"pb(
  loss { binary_crossentropy {} }
  input {
    name: "numbers"
    dense {
      column { name: "age" default_value: -1 mean: 50 stddev: 7 }
      column { name: "small" default_value: 3 }
      column { name: "price" default_value: 0.5 log1p: true }
      column { name: "half" }
      column { name: "amount" default_value: 0 }
      column { name: "flag" default_value: 0.5 }
      column { name: "big" }
    }
  }
  input {
    name: "ids"
    ids {
      column {
        name: "user"
        hash {}
      }
      column {
        name: "city"
        vocabulary { value: "Wien" value: "x" }
      }
      column {
        name: "age"
        boundaries { boundary: 18 boundary: 65 }
      }
      column {
        name: "city"
        name: "age"
        hash { buckets: 1000 }
      }
      column {
        name: "big"
        hash {}
        missing: NO_ID
      }
      column {
        name: "unsigned"
        hash {}
      }
    }
  }
  input {
    name: "unsigned"
    ids {}
  }
  input {
    name: "items"
    ids {
      column {
        name: "items"
        identity { num_ids: 50 }
      }
      sequence { length: 4 separator: "|" }
    }
  }
  input {
    name: "words"
    ids {
      column {
        name: "words"
        vocabulary { value: "Wien" }
      }
      sequence { length: 2 separator: "|" keep: FIRST }
    }
  }
)pb";

constexpr char kVector[] =
    "input { name: 'v' dense { shape: 4 column { name: 'vector' } } }";
constexpr char kFourColumns[] =
    "input { name: 'v' dense { column { name: 'v0' } column { name: 'v1' } "
    "column { name: 'v2' } column { name: 'v3' } } }";
constexpr char kLabel[] =
    "label { column: 'clicked' positive: 'yes' } weight_column: 'weight' ";
constexpr char kCsv[] = "csv { file: 'rows.csv' missing: 'NA' ";

std::string Parquet(const std::string& file) {
  return absl::StrCat("parquet { file: '", file, "' ", kLabel, "}");
}

std::string PathOf(const std::string& name) {
  return absl::StrCat(kFolder, "/", name);
}

std::string BytesOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Reading {
  std::string folder = kFolder;
  SetMemory memory = {};
  std::string settings = "batch_size: 1000 shuffle_buffer: 0";
  uint64_t seed = 0;
};

absl::StatusOr<std::unique_ptr<InputPipeline>> OpenPipeline(
    const std::string& dataset, const std::string& model,
    const Reading& reading = {}) {
  const auto spec =
      FromText<job::Dataset>(absl::StrCat(reading.settings, " ", dataset));
  ASSIGN_OR_RETURN(const ModelInputs inputs, InputsFromText(model));
  return InputPipeline::Open(spec, inputs,
                             {.data_dir = reading.folder,
                              .seed = reading.seed,
                              .memory = reading.memory});
}

// All batches of an epoch.
absl::StatusOr<std::vector<Batch>> Batches(const std::string& dataset,
                                           const std::string& model,
                                           const Reading& reading = {}) {
  ASSIGN_OR_RETURN(const std::unique_ptr<InputPipeline> pipeline,
                   OpenPipeline(dataset, model, reading));
  std::vector<Batch> batches;
  int64_t left = pipeline->total_examples();
  while (left > 0) {
    ASSIGN_OR_RETURN(const Batch* const batch, pipeline->Next());
    if (batch == nullptr) break;
    batches.push_back(*batch);
    left -= batch->size;
  }
  return batches;
}

void ExpectSame(const std::vector<Batch>& a, const std::vector<Batch>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].size, b[i].size);
    EXPECT_EQ(a[i].labels, b[i].labels);
    EXPECT_EQ(a[i].weights, b[i].weights);
    ASSERT_EQ(a[i].dense.size(), b[i].dense.size());
    for (size_t j = 0; j < a[i].dense.size(); ++j) {
      EXPECT_EQ(a[i].dense[j].values, b[i].dense[j].values) << j;
    }
    ASSERT_EQ(a[i].ids.size(), b[i].ids.size());
    for (size_t j = 0; j < a[i].ids.size(); ++j) {
      EXPECT_EQ(a[i].ids[j].ids, b[i].ids[j].ids) << j;
      EXPECT_EQ(a[i].ids[j].offsets, b[i].ids[j].offsets) << j;
    }
  }
}

class ParquetSetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string lacks = ArrowLacks();
    if (!lacks.empty()) GTEST_SKIP() << lacks;
  }

  static std::vector<Batch> OfCsv(const std::string& columns = kColumns,
                                  const Reading& reading = {}) {
    auto batches = Batches(absl::StrCat(kCsv, kLabel, "}"),
                           absl::StrCat(columns, kFourColumns), reading);
    EXPECT_OK(batches.status());
    return batches.ok() ? *std::move(batches) : std::vector<Batch>();
  }
};

class EveryFileTest : public ParquetSetTest,
                      public ::testing::WithParamInterface<std::string> {};

TEST_P(EveryFileTest, HasTheBatchesOfTheCsvFile) {
  const std::vector<Batch> expected = OfCsv();
  ASSERT_THAT(expected, SizeIs(1));
  ASSERT_EQ(expected.front().size, kRows);
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Batch> batches,
      Batches(Parquet(GetParam()), absl::StrCat(kColumns, kVector)));
  ExpectSame(batches, expected);
}

INSTANTIATE_TEST_SUITE_P(
    Files, EveryFileTest,
    ::testing::Values("none.parquet", "snappy.parquet", "gzip.parquet",
                      "brotli.parquet", "zstd.parquet", "lz4.parquet",
                      "encodings.parquet", "no_arrow_schema.parquet",
                      "part_?.parquet", "polars.parquet", "duckdb.parquet",
                      "plain.arrow", "lz4.arrow", "zstd.arrow", "large.arrow",
                      "feather.feather", "polars.arrow"),
    [](const ::testing::TestParamInfo<std::string>& info) {
      std::string name = info.param;
      for (char& c : name) {
        if (c == '.' || c == '?') c = '_';
      }
      return name;
    });

TEST_F(ParquetSetTest, ReadsWhatFastparquetWrites) {
  constexpr char kSome[] =
      "loss { binary_crossentropy {} } input { name: 'price' dense { column { "
      "name: 'price' default_value: 2 } } } input { name: 'u' ids { column { "
      "name: 'user' hash {} } column { name: 'big' hash {} } } }";
  ASSERT_OK_AND_ASSIGN(const std::vector<Batch> expected,
                       Batches(absl::StrCat(kCsv, kLabel, "}"), kSome));
  ASSERT_OK_AND_ASSIGN(const std::vector<Batch> batches,
                       Batches(Parquet("fastparquet.parquet"), kSome));
  ExpectSame(batches, expected);
}

TEST_F(ParquetSetTest, ShuffledBatchesAreTheSameOnTheDiskAndOfEveryCutting) {
  const std::string shuffled =
      "batch_size: 7 shuffle_buffer: 13 decode_threads: 2";
  const std::string model = absl::StrCat(kColumns, kVector);
  const Reading in_memory = {.settings = shuffled, .seed = 9};
  const Reading on_disk = {.memory = kOnDisk, .settings = shuffled, .seed = 9};
  const std::vector<Batch> expected = OfCsv(kColumns, in_memory);
  ASSERT_THAT(expected, SizeIs(6));
  for (const std::string file : {"zstd.parquet", "no_arrow_schema.parquet",
                                 "part_?.parquet", "large.arrow"}) {
    SCOPED_TRACE(file);
    for (const Reading& reading : {in_memory, on_disk}) {
      ASSERT_OK_AND_ASSIGN(const std::vector<Batch> batches,
                           Batches(Parquet(file), model, reading));
      ExpectSame(batches, expected);
    }
  }
}

TEST_F(ParquetSetTest, APackedFileIsUnpacked) {
  const std::string gz = testing::TempDir() + "/packed.gz";
  ASSERT_EQ(
      std::system(
          absl::StrCat("gzip -c ", PathOf("none.parquet"), " > ", gz).c_str()),
      0);
  Reading reading;
  reading.folder = testing::TempDir();
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Batch> batches,
      Batches(Parquet("packed.gz"), absl::StrCat(kColumns, kVector), reading));
  ExpectSame(batches, OfCsv());
}

TEST_F(ParquetSetTest, WorkersThatShareByFilesHaveTheirOwn) {
  const auto spec = FromText<job::Dataset>(
      absl::StrCat("batch_size: 100 shuffle_buffer: 0 auto_shard: FILE ",
                   Parquet("part_?.parquet")));
  ASSERT_OK_AND_ASSIGN(const ModelInputs inputs,
                       InputsFromText(absl::StrCat(kColumns, kVector)));
  for (const SetMemory& memory : {SetMemory(), kOnDisk}) {
    std::vector<int64_t> sizes;
    for (const int shard : {0, 1}) {
      ASSERT_OK_AND_ASSIGN(const std::unique_ptr<InputPipeline> pipeline,
                           InputPipeline::Open(spec, inputs,
                                               {.data_dir = kFolder,
                                                .shard = shard,
                                                .num_shards = 2,
                                                .memory = memory}));
      ASSERT_OK_AND_ASSIGN(const Batch* const batch, pipeline->Next());
      sizes.push_back(batch->size);
    }
    EXPECT_THAT(sizes, ElementsAre(11, 29));
  }
}

TEST_F(ParquetSetTest, AListOfAnotherLengthThanTheInputsIsCorrupt) {
  EXPECT_THAT(
      Batches("parquet { file: 'plain.arrow' label { column: 'weight' } }",
              "loss { mean_squared_error {} } input { name: 'v' dense { shape: "
              "3 column { name: 'vector' } } }")
          .status(),
      StatusIs(absl::StatusCode::kDataLoss,
               AllOf(HasSubstr("plain.arrow, row group 0, row 0: "),
                     HasSubstr("vector"), HasSubstr("4"))));
  EXPECT_THAT(
      Batches("parquet { file: 'plain.arrow' label { column: 'weight' } }",
              "loss { mean_squared_error {} } input { name: 'v' dense { column "
              "{ name: 'city' default_value: 0 } } }")
          .status(),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("city")));
}

constexpr char kX[] =
    "loss { mean_squared_error {} } input { name: 'x' dense { column { name: "
    "'x' } } }";

std::string Input(const std::string& column) {
  return absl::StrCat(
      "loss { mean_squared_error {} } input { name: 'i' ids { column { name: '",
      column, "' hash {} } } }");
}

std::string OtherTypes(const std::string& files = "other_types.parquet") {
  return absl::StrCat("parquet { file: '", files, "' label { column: 'y' } }");
}

TEST_F(ParquetSetTest, TypesThatAreNotReadAreNamedIfTheJobWantsThem) {
  EXPECT_OK(Batches(OtherTypes(), kX).status());
  for (const auto& [column, type] :
       std::vector<std::pair<std::string, std::string>>{
           {"time", "timestamp"},
           {"day", "date32"},
           {"place", "struct"},
           {"table", "list<list>"}}) {
    EXPECT_THAT(Batches(OtherTypes(), Input(column)).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(absl::StrCat(
                             "other_types.parquet: column \"", column, "\" is ",
                             type, ", which is not read"))));
  }
}

TEST_F(ParquetSetTest, FilesWithTwoTypesOfAColumnAreRefusedWithBoth) {
  EXPECT_THAT(
      Batches(OtherTypes("other_*.parquet"), kX).status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("other_x.parquet: column \"x\" is string, and "
                               "int64 in "),
                     HasSubstr("other_types.parquet"))));
  // Columns of nulls alone go with all types.
  EXPECT_OK(Batches(OtherTypes("other_*.parquet"), Input("nothing")).status());
  EXPECT_THAT(Batches(OtherTypes("other_*.parquet"), Input("time")).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("column \"time\" is timestamp")));
}

TEST_F(ParquetSetTest, AColumnThatIsNotThereIsNamed) {
  EXPECT_THAT(Batches(OtherTypes(), Input("tima")).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("tima")));
  EXPECT_THAT(
      Batches(
          "parquet { file: 'other_types.parquet' label { column: 'pleace' } }",
          kX)
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("parquet.label.column: the files have no column "
                         "\"pleace\", but y, time, day, place, table, "
                         "nothing, x; did you mean \"place\"?")));
}

TEST_F(ParquetSetTest, AMissingLabelMakesTheRowCorruptAndIsNamed) {
  constexpr char kAge[] =
      "loss { mean_squared_error {} } input { name: 'x' dense { column { name: "
      "'half' } } }";
  constexpr char kOfAge[] =
      "parquet { file: 'none.parquet' label { column: 'age' } }";
  EXPECT_THAT(Batches(kOfAge, kAge).status(),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("none.parquet, row group "),
                             HasSubstr(", row "), HasSubstr("label"))));
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Batch> parquet,
      Batches(absl::StrCat("on_corrupt: SKIP ", kOfAge), kAge));
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Batch> csv,
      Batches("on_corrupt: SKIP csv { file: 'rows.csv' label { column: 'age' } "
              "}",
              kAge));
  ExpectSame(parquet, csv);
}

TEST_F(ParquetSetTest, ClassesAndKeptColumnsAreReadAsOfCsv) {
  const auto spec = FromText<job::Dataset>(
      "batch_size: 100 parquet { file: 'lz4.arrow' label { column: 'city' "
      "class: ['x', 'Wien', 'Zürich', '東京', 'a b'] } } on_corrupt: SKIP");
  ASSERT_OK_AND_ASSIGN(
      ModelInputs inputs,
      InputsFromText("input { name: 'x' dense { column { name: 'half' } } } "
                     "layer { dense { units: 5 } }"));
  inputs.kept = {"user", "city", "words"};
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<InputPipeline> pipeline,
      InputPipeline::Open(spec, inputs, {.data_dir = kFolder}));
  ASSERT_OK_AND_ASSIGN(const Batch* const batch, pipeline->Next());
  ASSERT_THAT(batch->kept, SizeIs(3));
  ASSERT_THAT(batch->labels, SizeIs(Gt(20u)));
  const std::vector<std::string> classes = {"x", "Wien", "Zürich", "東京",
                                            "a b"};
  for (size_t i = 0; i < batch->labels.size(); ++i) {
    EXPECT_EQ(batch->kept[1][i],
              classes[static_cast<size_t>(batch->labels[i])]);
  }
  EXPECT_THAT(batch->kept[0], Contains("u452406"));
  EXPECT_THAT(batch->kept[2], Contains("Zürich Wien"));
}

TEST_F(ParquetSetTest, CheckSeesColumnsAndTheirValues) {
  const auto dataset = FromText<job::Dataset>(OtherTypes());
  ASSERT_OK_AND_ASSIGN(const Columns columns, ReadColumns(dataset, kFolder));
  EXPECT_THAT(columns.names, ElementsAre("y", "time", "day", "place", "table",
                                         "nothing", "x"));
  EXPECT_THAT(columns.labels_and_weights, ElementsAre("y"));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RawColumns> raw,
                       RawColumns::Open(dataset, kFolder, {"x"}));
  EXPECT_THAT(raw->names(), ElementsAre("y", "nothing", "x"));
  EXPECT_EQ(raw->size(), 2);
  ColumnValues row;
  ASSERT_OK(raw->Read(1, row));
  EXPECT_EQ(row[2].front().AsNumber(), 2);
  EXPECT_THAT(row[1], IsEmpty());
  EXPECT_THAT(RawColumns::Open(dataset, kFolder, {"day"}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("column \"day\" is date32")));
}

// All values of a record.
std::string RowText(RawColumns& columns, int64_t record) {
  ColumnValues row;
  EXPECT_OK(columns.Read(record, row));
  std::string text;
  char buffer[FieldValue::kMaxNumberBytes];
  for (const std::vector<FieldValue>& values : row) {
    for (const FieldValue& value : values) {
      absl::StrAppend(&text, value.AsText(buffer), "|");
    }
    text += ',';
  }
  return text;
}

TEST_F(ParquetSetTest, ASampleHasTheFirstRowsOfEachFile) {
  const auto dataset = FromText<job::Dataset>(Parquet("part_?.parquet"));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RawColumns> raw,
                       RawColumns::Open(dataset, kFolder, {}, 400));
  EXPECT_TRUE(raw->is_sample());
  EXPECT_THAT(raw->size(), AllOf(Gt(1), Le(8)));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RawColumns> all,
                       RawColumns::Open(dataset, kFolder, {}, 1 << 20));
  EXPECT_FALSE(all->is_sample());
  EXPECT_EQ(all->size(), kRows);
  // Behind them are rows of the second file, whose first one is number 11.
  int64_t of_second = 0;
  for (int64_t i = 0; i < raw->size(); ++i) {
    const std::string row = RowText(*raw, i);
    if (of_second == 0 && row != RowText(*all, i)) of_second = 11 - i;
    EXPECT_EQ(row, RowText(*all, i + of_second));
  }
  EXPECT_THAT(of_second, AllOf(Gt(11 - raw->size()), Le(10)));
  EXPECT_EQ(raw->unpacked_bytes(), std::nullopt);
  EXPECT_GT(all->unpacked_bytes(), uint64_t{400});
}

TEST_F(ParquetSetTest, OnlyTheColumnsThatAreWantedAreReadButAllAreNamed) {
  const auto dataset = FromText<job::Dataset>(OtherTypes("day_?.parquet"));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RawColumns> some,
                       RawColumns::Open(dataset, kFolder, {"x", "none"}));
  EXPECT_THAT(some->names(), ElementsAre("x", "y", "extra"));
  EXPECT_TRUE(some->has_values(0));
  EXPECT_FALSE(some->has_values(1));
  EXPECT_EQ(some->size(), 6);
  ColumnValues row;
  ASSERT_OK(some->Read(3, row));
  ASSERT_THAT(row, SizeIs(3));
  EXPECT_EQ(row[0].front().AsNumber(), 2);
  EXPECT_THAT(row[1], IsEmpty());
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RawColumns> all,
                       RawColumns::Open(dataset, kFolder));
  EXPECT_THAT(all->names(), ElementsAre("x", "y"));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<RawColumns> no_wanted,
                       RawColumns::Open(dataset, kFolder, {"none"}));
  EXPECT_THAT(no_wanted->names(), ElementsAre("x", "y", "extra"));
  EXPECT_EQ(no_wanted->size(), 0);
}

// Expects an error of a file, in one line.
void ExpectRefused(const absl::Status& status, const std::string& what) {
  EXPECT_TRUE(absl::IsDataLoss(status) || absl::IsInvalidArgument(status))
      << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(what), Not(HasSubstr("\n"))));
}

TEST_F(ParquetSetTest, OtherFilesAreRefusedByName) {
  for (const auto& [bytes, what] :
       std::vector<std::pair<std::string, std::string>>{
           {"", "the file is empty"},
           {"PK\x03\x04 and more", "is a zip archive"},
           {"a,b\n1,2\n", "is neither a Parquet nor an Arrow file"},
           {"\xff\xff\xff\xff stream", "is an Arrow stream"},
           {"PAR1", "other.parquet: "},
           {"PAR1 PAR1", "other.parquet: "},
           {"ARROW1", "other.parquet: "}}) {
    WriteTestFile("other.parquet", bytes);
    Reading reading;
    reading.folder = testing::TempDir();
    ExpectRefused(Batches(OtherTypes("other.parquet"), kX, reading).status(),
                  what);
  }
}

// Expects of a changed file an error of one line, or rows.
void ExpectErrorOrRows(const std::string& bytes) {
  WriteTestFile("hurt.bin", bytes);
  for (const std::string corrupt : {"STOP", "SKIP"}) {
    Reading reading;
    reading.folder = testing::TempDir();
    const absl::StatusOr<std::vector<Batch>> batches =
        Batches(absl::StrCat("on_corrupt: ", corrupt, " ", Parquet("hurt.bin")),
                absl::StrCat(kColumns, kVector), reading);
    if (batches.ok()) continue;
    // The names of columns may be what has changed.
    ExpectRefused(batches.status(), "");
  }
}

TEST_F(ParquetSetTest, ACutFileIsAnError) {
  for (const std::string name : {"part_0.parquet", "lz4.arrow"}) {
    const std::string bytes = BytesOf(PathOf(name));
    ASSERT_THAT(bytes, Not(IsEmpty()));
    for (size_t size = 0; size < bytes.size(); size += 61) {
      WriteTestFile("cut.bin", bytes.substr(0, size));
      Reading reading;
      reading.folder = testing::TempDir();
      SCOPED_TRACE(absl::StrCat(name, " ", size));
      ExpectRefused(
          Batches(absl::StrCat("on_corrupt: SKIP ", Parquet("cut.bin")),
                  absl::StrCat(kColumns, kVector), reading)
              .status(),
          "cut.bin: ");
    }
  }
}

TEST_F(ParquetSetTest, NoChangedByteEndsTheProcess) {
  std::mt19937_64 random(46);
  for (const std::string name : {"part_0.parquet", "encodings.parquet",
                                 "plain.arrow", "lz4.arrow", "polars.arrow"}) {
    SCOPED_TRACE(name);
    const std::string bytes = BytesOf(PathOf(name));
    for (size_t at = random() % 97; at < bytes.size(); at += 97) {
      std::string flipped = bytes;
      flipped[at] ^= static_cast<char>(1 << random() % 8);
      ExpectErrorOrRows(flipped);
    }
    for (int i = 0; i < 60; ++i) ExpectErrorOrRows(Mutated(bytes, random));
  }
}

TEST_F(ParquetSetTest, ADamagedPageIsNamedOrCostsTheRestOfItsRowGroup) {
  std::string bytes = BytesOf(PathOf("none.parquet"));
  // A text of the second row group of 16 rows: its page's checksum is wrong.
  constexpr char kUser[] = "u";
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<RawColumns> raw,
      RawColumns::Open(FromText<job::Dataset>(Parquet("none.parquet")),
                       kFolder));
  ColumnValues row;
  std::string user;
  for (int64_t i = 20; i < 32; ++i) {
    ASSERT_OK(raw->Read(i, row));
    char buffer[FieldValue::kMaxNumberBytes];
    if (!row[10].empty()) user = std::string(row[10].front().AsText(buffer));
  }
  ASSERT_TRUE(absl::StartsWith(user, kUser));
  const size_t at = bytes.find(user);
  ASSERT_NE(at, std::string::npos);
  bytes[at] = 'U';
  WriteTestFile("page.parquet", bytes);
  Reading reading;
  reading.folder = testing::TempDir();
  const std::string model = absl::StrCat(kColumns, kVector);
  EXPECT_THAT(Batches(Parquet("page.parquet"), model, reading).status(),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("page.parquet, row group 1: column "
                                       "\"user\" (string): "),
                             HasSubstr("CRC"))));
  reading.settings = "batch_size: 1000 shuffle_buffer: 0 on_corrupt: SKIP";
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<InputPipeline> pipeline,
                       OpenPipeline(Parquet("page.parquet"), model, reading));
  EXPECT_EQ(pipeline->total_examples(), kRows - 16 + 1);
  ASSERT_OK_AND_ASSIGN(const Batch* const batch, pipeline->Next());
  EXPECT_EQ(batch->size, kRows - 16);
  // Columns that are not named are not read.
  EXPECT_OK(Batches("parquet { file: 'page.parquet' label { column: 'half' } }",
                    "loss { mean_squared_error {} } input { name: 'x' dense { "
                    "column { name: 'half' } } }",
                    reading)
                .status());
}

TEST(ParquetWithoutArrowTest, TheErrorSaysHowToGetIt) {
  const char* const before = std::getenv("PARASOL_ARROW");
  const std::string saved = before == nullptr ? "" : before;
  const absl::Cleanup restore = [&] {
    if (before == nullptr) {
      unsetenv("PARASOL_ARROW");
    } else {
      setenv("PARASOL_ARROW", saved.c_str(), 1);
    }
  };
  setenv("PARASOL_ARROW", "/nowhere", 1);
  EXPECT_THAT(
      Batches(OtherTypes(), kX).status(),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("run deploy/arrow"), HasSubstr("/nowhere"),
                     HasSubstr("/nowhere, which PARASOL_ARROW names"),
                     Not(HasSubstr("\n")))));
  const std::string folder = testing::TempDir() + "/no_library";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/libparasol_arrow.so") << "no library";
  setenv("PARASOL_ARROW", folder.c_str(), 1);
  EXPECT_THAT(Batches(OtherTypes(), kX).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("can't be opened"),
                             HasSubstr("PARASOL_ARROW names"))));
}

}  // namespace
}  // namespace parasol
