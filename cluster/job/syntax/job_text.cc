#include "cluster/job/syntax/job_text.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/did_you_mean.h"
#include "base/shown_text.h"
#include "cluster/job/syntax/bracket_fault.h"
#include "cluster/job/syntax/first_parse_error.h"
#include "cluster/job/syntax/job_tokens.h"
#include "google/protobuf/descriptor.h"

namespace parasol {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::TextFormat;

constexpr size_t kMaxFaults = 100;

std::vector<std::string> FieldsOf(const Descriptor& message) {
  std::vector<std::string> names;
  for (int i = 0; i < message.field_count(); ++i) {
    names.push_back(message.field(i)->name());
  }
  return names;
}

std::vector<std::string> ValuesOf(const FieldDescriptor& field) {
  std::vector<std::string> names;
  if (field.enum_type() == nullptr) return names;
  for (int i = 0; i < field.enum_type()->value_count(); ++i) {
    names.push_back(field.enum_type()->value(i)->name());
  }
  return names;
}

std::string Quoted(absl::string_view text) {
  constexpr size_t kMaxShownBytes = 100;
  return absl::StrCat("\"", ShownText(text, kMaxShownBytes), "\"");
}

std::string NoSuchField(absl::string_view name, const Descriptor& message) {
  const std::vector<std::string> fields = FieldsOf(message);
  const std::string meant = DidYouMean(name, fields);
  return absl::StrCat(
      Quoted(name), " is not a field of ", message.name(),
      !meant.empty()
          ? meant
          : absl::StrCat(", which has: ", fields.empty()
                                              ? "none"
                                              : absl::StrJoin(fields, ", ")));
}

// What may be meant by the value of the field `known`, or the values there are.
std::string MeantValue(const JobTokens::Field& field,
                       const FieldDescriptor& known) {
  const google::protobuf::EnumDescriptor* const values = known.enum_type();
  const std::string meant = DidYouMean(field.value, ValuesOf(known));
  if (values == nullptr || !meant.empty() || field.value.empty() ||
      values->FindValueByName(field.value) != nullptr) {
    return meant;
  }
  return absl::StrCat(": it is one of ", ValueNames(*values));
}

// "layer[1]" gives the field and 1; an index that is missing is 0 for a list.
const FieldDescriptor* PartOf(absl::string_view part, const Descriptor& message,
                              int& index) {
  const std::pair<absl::string_view, absl::string_view> name_and_index =
      absl::StrSplit(part, absl::MaxSplits('[', 1));
  const FieldDescriptor* const field =
      message.FindFieldByName(std::string(name_and_index.first));
  if (field == nullptr) return nullptr;
  index = field->is_repeated() ? 0 : -1;
  absl::string_view digits = name_and_index.second;
  if (field->is_repeated() && absl::ConsumeSuffix(&digits, "]") &&
      !absl::SimpleAtoi(digits, &index)) {
    return nullptr;
  }
  return field;
}

absl::string_view PathAtStartOf(absl::string_view text) {
  const auto is_of_path = [](char c) {
    return absl::ascii_isalnum(c) || c == '_' || c == '.' || c == '[' ||
           c == ']';
  };
  const auto end = std::find_if_not(text.begin(), text.end(), is_of_path);
  return text.substr(0, end - text.begin());
}

}  // namespace

JobText JobText::Parse(std::string text) {
  JobText parsed;
  parsed.text_ = std::move(text);
  std::string message;
  size_t left_out = 0;  // fields, before the last error
  TextPlace last;
  while (const auto at = parsed.ParseOnce(message)) {
    // What the parser says of such a text is a consequence.
    const auto bracket =
        parsed.faults_.empty() ? FindBracketFault(parsed.text_) : std::nullopt;
    if (bracket.has_value()) {
      parsed.faults_.push_back(
          {.place = {.line = bracket->line + 1, .column = bracket->column + 1},
           .message = bracket->message});
      parsed.job_.reset();
      break;
    }
    // What was left out has not helped: the text is no list of fields.
    const bool helped = parsed.paths_.size() == left_out ||
                        at->line != last.line || at->column != last.column;
    last = *at;
    left_out = parsed.paths_.size();
    const bool mended = helped && parsed.faults_.size() < kMaxFaults &&
                        parsed.Mend(*at, message);
    if (mended) continue;
    if (helped) {
      parsed.faults_.push_back(
          {.place = parsed.Original(*at), .message = message});
    }
    parsed.job_.reset();
    break;
  }
  return parsed;
}

std::optional<TextPlace> JobText::ParseOnce(std::string& message) {
  FirstParseError error;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  places_ = std::make_unique<TextFormat::ParseInfoTree>();
  parser.WriteLocationsTo(places_.get());
  job_.emplace();
  if (parser.ParseFromString(text_, &*job_)) return std::nullopt;
  message = error.message();
  return TextPlace{.line = std::max(error.line(), 0),
                   .column = std::max(error.column(), 0)};
}

