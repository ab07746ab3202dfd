#ifndef PARASOL_ML_INPUT_FEATURE_VALUE_H_
#define PARASOL_ML_INPUT_FEATURE_VALUE_H_

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "ml/input/feature/number.h"

namespace parasol {

// One value of a column of an example: a text (from a CSV file, or a
// tf.Example's bytes) or a number from a tf.Example.
class FieldValue {
 public:
  // A text whose bytes are borrowed.
  static FieldValue Text(absl::string_view text) { return FieldValue(text); }
  static FieldValue Integer(int64_t integer) {
    return FieldValue(Kind::kInteger, integer);
  }
  static FieldValue Real(float real) { return FieldValue(real); }

  // Returns the value as a number; nullopt if it is not a finite number.
  std::optional<double> AsNumber() const {
    if (kind_ == Kind::kText) return ParseNumber(text_);
    if (kind_ == Kind::kInteger) return static_cast<double>(integer_);
    return std::isfinite(real_) ? std::optional<double>(real_) : std::nullopt;
  }
  // Returns true if the value is a negative integer of 64 bits.
  bool IsNegativeInteger() const {
    if (kind_ == Kind::kText) return ParseInteger(text_).value_or(0) < 0;
    return kind_ == Kind::kInteger && integer_ < 0;
  }
  // Returns the value as an id: the 64 bits of an integer, unsigned or in two's
  // complement, because ids above 2^63 are negative in a tf.Example. Returns
  // nullopt if the value is no integer, or beyond 64 bits.
  std::optional<uint64_t> AsId() const {
    if (kind_ == Kind::kText) return ParseId(text_);
    if (kind_ == Kind::kInteger) return static_cast<uint64_t>(integer_);
    return std::nullopt;
  }

  // Returns the text that is hashed into a fingerprint. A number's text is an
  // integer's digits, or the shortest digits that are read as the same float32.
  static constexpr size_t kMaxNumberBytes = 32;
  absl::string_view AsText(char (&buffer)[kMaxNumberBytes]) const {
    if (kind_ == Kind::kText) return text_;
    const auto end =
        kind_ == Kind::kInteger
            ? std::to_chars(buffer, buffer + kMaxNumberBytes, integer_)
            : std::to_chars(buffer, buffer + kMaxNumberBytes, real_);
    return absl::string_view(buffer, end.ptr - buffer);
  }

 private:
  enum class Kind : uint8_t { kText, kInteger, kReal };

  explicit FieldValue(absl::string_view text)
      : kind_(Kind::kText), text_(text) {}
  explicit FieldValue(float real) : kind_(Kind::kReal), real_(real) {}
  FieldValue(Kind kind, int64_t integer) : kind_(kind), integer_(integer) {}

  Kind kind_;
  union {
    absl::string_view text_;
    int64_t integer_;
    float real_;
  };
};

// Values of an example's columns, in an order that writer and reader agree on.
// A column without a value is missing.
using ColumnValues = std::vector<std::vector<FieldValue>>;

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FEATURE_VALUE_H_
