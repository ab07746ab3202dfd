#include "ml/input/format/csv_set.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/did_you_mean.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "ml/input/feature/column_features.h"
#include "ml/input/feature/meaningless_label.h"
#include "ml/input/feature/number.h"
#include "ml/input/feature/value.h"
#include "ml/input/format/csv_fields.h"
#include "ml/input/format/csv_format.h"
#include "ml/input/format/data_files.h"
#include "ml/input/format/label_rule.h"
#include "ml/input/format/read_records.h"
#include "ml/input/format/target_reader.h"
#include "ml/input/record/record_reader.h"
#include "ml/input/record/records.h"

namespace parasol {
namespace {

constexpr int kCriteoNumbers = 13;
constexpr int kCriteoCategories = 26;

// Positions of a record's values.
struct CsvLayout {
  size_t columns = 0;
  std::vector<size_t> column_of_slot;  // for each place in the ColumnValues
  // For each place, too: text between the values of a list; empty: it is none.
  std::vector<std::string> separators;
  bool has_labels = false;      // false: labels and weights are not read
  std::optional<size_t> label;  // nullopt: the targets have them, or none
  std::optional<size_t> weight;
  std::vector<size_t> kept;  // of ModelInputs::kept
};

// What makes an example of the columns' values.
struct CsvReaders {
  ColumnFeatures features;
  TargetReader targets;
  // The columns that both read.
  std::vector<std::string> columns;
};

struct CsvSet final : public ExampleSet {
  CsvSet(const job::CsvDataset& csv, Records read, CsvLayout places,
         CsvReaders row_readers, const ModelInputs& wanted)
      : spec(csv),
        records(std::move(read)),
        starts(records.file_starts()),
        layout(std::move(places)),
        readers(std::move(row_readers)),
        inputs(wanted),
        label_rule(csv.label()) {}

  const std::vector<int64_t>& file_starts() const override { return starts; }
  bool is_sample() const override { return records.is_sample(); }
  std::unique_ptr<ExampleDecoder> NewDecoder() const override;

  bool IsMissing(absl::string_view value) const {
    return value.empty() ||
           (spec.missing_size() > 0 && IsMissingInCsv(spec, value));
  }

  const job::CsvDataset spec;
  const Records records;
  const std::vector<int64_t> starts;
  const CsvLayout layout;
  const CsvReaders readers;
  const ModelInputs inputs;
  const LabelRule label_rule;
};

// What is wrong with the values of a line, null if they can't be told apart;
// empty: nothing. There is at most one more than `columns`.
std::string FaultOf(const std::vector<absl::string_view>* values,
                    size_t columns) {
  if (values == nullptr) return "text behind a closing quote";
  if (values->size() == columns) return "";
  return absl::StrCat(
      values->size() > columns ? "more" : absl::StrCat(values->size()),
      " values, not ", columns);
}

class CsvDecoder final : public ExampleDecoder {
 public:
  explicit CsvDecoder(const CsvSet& set)
      : set_(set),
        reader_(set.records),
        fields_(CsvDelimiter(set.spec)),
        row_(set.readers.columns.size()) {}

  absl::Status Append(int64_t example, uint64_t /*random*/,
                      Batch& batch) override {
    ASSIGN_OR_RETURN(const absl::string_view record, reader_.Read(example));
    const absl::Status status = AppendRecord(record, batch);
    if (status.ok()) return status;
    return reader_.Corrupt(example, 0, status.message());
  }

  void Prefetch(int64_t example) override { reader_.Prefetch(example); }

