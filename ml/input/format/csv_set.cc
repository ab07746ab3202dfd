#include "ml/input/format/csv_set.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "ml/input/feature/column_features.h"
#include "ml/input/feature/number.h"
#include "ml/input/feature/value.h"
#include "ml/input/format/csv_fields.h"
#include "ml/input/format/file_set.h"
#include "ml/input/format/line_records.h"
#include "ml/input/format/records.h"
#include "ml/input/format/whole_file.h"

namespace parasol {
namespace {

constexpr size_t kMaxColumns = 65536;
constexpr size_t kMaxShownBytes = 40;
constexpr int kCriteoNumbers = 13;
constexpr int kCriteoCategories = 26;

std::string Quoted(absl::string_view text) {
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, kMaxShownBytes)),
                      "\"");
}

std::string DelimiterOf(const job::CsvDataset& csv) {
  return csv.delimiter().empty() ? "," : csv.delimiter();
}

// Values have lost the blanks around them, unless these are in quotes: a job's
// text may have them all the same.
bool IsText(absl::string_view value, absl::string_view text) {
  return value == text || value == Trimmed(text);
}

// The rule that makes a label of a value.
class CsvLabelRule {
 public:
  explicit CsvLabelRule(const job::CsvLabel& spec) : spec_(spec) {
    for (int i = 0; i < spec.class__size(); ++i) {
      classes_.emplace(spec.class_(i), i);
    }
    for (int i = 0; i < spec.class__size(); ++i) {
      classes_.emplace(Trimmed(spec.class_(i)), i);
    }
  }

  absl::StatusOr<double> NumberOf(absl::string_view value) const {
    if (!spec_.positive().empty()) {
      return std::any_of(spec_.positive().begin(), spec_.positive().end(),
                         [value](const std::string& positive) {
                           return IsText(value, positive);
                         });
    }
    if (!classes_.empty()) {
      const auto found = classes_.find(value);
      if (found != classes_.end()) return found->second;
      return absl::DataLossError(
          absl::StrCat("label ", Quoted(value), " is not one of the ",
                       spec_.class__size(), " names in label.class"));
    }
    const std::optional<double> number = ParseNumber(value);
    if (number.has_value()) return *number;
    return absl::DataLossError(
        absl::StrCat("label ", Quoted(value), " is not a finite number"));
  }

 private:
  const job::CsvLabel spec_;
  absl::flat_hash_map<std::string, double> classes_;
};

// Positions of a record's values.
struct CsvLayout {
  size_t columns = 0;
  std::vector<int> slot_of_column;  // in the ColumnValues; -1: nobody reads it
  size_t label = 0;
  std::optional<size_t> weight;
};

struct CsvSet final : public ExampleSet {
  CsvSet(const job::CsvDataset& csv, Records read, CsvLayout places,
         ColumnFeatures column_features, const LabelForm& form)
      : spec(csv),
        records(std::move(read)),
        starts(records.file_starts()),
        layout(std::move(places)),
        features(std::move(column_features)),
        label_form(form),
        label_rule(csv.label()) {}

  const std::vector<int64_t>& file_starts() const override { return starts; }
  std::unique_ptr<ExampleDecoder> NewDecoder() const override;

  bool IsMissing(absl::string_view value) const {
    return IsMissingInCsv(spec, value);
  }

  const job::CsvDataset spec;
  const Records records;
  const std::vector<int64_t> starts;
  const CsvLayout layout;
  const ColumnFeatures features;
  const LabelForm label_form;
  const CsvLabelRule label_rule;
};

class CsvDecoder final : public ExampleDecoder {
 public:
  explicit CsvDecoder(const CsvSet& set)
      : set_(set),
        fields_(DelimiterOf(set.spec)),
        row_(set.features.columns().size()) {}

  absl::Status Append(int64_t example, uint64_t /*random*/,
                      Batch& batch) override {
    RETURN_IF_ERROR(set_.records.CheckWhole(example));
    const absl::Status status = AppendRecord(set_.records[example], batch);
    if (status.ok()) return status;
    return set_.records.Corrupt(example, 0, status.message());
  }

