#include "ml/input/format/parquet_set.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/did_you_mean.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "ml/input/arrow/arrow_records.h"
#include "ml/input/arrow/value_record.h"
#include "ml/input/file/file_set.h"
#include "ml/input/format/column_examples.h"
#include "ml/input/format/csv_set.h"
#include "ml/input/format/data_files.h"
#include "ml/input/format/target_reader.h"
#include "ml/input/library/arrow_library.h"
#include "ml/input/record/record_reader.h"

namespace parasol {
namespace {

// The files of a set, and how much of each is read.
struct OpenedFiles {
  ArrowFiles files;
  bool is_sample = false;     // some of the files are left out
  uint64_t sample_bytes = 0;  // of each file; 0: all
};

absl::StatusOr<OpenedFiles> OpenFiles(const job::ParquetDataset& parquet,
                                      const std::string& data_dir,
                                      int64_t sample_bytes) {
  const std::vector<std::string> patterns(parquet.file().begin(),
                                          parquet.file().end());
  ASSIGN_OR_RETURN(
      const DataFiles found,
      DataFiles::Find(data_dir, patterns, "parquet.file", sample_bytes));
  ASSIGN_OR_RETURN(const ArrowLibrary library, ArrowLibrary::Open());
  ASSIGN_OR_RETURN(ArrowFiles files, ArrowFiles::Open(library, found.paths()));
  OpenedFiles opened = {.files = std::move(files),
                        .is_sample = found.is_sample()};
  if (sample_bytes > 0) {
    opened.sample_bytes =
        std::max<uint64_t>(1, sample_bytes / found.paths().size());
  }
  return opened;
}

absl::StatusOr<ArrowRecords> ReadArrowRecords(
    const OpenedFiles& opened, const std::vector<std::string>& names,
    bool skip_corrupt, const SetMemory& memory) {
  // Arrow would take none for all.
  if (names.empty()) return ArrowRecords(Records(Records::Content::kBinary));
  RETURN_IF_ERROR(opened.files.CheckColumns(names));
  ASSIGN_OR_RETURN(
      ArrowRecords all,
      opened.files.Convert(names, {.skip_corrupt = skip_corrupt,
                                   .sample_bytes = opened.sample_bytes,
                                   .memory = memory}));
  if (opened.is_sample) all.records.MarkSample();
  return all;
}

// Reads records one after the other, wherever they are. Borrows them.
class ValueRecordReader {
 public:
  ValueRecordReader(const ArrowRecords& all, size_t columns)
      : all_(all), reader_(all.records), values_(columns) {}

  // Returns the record's values, valid until the next call.
  absl::StatusOr<const ColumnValues*> Read(int64_t record) {
    const absl::StatusOr<absl::string_view> bytes = reader_.Read(record);
    if (!bytes.ok()) {
      return all_.damaged.contains(record) ? all_.Corrupt(record, "")
                                           : bytes.status();
    }
    const absl::Status read = ReadValueRecord(*bytes, values_);
    if (!read.ok()) return all_.Corrupt(record, read.message());
    return &values_;
  }
  void Prefetch(int64_t record) { reader_.Prefetch(record); }

 private:
  const ArrowRecords& all_;
  RecordReader reader_;
  ColumnValues values_;
};

// The columns of a record: the examples', then label and weight.
std::vector<std::string> RecordColumns(const ColumnExamples& examples,
                                       const job::ParquetDataset& parquet) {
  std::vector<std::string> names = examples.columns();
  if (examples.reads_label()) names.push_back(parquet.label().column());
  if (examples.reads_weight()) names.push_back(parquet.weight_column());
  return names;
}

struct ParquetSet final : public ExampleSet {
  ParquetSet(ArrowRecords read, ColumnExamples columns)
      : all(std::move(read)),
        starts(all.records.file_starts()),
        examples(std::move(columns)) {}

  const std::vector<int64_t>& file_starts() const override { return starts; }
  bool is_sample() const override { return all.records.is_sample(); }
  std::unique_ptr<ExampleDecoder> NewDecoder() const override;