 private:
  absl::Status AppendRecord(absl::string_view record, Batch& batch) {
    const CsvLayout& layout = set_.layout;
    const std::vector<absl::string_view>* values =
        fields_.Split(record, layout.columns);
    const std::string fault = FaultOf(values, layout.columns);
    if (!fault.empty()) return absl::DataLossError(fault);
    for (size_t slot = 0; slot < row_.size(); ++slot) {
      const absl::string_view value = (*values)[layout.column_of_slot[slot]];
      std::vector<FieldValue>& of_slot = row_[slot];
      if (!layout.separators[slot].empty()) {
        SplitCsvList(set_.spec, layout.separators[slot], value, of_slot);
      } else if (set_.IsMissing(value)) {
        of_slot.clear();
      } else if (of_slot.empty()) {
        of_slot.push_back(FieldValue::Text(value));
      } else {
        of_slot.front() = FieldValue::Text(value);
      }
    }
    RETURN_IF_ERROR(set_.readers.features.Append(row_, batch));
    for (size_t i = 0; i < layout.kept.size(); ++i) {
      batch.kept[i].emplace_back((*values)[layout.kept[i]]);
    }
    if (!layout.has_labels) {
      AppendMeaninglessLabels(set_.inputs, batch);
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(set_.readers.targets.Append(row_, batch));
    return AppendLabelAndWeight(*values, batch);
  }

  absl::Status AppendLabelAndWeight(
      const std::vector<absl::string_view>& values, Batch& batch) {
    const CsvLayout& layout = set_.layout;
    if (layout.label.has_value()) {
      if (set_.IsMissing(values[*layout.label])) {
        return absl::DataLossError("the label is missing");
      }
      ASSIGN_OR_RETURN(const double label,
                       set_.label_rule.NumberOf(values[*layout.label]));
      RETURN_IF_ERROR(AppendLabel(set_.inputs.label, label, batch.labels));
    }
    if (!layout.weight.has_value()) return absl::OkStatus();
    const absl::string_view text = values[*layout.weight];
    const std::optional<double> weight = ParseNumber(text);
    if (!weight.has_value()) {
      return absl::DataLossError(absl::StrCat("weight ", QuotedValue(text),
                                              " is not a finite number"));
    }
    return AppendWeight(*weight, batch.weights);
  }

  const CsvSet& set_;
  RecordReader reader_;
  CsvFields fields_;
  ColumnValues row_;
};

std::unique_ptr<ExampleDecoder> CsvSet::NewDecoder() const {
  return std::make_unique<CsvDecoder>(*this);
}

absl::StatusOr<size_t> ColumnOf(const std::vector<std::string>& columns,
                                const std::string& name,
                                absl::string_view field) {
  const auto found = std::find(columns.begin(), columns.end(), name);
  if (found != columns.end()) {
    if (std::find(found + 1, columns.end(), name) == columns.end()) {
      return found - columns.begin();
    }
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": ", NamedTwice(name, columns)));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      field, ": the data set has no column \"", name, "\"",
      columns.size() == 1
          ? absl::StrCat(", but only ", QuotedValue(columns.front()))
          : absl::StrCat(", but ", ShownList(columns)),
      DidYouMean(name, columns), DelimiterHint(name, columns)));
}

absl::StatusOr<CsvLayout> LayoutOf(const job::CsvDataset& csv,
                                   absl::string_view format,
                                   const std::vector<std::string>& columns,
                                   const CsvReaders& readers,
                                   const SetOptions& options) {
  CsvLayout layout;
  layout.columns = columns.size();
  for (const std::string& name : readers.columns) {
    ASSIGN_OR_RETURN(const size_t column, ColumnOf(columns, name, format));
    layout.column_of_slot.push_back(column);
  }
  // The columns of labels come behind the features', and are no lists.
  layout.separators = readers.features.separators();
  layout.separators.resize(layout.column_of_slot.size());
  for (const std::string& name : options.inputs.kept) {
    ASSIGN_OR_RETURN(const size_t column,
                     ColumnOf(columns, name, "column to keep"));
    layout.kept.push_back(column);
  }
  layout.has_labels = !options.without_labels;
  if (!layout.has_labels) return layout;
  if (options.inputs.has_one_label()) {
    ASSIGN_OR_RETURN(layout.label,
                     ColumnOf(columns, csv.label().column(),
                              absl::StrCat(format, ".label.column")));
  }
  if (csv.has_weight_column()) {
    ASSIGN_OR_RETURN(layout.weight,
                     ColumnOf(columns, csv.weight_column(),
                              absl::StrCat(format, ".weight_column")));
  }
  return layout;
}

// The records of a data set, and the names of its columns.
struct CsvRecords {
  Records records;
  std::vector<std::string> columns;
};