 private:
  absl::Status AppendRecord(absl::string_view record, Batch& batch) {
    const CsvLayout& layout = set_.layout;
    const std::vector<absl::string_view>* values =
        fields_.Split(record, layout.columns);
    if (values == nullptr) {
      return absl::DataLossError("text behind a closing quote");
    }
    if (values->size() != layout.columns) {
      return absl::DataLossError(absl::StrCat(
          values->size() > layout.columns ? "more"
                                          : absl::StrCat(values->size()),
          " values, not ", layout.columns));
    }
    for (size_t i = 0; i < layout.columns; ++i) {
      const int slot = layout.slot_of_column[i];
      if (slot < 0) continue;
      row_[slot].clear();
      if (set_.IsMissing((*values)[i])) continue;
      row_[slot].push_back(FieldValue::Text((*values)[i]));
    }
    RETURN_IF_ERROR(set_.features.Append(row_, batch));
    if (set_.IsMissing((*values)[layout.label])) {
      return absl::DataLossError("the label is missing");
    }
    ASSIGN_OR_RETURN(const double label,
                     set_.label_rule.NumberOf((*values)[layout.label]));
    RETURN_IF_ERROR(AppendLabel(set_.label_form, label, batch.labels));
    if (!layout.weight.has_value()) return absl::OkStatus();
    const absl::string_view text = (*values)[*layout.weight];
    const std::optional<double> weight = ParseNumber(text);
    if (!weight.has_value()) {
      return absl::DataLossError(
          absl::StrCat("weight ", Quoted(text), " is not a finite number"));
    }
    return AppendWeight(*weight, batch.weights);
  }

  const CsvSet& set_;
  CsvFields fields_;
  ColumnValues row_;
};

std::unique_ptr<ExampleDecoder> CsvSet::NewDecoder() const {
  return std::make_unique<CsvDecoder>(*this);
}

// Goes through the files and finds records and headers.
class CsvIndexer {
 public:
  explicit CsvIndexer(const job::CsvDataset& csv)
      : delimiter_(DelimiterOf(csv)),
        skip_lines_(csv.skip_lines()),
        has_header_(csv.column().empty()),
        columns_(csv.column().begin(), csv.column().end()) {
    for (const char blank : {' ', '\t', '\r'}) {
      if (blank != delimiter_.front()) blanks_ += blank;
    }
  }

  absl::Status Add(const std::string& path) {
    ASSIGN_OR_RETURN(std::string bytes, ReadWholeFile(path));
    text_ = records_.AddFile(path, std::move(bytes));
    size_t at = absl::string_view(text_).substr(0, 3) == "\xef\xbb\xbf" ? 3 : 0;
    for (int i = 0; i < skip_lines_ && at < text_.size(); ++i) {
      at = std::min(text_.find('\n', at), text_.size() - 1) + 1;
    }
    bool header_to_come = has_header_;
    while (at < text_.size()) {
      const size_t start = at;
      const std::optional<size_t> end =
          EndOfCsvRecord(text_, start, delimiter_);
      at = end.value_or(std::min(text_.find('\n', start), text_.size()));
      absl::string_view record = text_.substr(start, at - start);
      ++at;
      if (record.find_first_not_of(blanks_) == absl::string_view::npos) {
        continue;
      }
      if (record.back() == '\r') record.remove_suffix(1);
      if (header_to_come) {
        header_to_come = false;
        RETURN_IF_ERROR(TakeHeader(path, record));
      } else if (end.has_value()) {
        records_.Add(start, record.size());
      } else {
        records_.AddBroken(start, record.size(),
                           "a quoted value does not end, or goes on behind "
                           "its quote");
      }
    }
    return absl::OkStatus();
  }

  const std::vector<std::string>& columns() const { return columns_; }
  const Records& records() const { return records_; }
  Records TakeRecords() { return std::move(records_); }

