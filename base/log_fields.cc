#include "base/log_fields.h"

#include <cmath>
#include <cstddef>
#include <ios>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace parasol {
namespace {

// The place of the fields among what a stream keeps.
int FieldsPlace() {
  static const int place = std::ios_base::xalloc();
  return place;
}

std::string* FieldsOf(std::ios_base& stream) {
  return static_cast<std::string*>(stream.pword(FieldsPlace()));
}

// Copies or frees the fields with their stream.
void FollowStream(std::ios_base::event event, std::ios_base& stream, int) {
  std::string* const fields = FieldsOf(stream);
  if (event == std::ios_base::erase_event) {
    delete fields;
    stream.pword(FieldsPlace()) = nullptr;
  } else if (event == std::ios_base::copyfmt_event && fields != nullptr) {
    stream.pword(FieldsPlace()) = new std::string(*fields);
  }
}

// Returns the bytes of the UTF-8 character at the front; 0 if it is none.
size_t Utf8Bytes(absl::string_view text) {
  const auto byte = [&](size_t i) {
    return static_cast<unsigned char>(text[i]);
  };
  const size_t count = byte(0) >= 0xf0   ? 4
                       : byte(0) >= 0xe0 ? 3
                       : byte(0) >= 0xc2 ? 2
                                         : 0;
  if (count == 0 || text.size() < count) return 0;
  uint32_t code = byte(0) & (0x7f >> count);
  for (size_t i = 1; i < count; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr uint32_t kSmallest[] = {0x80, 0x800, 0x10000};  // by bytes, from 2
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  return code < kSmallest[count - 2] || code > 0x10ffff || is_surrogate ? 0
                                                                        : count;
}

}  // namespace

LogFields& LogFields::AddCount(absl::string_view name, int64_t value) {
  absl::StrAppend(&json_, ",", JsonText(name), ":", value);
  return *this;
}

LogFields& LogFields::AddNumber(absl::string_view name, double value) {
  absl::StrAppend(
      &json_, ",", JsonText(name), ":",
      std::isfinite(value) ? absl::StrFormat("%.10g", value) : "null");
  return *this;
}

LogFields& LogFields::AddText(absl::string_view name, absl::string_view value) {
  absl::StrAppend(&json_, ",", JsonText(name), ":", JsonText(value));
  return *this;
}

std::ostream& operator<<(std::ostream& stream, const LogFields& fields) {
  if (std::string* const kept = FieldsOf(stream)) {
    *kept += fields.json();
    return stream;
  }
  stream.pword(FieldsPlace()) = new std::string(fields.json());
  stream.register_callback(&FollowStream, FieldsPlace());
  return stream;
}

std::string LogFieldsIn(std::ostream& stream) {
  const std::string* const fields = FieldsOf(stream);
  return fields == nullptr ? "" : *fields;
}

std::ostream& operator<<(std::ostream& stream, const LogLine& line) {
  return stream << line.text << line.fields;
}

std::string JsonText(absl::string_view text) {
  std::string json = "\"";
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    size_t length = 1;
    if (byte == '\n') {
      json += "\\n";
    } else if (byte < 0x20) {
      absl::StrAppendFormat(&json, "\\u%04x", byte);
    } else if (byte == '"' || byte == '\\') {
      json += '\\';
      json += text[i];
    } else if (byte < 0x80) {
      json += text[i];
    } else if ((length = Utf8Bytes(text.substr(i))) > 0) {
      absl::StrAppend(&json, text.substr(i, length));
    } else {
      length = 1;
      json += "\xEF\xBF\xBD";  // U+FFFD
    }
    i += length;
  }
  return json + '"';
}

}  // namespace parasol