absl::StatusOr<CsvRecords> ReadCsvRecords(const job::CsvDataset& csv,
                                          absl::string_view format,
                                          const std::string& data_dir,
                                          int64_t sample_bytes,
                                          const SetMemory& memory) {
  const std::vector<std::string> patterns(csv.file().begin(), csv.file().end());
  ASSIGN_OR_RETURN(
      DataFiles files,
      DataFiles::Find(data_dir, patterns, absl::StrCat(format, ".file"),
                      sample_bytes));
  const std::string first = files.first();
  const auto lines = std::make_shared<CsvFormat>(csv);
  ASSIGN_OR_RETURN(
      Records records,
      ReadRecords(std::move(files), lines, Records::Content::kText, memory));
  if (!lines->columns().empty()) {
    return CsvRecords{.records = std::move(records),
                      .columns = lines->columns()};
  }
  const std::string where =
      csv.skip_lines() > 0
          ? absl::StrCat("behind the ", csv.skip_lines(),
                         " lines of csv.skip_lines; lower that")
          : "in it";
  return absl::InvalidArgumentError(
      absl::StrCat(first, ": the file has no line of columns' names ", where));
}

// Columns of labels and masks.
std::vector<std::string> LabelColumns(const job::CsvDataset& csv,
                                      const SetOptions& options) {
  const std::vector<TargetInput>& targets = options.inputs.targets;
  std::vector<std::string> columns =
      targets.empty() ? std::vector<std::string>{csv.label().column()}
                      : TargetColumns(targets);
  columns.insert(columns.end(), options.label_columns.begin(),
                 options.label_columns.end());
  return columns;
}

std::vector<std::string> Without(const std::vector<std::string>& left_out,
                                 const std::vector<std::string>& columns) {
  std::vector<std::string> others;
  for (const std::string& column : columns) {
    if (std::find(left_out.begin(), left_out.end(), column) == left_out.end()) {
      others.push_back(column);
    }
  }
  return others;
}

// Returns the number of values of the first record that can be read; up to one
// more than `limit`.
std::optional<size_t> ValuesOfFirst(const job::CsvDataset& csv,
                                    const Records& records, size_t limit) {
  CsvFields fields(CsvDelimiter(csv));
  RecordReader reader(records);
  for (int64_t record = 0; record < records.size(); ++record) {
    const absl::StatusOr<absl::string_view> line = reader.Read(record);
    if (!line.ok()) continue;
    const auto* const values = fields.Split(*line, limit);
    if (values != nullptr) return values->size();
  }
  return std::nullopt;
}

// Takes the labels, or labels and weights, out of the job's list of columns if
// the first record has so many values less.
void LeaveOutLabels(const job::CsvDataset& csv,
                    const std::vector<std::string>& labels,
                    const Records& records, std::vector<std::string>& columns) {
  if (csv.column().empty()) return;
  const auto values = ValuesOfFirst(csv, records, columns.size());
  if (values == columns.size()) return;
  for (std::vector<std::string> others :
       {Without(labels, columns),
        Without({csv.weight_column()}, Without(labels, columns))}) {
    if (values != others.size()) continue;
    columns = std::move(others);
    return;
  }
}

class CsvColumns final : public RawColumns {
 public:
  CsvColumns(const job::CsvDataset& csv, CsvRecords read)
      : RawColumns(std::move(read.columns)),
        csv_(csv),
        records_(std::move(read.records)),
        reader_(records_),
        fields_(CsvDelimiter(csv)) {}

  int64_t size() const override { return records_.size(); }
  bool is_sample() const override { return records_.is_sample(); }
  absl::Status CheckWhole() const override { return records_.CheckAllWhole(); }

  absl::Status Read(int64_t record, ColumnValues& row) override {
    ASSIGN_OR_RETURN(const absl::string_view line, reader_.Read(record));
    const std::vector<absl::string_view>* const values =
        fields_.Split(line, names().size());
    const std::string fault = FaultOf(values, names().size());
    if (!fault.empty()) return reader_.Corrupt(record, 0, fault);
    row.resize(names().size());
    for (size_t i = 0; i < row.size(); ++i) {
      row[i].clear();
      if (IsMissingInCsv(csv_, (*values)[i])) continue;
      row[i].push_back(FieldValue::Text((*values)[i]));
    }
    return absl::OkStatus();
  }

 private:
  const job::CsvDataset csv_;
  const Records records_;
  RecordReader reader_;
  CsvFields fields_;
};

