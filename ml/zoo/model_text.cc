#include "ml/zoo/model_text.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/text_format.h"

namespace parasol::zoo {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::TextFormat;

constexpr size_t kColumns = 120;
constexpr char kOpening[] = "model {\n";
constexpr char kClosing[] = "\n}\n";

// The fields that are set, as job.proto orders them.
std::vector<const FieldDescriptor*> FieldsAsDeclared(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  std::sort(fields.begin(), fields.end(),
            [](const FieldDescriptor* a, const FieldDescriptor* b) {
              return a->index() < b->index();
            });
  return fields;
}

bool IsMessage(const FieldDescriptor* field) {
  return field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
}

std::vector<const Message*> MessagesOf(const Message& message,
                                       const FieldDescriptor* field) {
  const auto& reflection = *message.GetReflection();
  if (!field->is_repeated()) return {&reflection.GetMessage(message, field)};
  std::vector<const Message*> messages;
  for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
    messages.push_back(&reflection.GetRepeatedMessage(message, field, i));
  }
  return messages;
}

// "name: 1" or "name: [1, 2]" of a field that is no message.
std::string ValuesText(const Message& message, const FieldDescriptor* field) {
  const int count = field->is_repeated()
                        ? message.GetReflection()->FieldSize(message, field)
                        : 1;
  std::vector<std::string> values(count);
  for (int i = 0; i < count; ++i) {
    TextFormat::PrintFieldValueToString(
        message, field, field->is_repeated() ? i : -1, &values[i]);
  }
  if (count == 1) return absl::StrCat(field->name(), ": ", values[0]);
  return absl::StrCat(field->name(), ": [", absl::StrJoin(values, ", "), "]");
}

// "name { a: 1 b { c: [1, 2] } }".
std::string OnOneLine(absl::string_view name, const Message& message) {
  std::string text = absl::StrCat(name, " {");
  const auto fields = FieldsAsDeclared(message);
  for (const FieldDescriptor* field : fields) {
    if (!IsMessage(field)) {
      absl::StrAppend(&text, " ", ValuesText(message, field));
      continue;
    }
    for (const Message* part : MessagesOf(message, field)) {
      absl::StrAppend(&text, " ", OnOneLine(field->name(), *part));
    }
  }
  return absl::StrCat(text, fields.empty() ? "}" : " }");
}

void AppendFields(const Message& message, const std::string& margin,
                  std::string& text);

void AppendMessage(absl::string_view name, const Message& message,
                   const std::string& margin, std::string& text) {
  const std::string line = absl::StrCat(margin, OnOneLine(name, message));
  if (line.size() <= kColumns) {
    absl::StrAppend(&text, line, "\n");
    return;
  }
  absl::StrAppend(&text, margin, name, " {\n");
  AppendFields(message, margin + "  ", text);
  absl::StrAppend(&text, margin, "}\n");
}

void AppendFields(const Message& message, const std::string& margin,
                  std::string& text) {
  for (const FieldDescriptor* field : FieldsAsDeclared(message)) {
    if (!IsMessage(field)) {
      absl::StrAppend(&text, margin, ValuesText(message, field), "\n");
      continue;
    }
    for (const Message* part : MessagesOf(message, field)) {
      AppendMessage(field->name(), *part, margin, text);
    }
  }
}

}  // namespace

std::string ModelText(const job::Model& model) {
  std::string text = kOpening;
  AppendFields(model, "  ", text);
  return absl::StrCat(text, "}\n");
}

absl::StatusOr<std::string> WithModel(absl::string_view job_text,
                                      const job::Model& model) {
  size_t start = job_text.find(absl::StrCat("\n", kOpening));
  start = start == job_text.npos ? start : start + 1;
  if (job_text.substr(0, sizeof(kOpening) - 1) == kOpening) start = 0;
  const size_t end =
      start == job_text.npos ? start : job_text.find(kClosing, start);
  if (end == job_text.npos) {
    return absl::InvalidArgumentError(
        "no \"model {\" … \"}\" at the starts of lines");
  }
  return absl::StrCat(job_text.substr(0, start), ModelText(model),
                      job_text.substr(end + sizeof(kClosing) - 1));
}

}  // namespace parasol::zoo