  const ArrowRecords all;
  const std::vector<int64_t> starts;
  const ColumnExamples examples;
};

class ParquetDecoder final : public ExampleDecoder {
 public:
  explicit ParquetDecoder(const ParquetSet& set)
      : set_(set),
        label_(set.examples.columns().size()),
        weight_(label_ + (set.examples.reads_label() ? 1 : 0)),
        records_(set.all, weight_ + (set.examples.reads_weight() ? 1 : 0)) {}

  absl::Status Append(int64_t example, uint64_t /*random*/,
                      Batch& batch) override {
    ASSIGN_OR_RETURN(const ColumnValues* const row, records_.Read(example));
    const absl::Status status = set_.examples.Append(
        *row, set_.examples.reads_label() ? (*row)[label_] : nothing_,
        set_.examples.reads_weight() ? (*row)[weight_] : nothing_, batch);
    if (status.ok()) return status;
    return set_.all.Corrupt(example, status.message());
  }

  void Prefetch(int64_t example) override { records_.Prefetch(example); }

 private:
  const ParquetSet& set_;
  // Places in a record.
  const size_t label_;
  const size_t weight_;
  const std::vector<FieldValue> nothing_;
  ValueRecordReader records_;
};

std::unique_ptr<ExampleDecoder> ParquetSet::NewDecoder() const {
  return std::make_unique<ParquetDecoder>(*this);
}

class ParquetColumns final : public RawColumns {
 public:
  // `places` of the columns that are read among `names`. No records if they
  // are none.
  ParquetColumns(std::vector<std::string> names, std::vector<size_t> places,
                 ArrowRecords records)
      : RawColumns(std::move(names)),
        places_(std::move(places)),
        all_(std::move(records)),
        reader_(all_, places_.size()),
        is_read_(this->names().size()) {
    for (const size_t place : places_) is_read_[place] = true;
  }

  bool has_values(size_t column) const override { return is_read_[column]; }
  std::optional<uint64_t> unpacked_bytes() const override {
    if (is_sample()) return std::nullopt;
    return all_.bytes;
  }
  int64_t size() const override { return all_.records.size(); }
  bool is_sample() const override { return all_.records.is_sample(); }
  absl::Status CheckWhole() const override {
    if (all_.damaged.empty()) return absl::OkStatus();
    return all_.Corrupt(all_.damaged.begin()->first, "");
  }

  absl::Status Read(int64_t record, ColumnValues& row) override {
    ASSIGN_OR_RETURN(const ColumnValues* const values, reader_.Read(record));
    row.resize(names().size());
    for (size_t i = 0; i < places_.size(); ++i) {
      row[places_[i]] = (*values)[i];
    }
    return absl::OkStatus();
  }

 private:
  const std::vector<size_t> places_;
  const ArrowRecords all_;
  ValueRecordReader reader_;
  std::vector<bool> is_read_;  // by column
};

absl::Status RequireColumn(const std::vector<std::string>& columns,
                           const std::string& name, absl::string_view field) {
  const std::string twice = NamedTwice(name, columns);
  if (!twice.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(field, ": ", twice));
  }
  if (std::find(columns.begin(), columns.end(), name) != columns.end()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": the files have no column \"", name, "\", but ",
                   ShownList(columns), DidYouMean(name, columns)));
}

Columns Listed(const job::ParquetDataset& parquet,
               std::vector<std::string> names) {
  Columns columns = {.names = std::move(names), .labels_and_weights = {}};
  for (const std::string& name :
       {parquet.label().column(), parquet.weight_column()}) {
    if (!name.empty()) columns.labels_and_weights.push_back(name);
  }
  return columns;
}