// Without the blanks that a CSV file's reader leaves out around values.
absl::string_view WithoutBlanks(absl::string_view text) {
  constexpr absl::string_view kBlanks = " \t";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == absl::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(kBlanks) + 1 - first);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RawColumns>> OpenCsvColumns(
    const job::CsvDataset& csv, absl::string_view format,
    const std::string& data_dir, int64_t sample_bytes) {
  ASSIGN_OR_RETURN(CsvRecords read,
                   ReadCsvRecords(csv, format, data_dir, sample_bytes, {}));
  return std::make_unique<CsvColumns>(csv, std::move(read));
}

absl::StatusOr<std::shared_ptr<const ExampleSet>> OpenCsvSet(
    const job::CsvDataset& csv, absl::string_view format,
    const SetOptions& options) {
  if (!options.without_labels) {
    if (options.inputs.has_one_label() && !csv.label().has_column()) {
      return absl::InvalidArgumentError(
          absl::StrCat(format, ".label.column is not set"));
    }
    RETURN_IF_ERROR(CheckLabelColumns(options.inputs, format));
  }
  ASSIGN_OR_RETURN(CsvRecords read,
                   ReadCsvRecords(csv, format, options.data_dir,
                                  options.sample_bytes, options.memory));
  if (!options.skip_corrupt) {
    RETURN_IF_ERROR(read.records.CheckAllWhole());
  }
  const std::vector<std::string> labels = LabelColumns(csv, options);
  Columns columns = {.names = read.columns, .labels_and_weights = labels};
  if (csv.has_weight_column()) {
    columns.labels_and_weights.push_back(csv.weight_column());
  }
  if (options.without_labels) {
    LeaveOutLabels(csv, labels, read.records, columns.names);
  }
  ASSIGN_OR_RETURN(ColumnFeatures features,
                   ColumnFeatures::Create(options.inputs.inputs, columns));
  std::vector<std::string> names = features.columns();
  TargetReader targets;
  if (!options.without_labels) targets = TargetReader(options.inputs, names);
  CsvReaders readers = {std::move(features), std::move(targets),
                        std::move(names)};
  ASSIGN_OR_RETURN(CsvLayout layout,
                   LayoutOf(csv, format, columns.names, readers, options));
  return std::make_shared<CsvSet>(csv, std::move(read.records),
                                  std::move(layout), std::move(readers),
                                  options.inputs);
}

std::string NamedTwice(absl::string_view name,
                       const std::vector<std::string>& columns) {
  std::vector<size_t> places;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] == name) places.push_back(i + 1);
  }
  if (places.size() < 2) return "";
  return absl::StrCat("the data have ", places.size(), " columns ",
                      QuotedValue(name), ", number ",
                      absl::StrJoin(places, " and "),
                      "; give each another name in the header, or list the "
                      "columns in csv.column with skip_lines: 1");
}

bool IsMissingInCsv(const job::CsvDataset& csv, absl::string_view value) {
  if (value.empty()) return true;
  for (const std::string& missing : csv.missing()) {
    if (IsJobText(value, missing)) return true;
  }
  return false;
}

void SplitCsvList(const job::CsvDataset& csv, absl::string_view separator,
                  absl::string_view list, std::vector<FieldValue>& values) {
  values.clear();
  if (IsMissingInCsv(csv, list)) return;
  for (const absl::string_view part : absl::StrSplit(list, separator)) {
    const absl::string_view text = WithoutBlanks(part);
    values.push_back(IsMissingInCsv(csv, text) ? FieldValue::Missing()
                                               : FieldValue::Text(text));
  }
}

job::CsvDataset CsvOf(const job::CriteoDataset& criteo) {
  job::CsvDataset csv;
  *csv.mutable_file() = criteo.file();
  csv.set_delimiter("\t");
  csv.add_column("label");
  for (int i = 1; i <= kCriteoNumbers; ++i) {
    csv.add_column(absl::StrCat("I", i));
  }
  for (int i = 1; i <= kCriteoCategories; ++i) {
    csv.add_column(absl::StrCat("C", i));
  }
  csv.mutable_label()->set_column("label");
  return csv;
}

job::CsvDataset CsvOf(const job::RatingsDataset& ratings) {
  job::CsvDataset csv;
  *csv.mutable_file() = ratings.file();
  csv.set_delimiter("::");
  for (const char* column : {"user", "item", "rating", "time"}) {
    csv.add_column(column);
  }
  csv.mutable_label()->set_column("rating");
  return csv;
}

}  // namespace parasol
