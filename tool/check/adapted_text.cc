#include "tool/check/adapted_text.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cluster/job/syntax/first_parse_error.h"
#include "cluster/job/syntax/job_text.h"
#include "cluster/job/syntax/job_tokens.h"
#include "google/protobuf/text_format.h"
#include "ml/input/feature/column_wildcards.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

// A job file, and where its fields are.
struct FileText {
  explicit FileText(std::string of_file)
      : text(std::move(of_file)), parsed(JobText::Parse(text)) {}

  const std::string text;
  const JobText parsed;
};

struct Edit {
  size_t begin = 0;
  size_t end = 0;
  std::string text = {};  // takes the place of what is from begin to end
};

// Applies edits that don't overlap.
std::string Edited(std::string text, std::vector<Edit> edits) {
  // The last first, lest offsets move.
  std::sort(edits.begin(), edits.end(),
            [](const Edit& a, const Edit& b) { return a.begin > b.begin; });
  for (const Edit& edit : edits) {
    text.replace(edit.begin, edit.end - edit.begin, edit.text);
  }
  return text;
}

std::string FieldsOf(const Normalization& n) {
  std::string fields;
  for (size_t i = 0; i < n.mean.size(); ++i) {
    absl::StrAppendFormat(&fields, "mean: %.9g stddev: %.9g ", n.mean[i],
                          n.stddev[i]);
  }
  const bool is_image = n.column == "image" && !absl::EndsWith(n.path, "]") &&
                        !absl::EndsWith(n.path, ".image");
  return is_image ? absl::StrCat("image { ", fields, "} ") : fields;
}

// Takes a mean of 0 and a deviation of 1 out, which the file may have.
void DropDefaults(const FileText& file, const std::string& path,
                  std::vector<Edit>& edits) {
  for (const char* const field : {".mean", ".stddev"}) {
    const std::optional<TextRange> range = file.parsed.FieldAt(path + field);
    if (range) edits.push_back({.begin = range->begin, .end = range->end});
  }
}

// The text without its comments, and without the lines that are nothing else.
std::string WithoutComments(const std::string& text) {
  std::string kept;
  char quote = 0;  // of the string around; 0: none
  for (size_t i = 0; i < text.size(); ++i) {
    if (quote == 0 && text[i] == '#') {
      while (!kept.empty() && (kept.back() == ' ' || kept.back() == '\t')) {
        kept.pop_back();
      }
      i = std::min(text.find('\n', i), text.size());
      if (i == text.size() || absl::EndsWith(kept, "\n")) continue;
    }
    kept += text[i];
    if (quote != 0 && text[i] == '\\' && i + 1 < text.size()) {
      kept += text[++i];
    } else if (quote != 0) {
      if (text[i] == quote) quote = 0;
    } else if (text[i] == '"' || text[i] == '\'') {
      quote = text[i];
    }
  }
  return kept;
}

// A new line, and what puts a column under the one that begins at `begin`.
std::string LineUnder(const std::string& text, size_t begin) {
  const size_t newline =
      begin == 0 ? std::string::npos : text.rfind('\n', begin - 1);
  const size_t line = newline == std::string::npos ? 0 : newline + 1;
  std::string indented = "\n" + text.substr(line, begin - line);
  for (char& c : indented) {
    if (!absl::ascii_isspace(c)) c = ' ';
  }
  return indented;
}

// The text of the column at `path` in the file; nullopt if it is not there
// alone. Of lists in brackets the parser keeps one place for all elements, so
// the text shows whether it is the column of this name.
std::optional<TextRange> FindColumn(const FileText& file,
                                    const std::string& path,
                                    const std::string& name) {
  const std::optional<TextRange> range = file.parsed.FieldAt(path);
  if (!range || !file.parsed.FieldAt(path + ".name")) return std::nullopt;
  FirstParseError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  job::DenseInput parsed;
  const bool is_alone = parser.ParseFromString(
      file.text.substr(range->begin, range->end - range->begin), &parsed);
  if (!is_alone || parsed.column_size() != 1) return std::nullopt;
  const std::string& found = parsed.column(0).name();
  std::string literal;
  const bool is_it =
      found == name || (IsEscapedName(found, literal) && literal == name);
  return is_it ? range : std::nullopt;
}

// Replaces a pattern by its columns, each with the fields of its entry in
// `means`, if it has one. Returns false if the pattern has no place of its own.
bool AddPattern(const FileText& file, const PatternReport& pattern,
                const std::vector<const Normalization*>& means,
                std::vector<Edit>& edits) {
  const std::optional<TextRange> range =
      FindColumn(file, pattern.path, pattern.pattern);
  if (!range) return false;
  const std::string given =
      file.text.substr(range->begin, range->end - range->begin);
  const std::string line = LineUnder(file.text, range->begin);
  std::vector<Edit> inside;
  DropDefaults(file, pattern.path, inside);
  const TextRange name = *file.parsed.FieldAt(pattern.path + ".name");
  inside.push_back({.begin = name.begin, .end = name.end});
  for (Edit& edit : inside) {
    edit.begin -= range->begin;
    edit.end -= range->begin;
  }
  std::string columns;
  for (const std::string& column : pattern.columns) {
    std::string& fields = inside.back().text;
    fields = absl::StrCat("name: \"",
                          absl::Utf8SafeCEscape(EscapedName(column)), "\"");
    for (const Normalization* const n : means) {
      if (n->column != column) continue;
      absl::StrAppend(&fields, " ", FieldsOf(*n));
      fields.pop_back();  // the space at the end
    }
    const std::string text = Edited(given, inside);
    absl::StrAppend(&columns, columns.empty() ? "" : line,
                    columns.empty() ? text : WithoutComments(text));
  }
  edits.push_back(
      {.begin = range->begin, .end = range->end, .text = std::move(columns)});
  return true;
}

