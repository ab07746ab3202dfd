#include "ml/input/format/csv_fields.h"

namespace parasol {
namespace {

constexpr size_t kMaxQuotedBytes = 1 << 20;

bool IsBlank(char c, absl::string_view delimiter) {
  return (c == ' ' || c == '\t') && c != delimiter.front();
}

size_t SkipBlanks(absl::string_view text, size_t at,
                  absl::string_view delimiter) {
  while (at < text.size() && IsBlank(text[at], delimiter)) ++at;
  return at;
}

// Returns the offset of the quote that ends the value whose first quote is at
// `open`; npos if there is none.
size_t ClosingQuote(absl::string_view text, size_t open) {
  size_t quote = text.find('"', open + 1);
  while (quote != absl::string_view::npos && quote + 1 < text.size() &&
         text[quote + 1] == '"') {
    quote = text.find('"', quote + 2);
  }
  return quote;
}

size_t LineEnd(absl::string_view file, size_t at) {
  const size_t end = file.find('\n', at);
  return end == absl::string_view::npos ? file.size() : end;
}

bool Continues(absl::string_view text, size_t at, absl::string_view what) {
  return text.substr(at, what.size()) == what;
}

}  // namespace

std::optional<size_t> EndOfCsvRecord(absl::string_view file, size_t start,
                                     absl::string_view delimiter) {
  size_t end = LineEnd(file, start);
  if (file.substr(start, end - start).find('"') == absl::string_view::npos) {
    return end;
  }
  for (size_t at = start;; at += delimiter.size()) {
    at = SkipBlanks(file, at, delimiter);
    if (at < end && file[at] == '"') {
      const size_t quote =
          ClosingQuote(file.substr(0, at + kMaxQuotedBytes), at);
      if (quote == absl::string_view::npos) return std::nullopt;
      at = SkipBlanks(file, quote + 1, delimiter);
      end = LineEnd(file, at);
      if (at == end || (at + 1 == end && file[at] == '\r')) return end;
      if (!Continues(file, at, delimiter)) return std::nullopt;
    } else {
      const size_t found = file.substr(0, end).find(delimiter, at);
      if (found == absl::string_view::npos) return end;
      at = found;
    }
  }
}

const std::vector<absl::string_view>* CsvFields::Split(absl::string_view record,
                                                       size_t max_values) {
  values_.clear();
  unquoted_.clear();
  // It never grows past this, so that the values in it stay where they are.
  unquoted_.reserve(record.size());
  size_t at = 0;
  while (values_.size() <= max_values) {
    at = SkipBlanks(record, at, delimiter_);
    if (at < record.size() && record[at] == '"') {
      if (!TakeQuoted(record, at)) return nullptr;
    } else {
      const size_t start = at;
      at = delimiter_.size() == 1 ? record.find(delimiter_.front(), at)
                                  : record.find(delimiter_, at);
      if (at == absl::string_view::npos) at = record.size();
      size_t end = at;
      while (end > start && IsBlank(record[end - 1], delimiter_)) --end;
      values_.push_back(record.substr(start, end - start));
    }
    if (at == record.size()) break;
    at += delimiter_.size();
  }
  return &values_;
}

bool CsvFields::TakeQuoted(absl::string_view record, size_t& at) {
  const size_t quote = ClosingQuote(record, at);
  if (quote == absl::string_view::npos) return false;
  absl::string_view value = record.substr(at + 1, quote - at - 1);
  at = SkipBlanks(record, quote + 1, delimiter_);
  if (at < record.size() && !Continues(record, at, delimiter_)) return false;
  if (value.find('"') != absl::string_view::npos) {
    const size_t start = unquoted_.size();
    for (size_t i = 0; i < value.size(); ++i) {
      unquoted_ += value[i];
      if (value[i] == '"') ++i;  // the second of two
    }
    value = absl::string_view(unquoted_).substr(start);
  }
  values_.push_back(value);
  return true;
}

}  // namespace parasol
