#include "cluster/job/override.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "base/did_you_mean.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "cluster/job/syntax/first_parse_error.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"

namespace parasol {
namespace {

// Bytes of a flag's value that an error shows.
constexpr size_t kMaxShown = 200;

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// "layer[1]" or "units".
struct PathPart {
  absl::string_view text;
  absl::string_view field;
  std::optional<int> index;
};

absl::StatusOr<PathPart> ParsePart(absl::string_view text) {
  PathPart part{text, text, std::nullopt};
  const size_t bracket = text.find('[');
  if (bracket == absl::string_view::npos) return part;
  part.field = text.substr(0, bracket);
  absl::string_view digits = text.substr(bracket + 1);
  int index = 0;
  if (!absl::ConsumeSuffix(&digits, "]") || digits.empty() ||
      !std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit) ||
      !absl::SimpleAtoi(digits, &index)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", ShownText(text, kMaxShown),
                     "\" is not a field with an index, as in ", "layer[1]"));
  }
  part.index = index;
  return part;
}

std::string Listed(const std::vector<std::string>& names) {
  return names.empty() ? "none" : absl::StrJoin(names, ", ");
}

std::vector<std::string> FieldNames(const Descriptor& message) {
  std::vector<std::string> names;
  for (int i = 0; i < message.field_count(); ++i) {
    names.push_back(message.field(i)->name());
  }
  return names;
}

// The field that `part` names; its index, where it has one, exists.
absl::StatusOr<const FieldDescriptor*> FindField(const Message& message,
                                                 const PathPart& part) {
  const Descriptor& type = *message.GetDescriptor();
  const FieldDescriptor* field = type.FindFieldByName(std::string(part.field));
  if (field == nullptr) {
    const std::vector<std::string> names = FieldNames(type);
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", ShownText(part.field, kMaxShown), "\" is not a field of ",
        type.name(), ", which has: ", Listed(names),
        DidYouMean(part.field, names)));
  }
  if (field->is_repeated() != part.index.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", part.text, "\": ", field->name(),
        field->is_repeated() ? " is a list; write an index, as in layer[1]"
                             : " is not a list; leave out the index"));
  }
  if (!field->is_repeated()) return field;
  const int size = message.GetReflection()->FieldSize(message, field);
  if (*part.index >= size) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", part.text, "\": ", field->name(), " has ", size,
                     size == 1 ? " element" : " elements"));
  }
  return field;
}

// `value` in text format: strings come without quotes.
std::string TextOf(const FieldDescriptor& field, absl::string_view value) {
  if (field.cpp_type() != FieldDescriptor::CPPTYPE_STRING) {
    return std::string(value);
  }
  return absl::StrCat("\"", absl::CEscape(value), "\"");
}

bool IsFinite(const Message& message, const FieldDescriptor* field) {
  const auto& reflection = *message.GetReflection();
  if (field->is_repeated()) {
    // The parser appended the value. The job has no list of floats.
    const int last = reflection.FieldSize(message, field) - 1;
    return field->cpp_type() != FieldDescriptor::CPPTYPE_DOUBLE ||
           std::isfinite(reflection.GetRepeatedDouble(message, field, last));
  }
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return std::isfinite(reflection.GetDouble(message, field));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return std::isfinite(reflection.GetFloat(message, field));
    default:
      return true;
  }
}

absl::Status ValueFault(const FieldDescriptor& field, absl::string_view value,
                        absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat(field.name(), ": \"", ShownText(value, kMaxShown),
                   "\" is not a value of it", why.empty() ? "" : ": ", why));
}

// What is wrong with `value`, the fields in braces of the message that `path`
// names, where a job file has them; empty: nothing. The parser of a value by
// itself takes the second of two fields of one choice.
std::string FaultInFile(absl::Span<const PathPart> path,
                        absl::string_view value) {
  std::string text(value);
  for (auto part = path.rbegin(); part != path.rend(); ++part) {
    text = part == path.rbegin() ? absl::StrCat(part->field, " ", text)
                                 : absl::StrCat(part->field, " {", text, "\n}");
  }
  job::Job job;
  const std::optional<ParseFault> fault = ParseJobText(text, job);
  return fault.has_value() ? fault->message : "";
}

absl::Status SetLeaf(Message& message, absl::Span<const PathPart> path,
                     absl::string_view value) {
  const PathPart& part = path.back();
  ASSIGN_OR_RETURN(const FieldDescriptor* field, FindField(message, part));
  const auto& reflection = *message.GetReflection();
  const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  if (is_message && !absl::StartsWith(value, "{")) {
    return ValueFault(
        *field, value,
        absl::StrCat("it is a group of fields, in braces or one by one: ",
                     Listed(FieldNames(*field->message_type()))));
  }
  if (is_message) {
    const std::string fault = FaultInFile(path, value);
    if (!fault.empty()) return ValueFault(*field, value, fault);
  }
  if (!field->is_repeated()) reflection.ClearField(&message, field);

  FirstParseError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (!parser.ParseFieldValueFromString(TextOf(*field, value), field,
                                        &message)) {
    return ValueFault(
        *field, value,
        field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM
            ? absl::StrCat("it is one of ", ValueNames(*field->enum_type()))
            : error.message());
  }
  if (!IsFinite(message, field)) {
    return ValueFault(*field, value, "it is a finite number");
  }
  if (field->is_repeated()) {  // the parser appended the value
    const int last = reflection.FieldSize(message, field) - 1;
    reflection.SwapElements(&message, field, *part.index, last);
    reflection.RemoveLast(&message, field);
  }
  return absl::OkStatus();
}

absl::StatusOr<Message*> Descend(Message& message, const PathPart& part) {
  ASSIGN_OR_RETURN(const FieldDescriptor* field, FindField(message, part));
  if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", part.text, "\" has no fields of its own"));
  }
  const auto& reflection = *message.GetReflection();
  return field->is_repeated()
             ? reflection.MutableRepeatedMessage(&message, field, *part.index)
             : reflection.MutableMessage(&message, field);
}

absl::Status Apply(job::Job& job, absl::string_view override) {
  const std::pair<absl::string_view, absl::string_view> path_and_value =
      absl::StrSplit(override, absl::MaxSplits('=', 1));
  if (override.find('=') == absl::string_view::npos) {
    return absl::InvalidArgumentError("no '=': it is PATH=VALUE");
  }
  std::vector<PathPart> path;
  for (absl::string_view text : absl::StrSplit(path_and_value.first, '.')) {
    ASSIGN_OR_RETURN(path.emplace_back(), ParsePart(text));
  }
  Message* message = &job;
  for (const PathPart& part :
       absl::MakeSpan(path).subspan(0, path.size() - 1)) {
    ASSIGN_OR_RETURN(message, Descend(*message, part));
  }
  return SetLeaf(*message, path, path_and_value.second);
}

}  // namespace

absl::Status ApplyOverride(job::Job& job, absl::string_view override) {
  job::Job changed = job;
  RETURN_IF_ERROR(Apply(changed, override))
      << "--set=" << ShownText(override, kMaxShown);
  job = std::move(changed);
  return absl::OkStatus();
}

}  // namespace parasol