bool AddFields(const FileText& file, const Normalization& n,
               std::vector<Edit>& edits) {
  const std::optional<size_t> close = file.parsed.CloseOf(n.path);
  const bool is_column = absl::EndsWith(n.path, "]");
  if (!close || (is_column && !FindColumn(file, n.path, n.column)))
    return false;
  const bool is_apart =
      *close > 0 && absl::ascii_isspace(file.text[*close - 1]);
  edits.push_back({.begin = *close,
                   .end = *close,
                   .text = absl::StrCat(is_apart ? "" : " ", FieldsOf(n))});
  DropDefaults(file, n.path, edits);
  return true;
}

std::string ValueList(const std::vector<std::string>& values) {
  std::string list;
  for (const std::string& value : values) {
    absl::StrAppend(&list, list.empty() ? "value: [\"" : ", \"",
                    absl::Utf8SafeCEscape(value), "\"");
  }
  return list + "]";
}

// True if the file has the column of ids called `name` at `path` alone.
bool HasIdColumn(const FileText& file, const std::string& path,
                 const std::string& name) {
  const std::optional<TextRange> range = file.parsed.FieldAt(path);
  if (!range || !file.parsed.FieldAt(path + ".name")) return false;
  FirstParseError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  job::IdInput parsed;
  if (!parser.ParseFromString(
          file.text.substr(range->begin, range->end - range->begin), &parsed) ||
      parsed.column_size() != 1 || parsed.column(0).name_size() != 1) {
    return false;
  }
  const std::string& found = parsed.column(0).name(0);
  std::string literal;
  return found == name || (IsEscapedName(found, literal) && literal == name);
}

// Puts a vocabulary in the place of a hash, or adds to one. Returns false if
// the column has no place of its own.
bool AddVocabulary(const FileText& file, const VocabularyChange& change,
                   std::vector<Edit>& edits) {
  if (!HasIdColumn(file, change.path, change.column)) return false;
  const std::string list = ValueList(change.values);
  if (change.replaces_hash) {
    const std::optional<TextRange> hash =
        file.parsed.FieldAt(change.path + ".hash");
    if (!hash) return false;
    edits.push_back({.begin = hash->begin,
                     .end = hash->end,
                     .text = absl::StrCat("vocabulary { ", list, " }")});
    return true;
  }
  const std::optional<size_t> close =
      file.parsed.CloseOf(change.path + ".vocabulary");
  if (!close) return false;
  const bool is_apart =
      *close > 0 && absl::ascii_isspace(file.text[*close - 1]);
  edits.push_back({.begin = *close,
                   .end = *close,
                   .text = absl::StrCat(is_apart ? "" : " ", list, " ")});
  return true;
}

std::string Adapted(const FileText& file, const JobReport& report,
                    std::vector<std::string>& left_out) {
  std::vector<Edit> edits;
  for (const Normalization& n : report.normalizations) {
    if (!n.pattern.empty() || AddFields(file, n, edits)) continue;
    left_out.push_back(n.path);
  }
  for (const PatternReport& pattern : report.patterns) {
    std::vector<const Normalization*> means;
    for (const Normalization& n : report.normalizations) {
      if (n.path == pattern.path && !n.pattern.empty()) means.push_back(&n);
    }
    if (means.empty() || AddPattern(file, pattern, means, edits)) continue;
    for (const Normalization* const n : means) {
      left_out.push_back(absl::StrCat(n->column, " of the pattern ", n->pattern,
                                      ", ", n->path));
    }
  }
  for (const VocabularyChange& change : report.vocabularies) {
    if (AddVocabulary(file, change, edits)) continue;
    left_out.push_back(change.path);
  }
  return Edited(file.text, std::move(edits));
}

}  // namespace

std::string AdaptedText(const CheckedJob& job, const JobReport& report,
                        std::vector<std::string>& left_out) {
  std::string adapted = Adapted(FileText(job.text()), report, left_out);
  if (left_out.empty()) return adapted;
  // Columns in a list in brackets have no place of their own as it is.
  const FileText fields(
      JobTokens(job.text()).Unbracketed(job.text(), "column"));
  std::vector<std::string> still_left_out;
  std::string of_fields = Adapted(fields, report, still_left_out);
  if (still_left_out.size() >= left_out.size()) return adapted;
  left_out = std::move(still_left_out);
  return of_fields;
}

}  // namespace parasol
