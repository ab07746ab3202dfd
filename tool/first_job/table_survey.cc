#include "tool/first_job/table_survey.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ml/input/feature/number.h"
#include "ml/input/file/input_file.h"
#include "ml/input/format/csv_fields.h"
#include "ml/input/format/raw_columns.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

constexpr size_t kHeadBytes = 256 << 10;
constexpr size_t kMaxColumns = 65536;
constexpr int kLinesLookedAt = 50;
// Different values that are told apart, of all columns together.
constexpr size_t kAllValues = 2'000'000;
constexpr size_t kMostValues = 100'000;
constexpr size_t kLeastValues = 1000;

absl::StatusOr<std::string> HeadOf(const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file,
                   InputFile::Open(path));
  std::string head(kHeadBytes, '\0');
  ASSIGN_OR_RETURN(
      const size_t size,
      file->Read(absl::MakeSpan(reinterpret_cast<uint8_t*>(head.data()),
                                head.size())));  // NOLINT
  head.resize(size);
  if (absl::StartsWith(head, "\xef\xbb\xbf")) head.erase(0, 3);
  return head;
}

// The records at the beginning that are whole and not blank.
std::vector<absl::string_view> FirstRecords(absl::string_view text,
                                            absl::string_view delimiter) {
  std::vector<absl::string_view> records;
  for (size_t at = 0;
       at < text.size() && records.size() < size_t{kLinesLookedAt};) {
    const CsvRecordEnd end = EndOfCsvRecord(text.substr(at), delimiter);
    if (end.kind == CsvRecordEnd::Kind::kBroken) break;
    absl::string_view record = text.substr(at, end.size);
    if (!record.empty() && record.back() == '\r') record.remove_suffix(1);
    if (!absl::StripAsciiWhitespace(record).empty()) records.push_back(record);
    at += end.size + 1;
  }
  // The last one may have been cut off by the end of what was read.
  if (records.size() > 2 && text.size() == kHeadBytes) records.pop_back();
  return records;
}

bool IsDecimalComma(absl::string_view text) {
  const size_t comma = text.find(',');
  if (comma == text.npos || text.find_first_of(",.", comma + 1) != text.npos) {
    return false;
  }
  return ParseNumber(
             absl::StrCat(text.substr(0, comma), ".", text.substr(comma + 1)))
      .has_value();
}

void AddValue(absl::string_view value, SurveyedColumn& column) {
  column.values.Add(value);
  const std::optional<double> number = ParseNumber(value);
  if (number.has_value()) {
    column.counts_up &= column.numbers.count == 0 || *number == column.last + 1;
    column.last = *number;
    column.numbers.Add(*number);
    column.logs.Add(*number > 0 ? std::log1p(*number) : 0);
    column.are_integers &= IsInteger(value);
    return;
  }
  column.texts.Add(value);
  column.dates += IsDate(value);
  column.decimal_commas += IsDecimalComma(value);
}

job::Dataset DatasetOf(const std::string& path, const TableSurvey& survey,
                       size_t columns) {
  job::Dataset dataset;
  dataset.mutable_csv()->add_file(path);
  dataset.mutable_csv()->set_delimiter(survey.delimiter);
  for (size_t i = 0; !survey.has_header && i < columns; ++i) {
    dataset.mutable_csv()->add_column(absl::StrCat("c", i + 1));
  }
  return dataset;
}

absl::Status ReadRecords(const std::string& path, RawColumns& columns,
                         int64_t max_records, TableSurvey& survey) {
  ColumnValues row;
  survey.records = std::min(columns.size(), max_records);
  survey.is_whole = survey.records == columns.size();
  absl::Status first_fault;
  char buffer[FieldValue::kMaxNumberBytes];
  for (int64_t record = 0; record < survey.records; ++record) {
    const absl::Status read = columns.Read(record, row);
    if (!read.ok()) {
      ++survey.corrupt;
      first_fault.Update(read);
      continue;
    }
    for (size_t i = 0; i < row.size(); ++i) {
      survey.columns[i].missing += row[i].empty();
      for (const FieldValue& value : row[i]) {
        AddValue(value.AsText(buffer), survey.columns[i]);
      }
    }
  }
  if (survey.records > survey.corrupt) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": has no line that can be read",
      first_fault.ok() ? " but the first, of names"
                       : absl::StrCat("; ", first_fault.message())));
}

}  // namespace

std::string DelimiterOf(absl::string_view text) {
  std::string best = ",";
  size_t most = 1;
  for (const char* const delimiter : {",", "\t", ";", "|"}) {
    CsvFields fields(delimiter);
    size_t columns = 0;
    for (const absl::string_view record : FirstRecords(text, delimiter)) {
      const auto* const values = fields.Split(record, kMaxColumns);
      const size_t count = values == nullptr ? 0 : values->size();
      if (columns == 0) columns = count;
      if (count != columns) columns = 1;
      if (columns <= 1) break;
    }
    if (columns > most) {
      most = columns;
      best = delimiter;
    }
  }
  return best;
}

bool AreNames(const std::vector<absl::string_view>& values) {
  bool has_name = false;
  for (const absl::string_view value : values) {
    if (ParseNumber(value).has_value()) return false;
    has_name |= !value.empty();
  }
  return has_name;
}

bool IsDate(absl::string_view text) {
  const absl::string_view date = text.substr(0, text.find_first_of(" T"));
  for (const char separator : {'-', '.', '/'}) {
    const std::vector<absl::string_view> parts =
        absl::StrSplit(date, separator);
    if (parts.size() != 3) continue;
    int long_parts = 0;
    for (const absl::string_view part : parts) {
      const bool are_digits =
          std::all_of(part.begin(), part.end(), absl::ascii_isdigit);
      if (part.empty() || !are_digits || part.size() > 4 || part.size() == 3) {
        return false;
      }
      long_parts += part.size() == 4;
    }
    return long_parts <= 1;
  }
  return false;
}

absl::StatusOr<TableSurvey> SurveyTable(const std::string& path,
                                        int64_t max_records) {
  ASSIGN_OR_RETURN(const std::string head, HeadOf(path));
  TableSurvey survey;
  survey.delimiter = DelimiterOf(head);
  const std::vector<absl::string_view> records =
      FirstRecords(head, survey.delimiter);
  CsvFields fields(survey.delimiter);
  const auto* const first =
      records.empty() ? nullptr : fields.Split(records[0], kMaxColumns);
  if (first == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        ": has no line of values between commas, tabs, semicolons or "
        "bars"));
  }
  survey.has_header = AreNames(*first);
  ASSIGN_OR_RETURN(
      const std::unique_ptr<RawColumns> columns,
      RawColumns::Open(DatasetOf(path, survey, first->size()), ""));
  const size_t values = std::clamp(kAllValues / columns->names().size(),
                                   kLeastValues, kMostValues);
  for (const std::string& name : columns->names()) {
    survey.columns.push_back({.name = name,
                              .values = ValueCounts(values),
                              .texts = ValueCounts(values)});
  }
  RETURN_IF_ERROR(ReadRecords(path, *columns, max_records, survey));
  return survey;
}

}  // namespace parasol
