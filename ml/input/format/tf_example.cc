#include "ml/input/format/tf_example.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

constexpr int kVarint = 0;
constexpr int kFixed64 = 1;
constexpr int kLengthDelimited = 2;
constexpr int kFixed32 = 5;

absl::Status NoExample(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("not a tf.Example: ", what));
}

// Takes a message apart, field by field.
class WireFields {
 public:
  explicit WireFields(absl::string_view message) : rest_(message) {}

  // Goes to the next field; false: there is none, or the bytes are no message.
  bool Next() {
    uint64_t tag;
    if (rest_.empty() || !TakeVarint(rest_, tag)) return Stop(rest_.empty());
    number_ = tag >> 3;
    type_ = static_cast<int>(tag & 7);
    switch (type_) {
      case kVarint:
        return TakeVarint(rest_, varint_) || Stop(false);
      case kFixed64:
        return Take(sizeof(uint64_t));
      case kLengthDelimited: {
        uint64_t length;
        return TakeVarint(rest_, length) ? Take(length) : Stop(false);
      }
      case kFixed32:
        return Take(sizeof(uint32_t));
      default:
        return Stop(false);
    }
  }

  bool Is(uint64_t number, int type) const {
    return number_ == number && type_ == type;
  }
  uint64_t varint() const { return varint_; }
  // Bytes of a field of another type.
  absl::string_view bytes() const { return bytes_; }

  // Once Next() has said false.
  absl::Status status(absl::string_view message) const {
    if (is_whole_) return absl::OkStatus();
    return NoExample(absl::StrCat(message, " is cut off or garbled"));
  }

  static bool TakeVarint(absl::string_view& rest, uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && !rest.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(rest.front());
      rest.remove_prefix(1);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

 private:
  bool Take(uint64_t length) {
    if (length > rest_.size()) return Stop(false);
    bytes_ = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return true;
  }

  bool Stop(bool is_whole) {
    is_whole_ = is_whole;
    rest_ = {};
    return false;
  }

  absl::string_view rest_;
  uint64_t number_ = 0;
  int type_ = 0;
  uint64_t varint_ = 0;
  absl::string_view bytes_;
  bool is_whole_ = true;
};

FieldValue RealOf(absl::string_view four_bytes) {
  uint32_t bits = 0;
  for (int i = 3; i >= 0; --i) {
    bits = bits << 8 | static_cast<uint8_t>(four_bytes[i]);
  }
  float real;
  std::memcpy(&real, &bits, sizeof(real));
  return FieldValue::Real(real);
}

absl::Status ReadTexts(absl::string_view list,
                       std::vector<FieldValue>& values) {
  WireFields fields(list);
  while (fields.Next()) {
    if (fields.Is(1, kLengthDelimited)) {
      values.push_back(FieldValue::Text(fields.bytes()));
    }
  }
  return fields.status("a bytes_list");
}

absl::Status ReadReals(absl::string_view list,
                       std::vector<FieldValue>& values) {
  WireFields fields(list);
  while (fields.Next()) {
    if (fields.Is(1, kFixed32)) values.push_back(RealOf(fields.bytes()));
    if (!fields.Is(1, kLengthDelimited)) continue;
    const absl::string_view packed = fields.bytes();
    if (packed.size() % sizeof(float) != 0) {
      return NoExample("a float_list of half a number");
    }
    for (size_t at = 0; at < packed.size(); at += sizeof(float)) {
      values.push_back(RealOf(packed.substr(at, sizeof(float))));
    }
  }
  return fields.status("a float_list");
}

absl::Status ReadIntegers(absl::string_view list,
                          std::vector<FieldValue>& values) {
  const auto append = [&values](uint64_t varint) {
    values.push_back(FieldValue::Integer(static_cast<int64_t>(varint)));
  };
  WireFields fields(list);
  while (fields.Next()) {
    if (fields.Is(1, kVarint)) append(fields.varint());
    if (!fields.Is(1, kLengthDelimited)) continue;
    absl::string_view packed = fields.bytes();
    while (!packed.empty()) {
      uint64_t varint;
      if (!WireFields::TakeVarint(packed, varint)) {
        return NoExample("an int64_list of half a number");
      }
      append(varint);
    }
  }
  return fields.status("an int64_list");
}

}  // namespace

absl::Status ForEachFeature(
    absl::string_view example,
    absl::FunctionRef<absl::Status(absl::string_view, absl::string_view)>
        visit) {
  WireFields parts(example);
  while (parts.Next()) {
    if (!parts.Is(1, kLengthDelimited)) continue;
    WireFields entries(parts.bytes());
    while (entries.Next()) {
      if (!entries.Is(1, kLengthDelimited)) continue;
      absl::string_view name;
      absl::string_view feature;
      WireFields entry(entries.bytes());
      while (entry.Next()) {
        if (entry.Is(1, kLengthDelimited)) name = entry.bytes();
        if (entry.Is(2, kLengthDelimited)) feature = entry.bytes();
      }
      RETURN_IF_ERROR(entry.status("a feature"));
      RETURN_IF_ERROR(visit(name, feature));
    }
    RETURN_IF_ERROR(entries.status("the list of features"));
  }
  return parts.status("the message");
}

absl::Status ReadFeature(absl::string_view feature,
                         std::vector<FieldValue>& values) {
  values.clear();
  WireFields kinds(feature);
  while (kinds.Next()) {
    if (kinds.Is(1, kLengthDelimited)) {
      RETURN_IF_ERROR(ReadTexts(kinds.bytes(), values));
    } else if (kinds.Is(2, kLengthDelimited)) {
      RETURN_IF_ERROR(ReadReals(kinds.bytes(), values));
    } else if (kinds.Is(3, kLengthDelimited)) {
      RETURN_IF_ERROR(ReadIntegers(kinds.bytes(), values));
    }
  }
  return kinds.status("a feature");
}

}  // namespace parasol
