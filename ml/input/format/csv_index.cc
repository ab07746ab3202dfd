#include "ml/input/format/csv_index.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "ml/input/format/csv_fields.h"

namespace parasol {
namespace {

constexpr size_t kMaxCsvColumns = 65536;
constexpr size_t kFirstCsvHeaderBytes = 4 << 20;
constexpr size_t kMaxCsvHeaderBytes = 64 << 20;

}  // namespace

std::string QuotedValue(absl::string_view text) {
  return absl::StrCat("\"", ShownText(text, 40), "\"");
}

std::string CsvDelimiter(const job::CsvDataset& csv) {
  return csv.delimiter().empty() ? "," : csv.delimiter();
}

CsvIndexer::CsvIndexer(const job::CsvDataset& csv)
    : delimiter_(CsvDelimiter(csv)),
      skip_lines_(csv.skip_lines()),
      has_header_(csv.column().empty()),
      columns_(csv.column().begin(), csv.column().end()) {
  for (const char blank : {' ', '\t', '\r'}) {
    if (blank != delimiter_.front()) blanks_ += blank;
  }
}

absl::Status CsvIndexer::Add(DataFile file) {
  if (!file.is_whole) {
    // A header of more columns than a sample has room for.
    for (size_t size = kFirstCsvHeaderBytes;
         !file.is_whole && file.bytes.find('\n') == std::string::npos &&
         size <= kMaxCsvHeaderBytes;
         size *= 4) {
      ASSIGN_OR_RETURN(file, ReadDataFile(file.path, /*is_text=*/true, size));
    }
  }
  if (!file.is_whole) file.bytes.resize(file.bytes.rfind('\n') + 1);
  const std::string path = file.path;
  text_ = records_.AddFile(path, std::move(file.bytes));
  size_t at = absl::string_view(text_).substr(0, 3) == "\xef\xbb\xbf" ? 3 : 0;
  for (int i = 0; i < skip_lines_ && at < text_.size(); ++i) {
    at = std::min(text_.find('\n', at), text_.size() - 1) + 1;
  }
  bool header_to_come = has_header_;
  while (at < text_.size()) {
    const size_t start = at;
    const std::optional<size_t> end = EndOfCsvRecord(text_, start, delimiter_);
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
    } else if (!file.is_whole && text_.size() - start < kMaxCsvQuotedBytes) {
      break;  // perhaps cut off inside its quotes
    } else {
      records_.AddBroken(start, record.size(),
                         "a quoted value does not end, or goes on behind "
                         "its quote");
    }
  }
  return absl::OkStatus();
}

absl::Status CsvIndexer::TakeHeader(const std::string& path,
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
