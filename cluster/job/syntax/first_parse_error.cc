#include "cluster/job/syntax/first_parse_error.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "cluster/job/syntax/bracket_fault.h"
#include "cluster/job/syntax/job_tokens.h"
#include "google/protobuf/text_format.h"

namespace parasol {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;

// The values of the field at fault, if it has names of values and the text
// another word; nullptr otherwise.
const EnumDescriptor* ValuesAt(const std::string& text,
                               const ParseFault& fault) {
  const auto at = JobTokens(text).FieldAt(fault.line, fault.column);
  if (!at.has_value() || at->value.empty()) return nullptr;
  const FieldDescriptor* const field = at->message->FindFieldByName(at->name);
  const EnumDescriptor* const values =
      field == nullptr ? nullptr : field->enum_type();
  const bool is_known =
      values != nullptr && values->FindValueByName(at->value) != nullptr;
  return is_known ? nullptr : values;
}

}  // namespace

void FirstParseError::AddError(int line, int column,
                               const std::string& message) {
  if (!message_.empty()) return;
  line_ = line;
  column_ = column;
  // The parser quotes what it read, whatever bytes that was.
  constexpr size_t kMaxErrorBytes = 300;
  message_ = message.substr(0, kMaxErrorBytes);
  for (char& c : message_) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) c = '?';
  }
}

std::optional<ParseFault> ParseJobText(const std::string& text, job::Job& job) {
  FirstParseError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (parser.ParseFromString(text, &job)) return std::nullopt;
  if (const auto bracket = FindBracketFault(text)) {
    return ParseFault{.line = bracket->line,
                      .column = bracket->column,
                      .message = bracket->message};
  }
  ParseFault fault = {.line = std::max(error.line(), 0),
                      .column = std::max(error.column(), 0),
                      .message = error.message()};
  if (const EnumDescriptor* const values = ValuesAt(text, fault)) {
    fault.message = absl::StrCat(absl::StripSuffix(fault.message, "."),
                                 ": it is one of ", ValueNames(*values));
  }
  return fault;
}

std::string ValueNames(const EnumDescriptor& values) {
  std::vector<std::string> names;
  for (int i = 0; i < values.value_count(); ++i) {
    names.push_back(values.value(i)->name());
  }
  return absl::StrJoin(names, ", ");
}

}  // namespace parasol
