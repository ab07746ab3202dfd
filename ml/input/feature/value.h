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

// One value of a column of an example: a text (of a CSV file, or a tf.Example's
// bytes), or a number of a tf.Example.
class FieldValue {
 public:
  // The bytes are borrowed.
  static FieldValue Text(absl::string_view text) { return FieldValue(text); }
  static FieldValue Integer(int64_t integer) {
    return FieldValue(Kind::kInteger, integer);
  }
  static FieldValue Real(float real) { return FieldValue(real); }

  // nullopt: not a finite number.
  std::optional<double> AsNumber() const {
    if (kind_ == Kind::kText) return ParseNumber(text_);
    if (kind_ == Kind::kInteger) return static_cast<double>(integer_);
    return std::isfinite(real_) ? std::optional<double>(real_) : std::nullopt;
  }
  // nullopt: not a number without fraction.
  std::optional<int64_t> AsInteger() const {
    if (kind_ == Kind::kText) return ParseInteger(text_);
    if (kind_ == Kind::kInteger) return integer_;
    return std::nullopt;
  }
  // Of an integer its 64 bits: ids above 2^63 are negative in a tf.Example.
  // nullopt: not an integer, or a text of a negative one.
  std::optional<uint64_t> AsId() const {
    if (kind_ == Kind::kText) return ParseUnsigned(text_);
    if (kind_ == Kind::kInteger) return static_cast<uint64_t>(integer_);
    return std::nullopt;
  }

  // The text that fingerprints are made of: an integer's digits, and the
  // shortest digits that are read as the same float32.
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

// The values of the columns that a model reads of one example, in an order that
// whoever fills it and whoever reads it have agreed on. No value: missing.
using Row = std::vector<std::vector<FieldValue>>;

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FEATURE_VALUE_H_