bool JobText::Mend(const TextPlace& at, const std::string& message) {
  const JobTokens tokens(text_);
  const std::optional<JobTokens::Field> field =
      tokens.FieldAt(at.line, at.column);
  if (!field.has_value()) return false;
  const bool again =
      std::find(mended_.begin(), mended_.end(), field->offset) != mended_.end();
  mended_.push_back(field->offset);
  const FieldDescriptor* const known =
      field->message->FindFieldByName(field->name);
  const std::vector<std::string> candidates =
      known == nullptr ? FieldsOf(*field->message) : ValuesOf(*known);
  const std::string& wrong = known == nullptr ? field->name : field->value;
  const std::string meant = NearestName(wrong, candidates);
  if (!again) {
    faults_.push_back(
        {.place = Original({.line = field->line, .column = field->column}),
         .message = known == nullptr
                        ? NoSuchField(wrong, *field->message)
                        : absl::StrCat(field->name, ": ",
                                       absl::StripSuffix(message, "."),
                                       MeantValue(*field, *known))});
  }
  if (again || meant.empty()) {
    paths_.push_back(field->path);
    for (size_t i = field->offset; i < field->end; ++i) {
      if (text_[i] != '\n') text_[i] = ' ';
    }
    return true;
  }
  const size_t offset = known == nullptr ? field->offset : field->value_offset;
  text_.replace(offset, wrong.size(), meant);
  edits_.push_back({.place = {.line = field->line, .column = field->column},
                    .longer = static_cast<int>(meant.size()) -
                              static_cast<int>(wrong.size())});
  return true;
}

TextPlace JobText::Original(TextPlace place) const {
  for (auto edit = edits_.rbegin(); edit != edits_.rend(); ++edit) {
    if (edit->place.line == place.line && edit->place.column < place.column) {
      place.column -= edit->longer;
    }
  }
  return {.line = place.line + 1, .column = std::max(place.column, 0) + 1};
}

std::optional<TextFormat::ParseLocationRange> JobText::RangeOf(
    absl::string_view path, bool& is_whole) const {
  const TextFormat::ParseInfoTree* tree = places_.get();
  const Descriptor* message = job::Job::descriptor();
  std::optional<TextFormat::ParseLocationRange> range;
  is_whole = false;
  for (absl::string_view part : absl::StrSplit(PathAtStartOf(path), '.')) {
    if (tree == nullptr || message == nullptr) return range;
    int index = -1;
    const FieldDescriptor* const field = PartOf(part, *message, index);
    if (field == nullptr) return range;
    const TextFormat::ParseLocationRange found =
        tree->GetLocationRange(field, index);
    if (found.start.line < 0) return range;
    range = found;
    message = field->message_type();
    tree = message == nullptr ? nullptr : tree->GetTreeForNested(field, index);
  }
  is_whole = true;
  return range;
}

std::optional<TextPlace> JobText::PlaceOf(absl::string_view path) const {
  bool is_whole = false;
  const auto range = RangeOf(path, is_whole);
  if (!range.has_value()) return std::nullopt;
  return Original({.line = range->start.line, .column = range->start.column});
}

size_t JobText::OffsetOf(const TextFormat::ParseLocation& place) const {
  size_t at = 0;
  for (int line = 0; line < place.line; ++line) {
    at = text_.find('\n', at) + 1;
  }
  // A tab goes to the next multiple of 8 columns.
  constexpr int kTab = 8;
  for (int column = 0; column < place.column && at < text_.size(); ++at) {
    column += text_[at] == '\t' ? kTab - column % kTab : 1;
  }
  return at;
}

std::optional<TextRange> JobText::FieldAt(absl::string_view path) const {
  bool is_whole = false;
  const auto range = RangeOf(path, is_whole);
  if (!range.has_value() || !is_whole || !faults_.empty()) return std::nullopt;
  TextRange field = {.begin = OffsetOf(range->start),
                     .end = OffsetOf(range->end)};
  // The parser counts a separator in.
  const char last = field.end == 0 ? ' ' : text_[field.end - 1];
  if (last == ';' || last == ',') {
    do --field.end;
    while (field.end > field.begin &&
           absl::ascii_isspace(text_[field.end - 1]));
  }
  return field;
}

std::optional<size_t> JobText::CloseOf(absl::string_view path) const {
  const std::optional<TextRange> field = FieldAt(path);
  if (!field.has_value() || field->end == 0) return std::nullopt;
  const size_t last = field->end - 1;
  if (text_[last] != '}' && text_[last] != '>') return std::nullopt;
  return last;
}

bool JobText::IsAtFault(absl::string_view path) const {
  const std::string wanted(PathAtStartOf(path));
  for (const std::string& fault : paths_) {
    const size_t dot = fault.rfind('.');
    const bool is_around =
        dot != std::string::npos && wanted == fault.substr(0, dot);
    if (wanted == fault || is_around) return true;
  }
  return false;
}

}  // namespace parasol