// Checks the columns of labels and weights, and returns all.
absl::StatusOr<Columns> ColumnsFor(const job::ParquetDataset& parquet,
                                   const SetOptions& options,
                                   std::vector<std::string> names) {
  const ModelInputs& inputs = options.inputs;
  Columns columns = Listed(parquet, std::move(names));
  for (const std::vector<std::string>& more :
       {TargetColumns(inputs.targets), options.label_columns}) {
    columns.labels_and_weights.insert(columns.labels_and_weights.end(),
                                      more.begin(), more.end());
  }
  for (const std::string& name : inputs.kept) {
    RETURN_IF_ERROR(RequireColumn(columns.names, name, "column to keep"));
  }
  if (options.without_labels) return columns;
  if (inputs.has_one_label()) {
    RETURN_IF_ERROR(RequireColumn(columns.names, parquet.label().column(),
                                  "parquet.label.column"));
  }
  if (parquet.has_weight_column()) {
    RETURN_IF_ERROR(RequireColumn(columns.names, parquet.weight_column(),
                                  "parquet.weight_column"));
  }
  for (const std::string& name : TargetColumns(inputs.targets)) {
    RETURN_IF_ERROR(RequireColumn(columns.names, name, "model.output"));
  }
  for (const ExampleColumn& column : inputs.columns) {
    RETURN_IF_ERROR(
        RequireColumn(columns.names, column.name, "a loss or a metric"));
  }
  return columns;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const ExampleSet>> OpenParquetSet(
    const job::ParquetDataset& parquet, const SetOptions& options) {
  ASSIGN_OR_RETURN(const OpenedFiles opened,
                   OpenFiles(parquet, options.data_dir, options.sample_bytes));
  ASSIGN_OR_RETURN(const Columns columns,
                   ColumnsFor(parquet, options, opened.files.names()));
  ASSIGN_OR_RETURN(ColumnFeatures features,
                   ColumnFeatures::Create(options.inputs.inputs, columns));
  ColumnExamples examples(std::move(features), options,
                          parquet.has_weight_column(), parquet.label());
  ASSIGN_OR_RETURN(ArrowRecords records,
                   ReadArrowRecords(opened, RecordColumns(examples, parquet),
                                    options.skip_corrupt, options.memory));
  return std::make_shared<ParquetSet>(std::move(records), std::move(examples));
}

absl::StatusOr<Columns> ReadParquetColumns(const job::ParquetDataset& parquet,
                                           const std::string& data_dir) {
  const std::vector<std::string> patterns(parquet.file().begin(),
                                          parquet.file().end());
  ASSIGN_OR_RETURN(const FoundFiles found,
                   FindFiles(data_dir, patterns, "parquet.file"));
  ASSIGN_OR_RETURN(const ArrowLibrary library, ArrowLibrary::Open());
  ASSIGN_OR_RETURN(const ArrowFiles files,
                   ArrowFiles::Open(library, {found.paths.front()}));
  return Listed(parquet, files.names());
}

absl::StatusOr<std::unique_ptr<RawColumns>> OpenParquetColumns(
    const job::ParquetDataset& parquet, const std::string& data_dir,
    const std::vector<std::string>& wanted, int64_t sample_bytes) {
  ASSIGN_OR_RETURN(const OpenedFiles opened,
                   OpenFiles(parquet, data_dir, sample_bytes));
  const absl::flat_hash_set<std::string> is_wanted(wanted.begin(),
                                                   wanted.end());
  std::vector<std::string> read;
  if (wanted.empty()) {
    ASSIGN_OR_RETURN(read, opened.files.CommonColumns());
  }
  const std::vector<std::string> all = opened.files.names();
  std::vector<std::string> names;
  std::vector<size_t> places;
  for (const ArrowColumn& column : opened.files.columns()) {
    // What is wrong with one that is wanted is said by CheckColumns().
    if (is_wanted.contains(column.name)) read.push_back(column.name);
    const bool is_read =
        std::find(read.begin(), read.end(), column.name) != read.end();
    if (is_read) places.push_back(names.size());
    if (is_read || (!wanted.empty() && column.type.is_readable() &&
                    NamedTwice(column.name, all).empty())) {
      names.push_back(column.name);
    }
  }
  if (names.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("parquet.file: no column of ", parquet.file(0),
                     " has a type that can be read"));
  }
  ASSIGN_OR_RETURN(ArrowRecords records,
                   ReadArrowRecords(opened, read, /*skip_corrupt=*/true, {}));
  return std::make_unique<ParquetColumns>(std::move(names), std::move(places),
                                          std::move(records));
}

}  // namespace parasol
