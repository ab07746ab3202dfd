#include "cluster/job/changed_fields.h"

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"

namespace parasol {
namespace {

using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;
using ::google::protobuf::Reflection;
using ::google::protobuf::TextFormat;
using ::google::protobuf::util::MessageDifferencer;

// Bytes of one value in a line.
constexpr size_t kMaxValueBytes = 80;

// The difference of two messages, field by field.
class FieldComparison {
 public:
  // `path` is the message's own, with a '.' behind it.
  void Compare(const Message& was, const Message& is, const std::string& path) {
    const auto* const descriptor = was.GetDescriptor();
    for (int i = 0; i < descriptor->field_count(); ++i) {
      const FieldDescriptor* const field = descriptor->field(i);
      MessageDifferencer differencer;
      if (differencer.CompareWithFields(was, is, {field}, {field})) continue;
      CompareField(was, is, field, absl::StrCat(path, field->name()));
    }
  }

  std::vector<std::string> Take() {
    if (more_ > 0) changed_.push_back(absl::StrCat(more_, " more fields"));
    return std::move(changed_);
  }

 private:
  void CompareField(const Message& was, const Message& is,
                    const FieldDescriptor* field, const std::string& path) {
    const Reflection& reflection = *was.GetReflection();
    const bool is_message =
        field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (is_message && field->is_repeated() &&
        reflection.FieldSize(was, field) == reflection.FieldSize(is, field)) {
      for (int i = 0; i < reflection.FieldSize(was, field); ++i) {
        Compare(reflection.GetRepeatedMessage(was, field, i),
                reflection.GetRepeatedMessage(is, field, i),
                absl::StrCat(path, "[", i, "]."));
      }
      return;
    }
    if (is_message && !field->is_repeated() &&
        reflection.HasField(was, field) && reflection.HasField(is, field)) {
      return Compare(reflection.GetMessage(was, field),
                     reflection.GetMessage(is, field), absl::StrCat(path, "."));
    }
    Add(absl::StrCat(path, ": ", ValueOf(was, field), " -> ",
                     ValueOf(is, field)));
  }

  static std::string ValueOf(const Message& message,
                             const FieldDescriptor* field) {
    const Reflection& reflection = *message.GetReflection();
    if (field->is_repeated()) return ListOf(message, field);
    if (!reflection.HasField(message, field)) return "not set";
    return Printed(message, field, /*index=*/-1);
  }

  static std::string ListOf(const Message& message,
                            const FieldDescriptor* field) {
    const int size = message.GetReflection()->FieldSize(message, field);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      return absl::StrCat(size, " entries");
    }
    std::string list;
    for (int i = 0; i < size && list.size() <= kMaxValueBytes; ++i) {
      absl::StrAppend(&list, i == 0 ? "" : ", ", Printed(message, field, i));
    }
    return absl::StrCat("[", Cut(std::move(list)), "]");
  }

  static std::string Printed(const Message& message,
                             const FieldDescriptor* field, int index) {
    TextFormat::Printer printer;
    printer.SetSingleLineMode(true);
    std::string text;
    printer.PrintFieldValueToString(message, field, index, &text);
    while (!text.empty() && text.back() == ' ') text.pop_back();
    const bool is_message =
        field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    return Cut(is_message ? absl::StrCat("{", text, "}") : std::move(text));
  }

  static std::string Cut(std::string text) {
    if (text.size() <= kMaxValueBytes) return text;
    text.resize(kMaxValueBytes);
    return text + "…";
  }

  void Add(std::string change) {
    if (changed_.size() < kMaxChangedFields) {
      changed_.push_back(std::move(change));
    } else {
      ++more_;
    }
  }

  std::vector<std::string> changed_;
  size_t more_ = 0;
};

}  // namespace

std::vector<std::string> ChangedFields(const job::Job& was,
                                       const job::Job& is) {
  FieldComparison comparison;
  comparison.Compare(was, is, "");
  return comparison.Take();
}

}  // namespace parasol
