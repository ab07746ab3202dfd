#ifndef PARASOL_ML_INPUT_ARROW_ARROW_TYPE_H_
#define PARASOL_ML_INPUT_ARROW_ARROW_TYPE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "third_party/arrow/arrow_shim.h"

namespace parasol {

// The type of a column of a Parquet or Arrow file, as far as it can be read:
// one number or text, or a list of them.
struct ArrowType {
  // How one value lies in an array.
  enum class Kind {
    kUnknown,  // a type that can't be read
    kNull,     // always missing
    kBool,
    kInt8,
    kInt16,
    kInt32,
    kInt64,
    kUint8,
    kUint16,
    kUint32,
    kUint64,
    kHalf,
    kFloat,
    kDouble,
    kDecimal32,
    kDecimal64,
    kDecimal128,
    kText,       // offsets of 32 bits
    kLargeText,  // offsets of 64 bits
    kTextView,
    kFixedText,
  };
  enum class List { kNone, kList, kLargeList, kFixedList };

  Kind kind = Kind::kUnknown;
  List list = List::kNone;
  int64_t list_values = 0;  // length of a kFixedList
  int64_t text_bytes = 0;   // length of a kFixedText
  int scale = 0;            // digits behind the point, of decimals
  // Kind of the numbers of a dictionary's values, if the values are in one.
  std::optional<Kind> index = std::nullopt;
  // The type as people write it: "list<int64>".
  std::string name = {};

  bool is_readable() const { return kind != Kind::kUnknown; }
};

// Returns the type that the schema of a column says. Pure.
ArrowType ArrowTypeOf(const ArrowSchema& schema);

// Returns true if two files' columns of these types make one column: texts are
// texts, and lists are lists, however they lie in the file, and a column of
// nulls goes with each. Pure.
bool IsSameColumn(const ArrowType& a, const ArrowType& b);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_ARROW_ARROW_TYPE_H_