 private:
  absl::Status TakeHeader(const std::string& path, absl::string_view header) {
    CsvFields fields(delimiter_);
    const std::vector<absl::string_view>* names =
        fields.Split(header, kMaxColumns);
    if (names == nullptr || names->size() > kMaxColumns) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": the header ", Quoted(header), " is not a list of at most ",
          kMaxColumns, " columns between ", Quoted(delimiter_),
          "; is csv.delimiter right?"));
    }
    std::vector<std::string> columns(names->begin(), names->end());
    if (columns_.empty()) columns_ = columns;
    if (columns_ == columns) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": the columns are ", absl::StrJoin(columns, ", "),
        "; those of the files before it are ", absl::StrJoin(columns_, ", ")));
  }

  const std::string delimiter_;
  const int skip_lines_;
  const bool has_header_;
  std::vector<std::string> columns_;
  std::string blanks_;  // the characters of a blank line
  Records records_{Records::Content::kText};
  absl::string_view text_;  // text of the file that is being read
};

absl::StatusOr<size_t> ColumnOf(const std::vector<std::string>& columns,
                                const std::string& name,
                                absl::string_view field) {
  const auto found = std::find(columns.begin(), columns.end(), name);
  if (found != columns.end()) return found - columns.begin();
  return absl::InvalidArgumentError(absl::StrCat(
      field, ": the data set has no column \"", name, "\"",
      columns.size() == 1 ? absl::StrCat(", but only ", Quoted(columns.front()),
                                         "; is csv.delimiter right?")
                          : ""));
}

absl::StatusOr<CsvLayout> LayoutOf(const job::CsvDataset& csv,
                                   absl::string_view format,
                                   const std::vector<std::string>& columns,
                                   const ColumnFeatures& features) {
  CsvLayout layout;
  layout.columns = columns.size();
  layout.slot_of_column.assign(columns.size(), -1);
  for (size_t slot = 0; slot < features.columns().size(); ++slot) {
    ASSIGN_OR_RETURN(const size_t column,
                     ColumnOf(columns, features.columns()[slot], format));
    layout.slot_of_column[column] = static_cast<int>(slot);
  }
  ASSIGN_OR_RETURN(layout.label,
                   ColumnOf(columns, csv.label().column(),
                            absl::StrCat(format, ".label.column")));
  if (csv.has_weight_column()) {
    ASSIGN_OR_RETURN(layout.weight,
                     ColumnOf(columns, csv.weight_column(),
                              absl::StrCat(format, ".weight_column")));
  }
  return layout;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const ExampleSet>> OpenCsvSet(
    const job::CsvDataset& csv, absl::string_view format,
    const SetOptions& options) {
  if (!csv.label().has_column()) {
    return absl::InvalidArgumentError(
        absl::StrCat(format, ".label.column is not set"));
  }
  RETURN_IF_ERROR(CheckOneLabel(options.inputs.label, format));
  const std::vector<std::string> patterns(csv.file().begin(), csv.file().end());
  ASSIGN_OR_RETURN(
      const std::vector<std::string> files,
      FindFiles(options.data_dir, patterns, absl::StrCat(format, ".file")));
  CsvIndexer indexer(csv);
  for (const std::string& file : files) RETURN_IF_ERROR(indexer.Add(file));
  if (!options.skip_corrupt) {
    RETURN_IF_ERROR(indexer.records().CheckAllWhole());
  }
  Columns columns = {.names = indexer.columns(),
                     .labels_and_weights = {csv.label().column()}};
  if (csv.has_weight_column()) {
    columns.labels_and_weights.push_back(csv.weight_column());
  }
  ASSIGN_OR_RETURN(ColumnFeatures features,
                   ColumnFeatures::Create(options.inputs.inputs, columns));
  ASSIGN_OR_RETURN(CsvLayout layout,
                   LayoutOf(csv, format, columns.names, features));
  return std::make_shared<CsvSet>(csv, indexer.TakeRecords(), std::move(layout),
                                  std::move(features), options.inputs.label);
}

bool IsMissingInCsv(const job::CsvDataset& csv, absl::string_view value) {
  if (value.empty()) return true;
  for (const std::string& missing : csv.missing()) {
    if (IsText(value, missing)) return true;
  }
  return false;
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
