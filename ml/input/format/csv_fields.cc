#include "ml/input/format/csv_fields.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <bit>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/shown_text.h"

namespace parasol {
namespace {

// Those that files have.
constexpr absl::string_view kDelimiters[] = {";", "\t", "|", ","};

// Returns true if `column` is several names between `delimiter`s, one of them
// `name`.
bool HasNameBetween(absl::string_view name, absl::string_view column,
                    absl::string_view delimiter) {
  const std::vector<absl::string_view> names =
      absl::StrSplit(column, delimiter);
  for (absl::string_view one : names) {
    one = absl::StripAsciiWhitespace(one);
    if (absl::ConsumePrefix(&one, "\"")) absl::ConsumeSuffix(&one, "\"");
    if (names.size() > 1 && one == name) return true;
  }
  return false;
}

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

// Calls `visit` with the offset of each `wanted` in the text, until it returns
// false. Values are short: to call find() for each would take longer.
template <typename Visit>
void ForEachOf(char wanted, absl::string_view text, Visit visit) {
  size_t at = 0;
#if defined(__SSE2__)
  const __m128i all_wanted = _mm_set1_epi8(wanted);
  for (; at + 16 <= text.size(); at += 16) {
    const __m128i some =
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(text.data() + at));
    uint32_t found = _mm_movemask_epi8(_mm_cmpeq_epi8(some, all_wanted));
    for (; found != 0; found &= found - 1) {
      if (!visit(at + std::countr_zero(found))) return;
    }
  }
#endif
  for (; at < text.size(); ++at) {
    if (text[at] == wanted && !visit(at)) return;
  }
}

bool Continues(absl::string_view text, size_t at, absl::string_view what) {
  return text.substr(at, what.size()) == what;
}

}  // namespace

CsvRecordEnd EndOfCsvRecord(absl::string_view text, absl::string_view delimiter,
                            bool goes_on) {
  using Kind = CsvRecordEnd::Kind;
  const size_t first_line = LineEnd(text, 0);
  if (goes_on && first_line == text.size()) return {.kind = Kind::kCutOff};
  if (text.substr(0, first_line).find('"') == absl::string_view::npos) {
    return {.kind = Kind::kWhole, .size = first_line};
  }
  const CsvRecordEnd broken = {.kind = Kind::kBroken, .size = first_line};
  size_t end = first_line;
  for (size_t at = 0;; at += delimiter.size()) {
    at = SkipBlanks(text, at, delimiter);
    if (at < end && text[at] == '"') {
      const absl::string_view most = text.substr(0, at + kMaxCsvQuotedBytes);
      const size_t quote = ClosingQuote(most, at);
      const bool is_open = quote == absl::string_view::npos;
      if (goes_on && most.size() < at + kMaxCsvQuotedBytes &&
          (is_open || quote + 1 == most.size())) {
        return {.kind = Kind::kCutOff};
      }
      if (is_open) return broken;
      at = SkipBlanks(text, quote + 1, delimiter);
      end = LineEnd(text, at);
      if (goes_on && end == text.size()) return {.kind = Kind::kCutOff};
      if (at == end || (at + 1 == end && text[at] == '\r')) {
        return {.kind = Kind::kWhole, .size = end};
      }
      if (!Continues(text, at, delimiter)) return broken;
    } else {
      const size_t found = text.substr(0, end).find(delimiter, at);
      if (found == absl::string_view::npos) {
        return {.kind = Kind::kWhole, .size = end};
      }
      at = found;
    }
  }
}

const std::vector<absl::string_view>* CsvFields::Split(absl::string_view record,
                                                       size_t max_values) {
  values_.clear();
  if (delimiter_.size() == 1 && record.find('"') == absl::string_view::npos) {
    SplitUnquoted(record, max_values);
    return &values_;
  }
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

void CsvFields::SplitUnquoted(absl::string_view record, size_t max_values) {
  size_t start = 0;
  const auto take = [&](size_t end) {
    const size_t next = end + 1;
    while (start < end && IsBlank(record[start], delimiter_)) ++start;
    while (start < end && IsBlank(record[end - 1], delimiter_)) --end;
    values_.push_back(record.substr(start, end - start));
    start = next;
    return values_.size() <= max_values;
  };
  ForEachOf(delimiter_.front(), record, take);
  if (values_.size() <= max_values) take(record.size());
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

std::string DelimiterHint(absl::string_view name,
                          const std::vector<std::string>& columns) {
  for (const absl::string_view delimiter : kDelimiters) {
    for (const std::string& column : columns) {
      if (!HasNameBetween(name, column, delimiter)) continue;
      return absl::StrCat("; is csv.delimiter: \"", ShownText(delimiter),
                          "\" meant?");
    }
  }
  return columns.size() == 1 ? "; is csv.delimiter right?" : "";
}

}  // namespace parasol
