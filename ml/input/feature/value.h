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
// tf.Example's bytes), a number (from a tf.Example, or an array), or a missing
// one within a list, which is no number, and as a text empty.
class FieldValue {
 public:
  // A text whose bytes are borrowed.
  static FieldValue Text(absl::string_view text) { return FieldValue(text); }
  static FieldValue Integer(int64_t integer) {
    return FieldValue(Kind::kInteger, integer);
  }
  static FieldValue Unsigned(uint64_t integer) {
    const Kind kind = integer > INT64_MAX ? Kind::kUnsigned : Kind::kInteger;
    return FieldValue(kind, static_cast<int64_t>(integer));
  }
  static FieldValue Real(float real) { return FieldValue(real); }
  static FieldValue Double(double number) { return FieldValue(number); }
  static FieldValue Missing() { return FieldValue(); }

  bool is_missing() const { return kind_ == Kind::kMissing; }

  // Returns the value as a number; nullopt if it is not a finite number.
  std::optional<double> AsNumber() const {
    if (kind_ == Kind::kText) return ParseNumber(text_);
    if (kind_ == Kind::kInteger) return static_cast<double>(integer_);
    if (kind_ == Kind::kMissing) return std::nullopt;
    if (kind_ == Kind::kUnsigned) {
      return static_cast<double>(static_cast<uint64_t>(integer_));
    }
    const double number = kind_ == Kind::kReal ? real_ : double_;
    return std::isfinite(number) ? std::optional<double>(number) : std::nullopt;
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
    if (kind_ == Kind::kInteger || kind_ == Kind::kUnsigned) {
      return static_cast<uint64_t>(integer_);
    }
    return std::nullopt;
  }

  // Returns the text that is hashed into a fingerprint. A number's text is an
  // integer's digits, or the shortest digits that are read as the same float32
  // or float64.
  static constexpr size_t kMaxNumberBytes = 32;
  absl::string_view AsText(char (&buffer)[kMaxNumberBytes]) const {
    switch (kind_) {
      case Kind::kText:
      case Kind::kMissing:
        return text_;
      case Kind::kInteger:
        return Digits(integer_, buffer);
      case Kind::kUnsigned:
        return Digits(static_cast<uint64_t>(integer_), buffer);
      case Kind::kReal:
        return Digits(real_, buffer);
      case Kind::kDouble:
        return Digits(double_, buffer);
    }
    return {};
  }

 private:
  enum class Kind : uint8_t {
    kText,
    kInteger,
    kUnsigned,
    kReal,
    kDouble,
    kMissing
  };

  template <typename Number>
  static absl::string_view Digits(Number number,
                                  char (&buffer)[kMaxNumberBytes]) {
    const auto end = std::to_chars(buffer, buffer + kMaxNumberBytes, number);
    return absl::string_view(buffer, end.ptr - buffer);
  }

  FieldValue() : kind_(Kind::kMissing), text_() {}
  explicit FieldValue(absl::string_view text)
      : kind_(Kind::kText), text_(text) {}
  explicit FieldValue(float real) : kind_(Kind::kReal), real_(real) {}
  explicit FieldValue(double number) : kind_(Kind::kDouble), double_(number) {}
  FieldValue(Kind kind, int64_t integer) : kind_(kind), integer_(integer) {}

  Kind kind_;
  union {
    absl::string_view text_;
    int64_t integer_;  // the 64 bits, of kUnsigned
    float real_;
    double double_;
  };
};

// Values of an example's columns, in an order that writer and reader agree on.
// A column without a value is missing.
using ColumnValues = std::vector<std::vector<FieldValue>>;

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FEATURE_VALUE_H_
