#include "ml/input/format/csv_format.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "ml/input/format/csv_fields.h"
#include "ml/input/record/line_format.h"

namespace parasol {
namespace {

constexpr size_t kMaxCsvColumns = 65536;

}  // namespace

std::string QuotedValue(absl::string_view text) {
  return absl::StrCat("\"", ShownText(text, 40), "\"");
}

std::string CsvDelimiter(const job::CsvDataset& csv) {
  return csv.delimiter().empty() ? "," : csv.delimiter();
}

CsvFormat::CsvFormat(const job::CsvDataset& csv)
    : delimiter_(CsvDelimiter(csv)),
      skip_lines_(csv.skip_lines()),
      has_header_(csv.column().empty()),
      columns_(csv.column().begin(), csv.column().end()) {
  for (const char blank : {' ', '\t', '\r'}) {
    if (blank != delimiter_.front()) blanks_ += blank;
  }
}

absl::StatusOr<std::optional<size_t>> CsvFormat::Begin(const std::string& path,
                                                       const FilePart& part) {
  if (part.HasEnd() && !absl::StrContains(part.bytes, '\n') &&
      absl::StrContains(absl::StripSuffix(part.bytes, "\r"), '\r')) {
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        ": has no line feeds: its lines end with carriage returns alone; "
        "convert it, as with tr '\\r' '\\n'"));
  }
  size_t at = BehindByteOrderMark(part.bytes);
  for (int i = 0; i < skip_lines_ && at < part.file_bytes; ++i) {
    const size_t end = part.bytes.find('\n', at);
    if (end == absl::string_view::npos && !part.HasEnd()) return std::nullopt;
    at = std::min(end, part.file_bytes - 1) + 1;
  }
  while (has_header_ && at < part.file_bytes) {
    const FoundRecord found = Find(part, at);
    if (found.kind == FoundRecord::Kind::kCutOff) return std::nullopt;
    at = found.next;
    if (found.kind == FoundRecord::Kind::kNone) continue;
    RETURN_IF_ERROR(
        TakeHeader(path, part.bytes.substr(found.offset, found.length)));
    break;
  }
  return at;
}

FoundRecord CsvFormat::Find(const FilePart& part, size_t at) const {
  const absl::string_view rest = part.From(at);
  const CsvRecordEnd end = EndOfCsvRecord(rest, delimiter_, !part.HasEnd());
  if (end.kind == CsvRecordEnd::Kind::kCutOff) {
    return {.kind = FoundRecord::Kind::kCutOff};
  }
  absl::string_view record = rest.substr(0, end.size);
  FoundRecord found = {.kind = FoundRecord::Kind::kNone,
                       .offset = at,
                       .next = std::min(at + end.size + 1, part.file_bytes)};
  if (record.find_first_not_of(blanks_) == absl::string_view::npos) {
    return found;
  }
  if (record.back() == '\r') record.remove_suffix(1);
  found.kind = FoundRecord::Kind::kWhole;
  found.length = record.size();
  if (end.kind == CsvRecordEnd::Kind::kBroken) {
    found.kind = FoundRecord::Kind::kBroken;
    found.what = "a quoted value does not end, or goes on behind its quote";
  }
  return found;
}

absl::Status CsvFormat::TakeHeader(const std::string& path,
                                   absl::string_view header) {
  CsvFields fields(delimiter_);
  const std::vector<absl::string_view>* names =
      fields.Split(header, kMaxCsvColumns);
  if (names == nullptr || names->size() > kMaxCsvColumns) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": the header ", QuotedValue(header),
        " is not a list of at most ", kMaxCsvColumns, " columns between ",
        QuotedValue(delimiter_), "; is csv.delimiter right?"));
  }
  std::vector<std::string> columns(names->begin(), names->end());
  if (columns_.empty()) columns_ = columns;
  if (columns_ == columns) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": the columns are ", absl::StrJoin(columns, ", "),
      "; those of the files before it are ", absl::StrJoin(columns_, ", ")));
}

}  // namespace parasol
