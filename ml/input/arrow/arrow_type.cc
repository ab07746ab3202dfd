#include "ml/input/arrow/arrow_type.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/shown_text.h"

namespace parasol {
namespace {

using Kind = ArrowType::Kind;
using List = ArrowType::List;

struct SimpleType {
  absl::string_view format;
  Kind kind;
  absl::string_view name;
};

// The formats of the C Data Interface that a value is read of.
constexpr SimpleType kSimpleTypes[] = {
    {"n", Kind::kNull, "null"},
    {"b", Kind::kBool, "bool"},
    {"c", Kind::kInt8, "int8"},
    {"C", Kind::kUint8, "uint8"},
    {"s", Kind::kInt16, "int16"},
    {"S", Kind::kUint16, "uint16"},
    {"i", Kind::kInt32, "int32"},
    {"I", Kind::kUint32, "uint32"},
    {"l", Kind::kInt64, "int64"},
    {"L", Kind::kUint64, "uint64"},
    {"e", Kind::kHalf, "float16"},
    {"f", Kind::kFloat, "float32"},
    {"g", Kind::kDouble, "float64"},
    {"u", Kind::kText, "string"},
    {"U", Kind::kLargeText, "large_string"},
    {"vu", Kind::kTextView, "string_view"},
    {"z", Kind::kText, "binary"},
    {"Z", Kind::kLargeText, "large_binary"},
    {"vz", Kind::kTextView, "binary_view"},
};

// Those that are not read, for messages: by the beginning of the format.
constexpr std::pair<absl::string_view, absl::string_view> kOtherTypes[] = {
    {"tdD", "date32"},   {"tdm", "date64"},    {"tts", "time32"},
    {"ttm", "time32"},   {"ttu", "time64"},    {"ttn", "time64"},
    {"ts", "timestamp"}, {"tD", "duration"},   {"ti", "interval"},
    {"+s", "struct"},    {"+m", "map"},        {"+u", "union"},
    {"+r", "run-end"},   {"+vl", "list view"}, {"+vL", "large list view"},
    {"+L", "list"},      {"+l", "list"},       {"+w", "list"},
    {"d", "decimal"},
};

bool IsInteger(Kind kind) {
  return kind >= Kind::kInt8 && kind <= Kind::kUint64;
}

// d:precision,scale[,bits]
void SetDecimal(absl::string_view format, ArrowType& type) {
  type.name = "decimal";
  const std::vector<absl::string_view> parts =
      absl::StrSplit(format.substr(2), ',');
  if (parts.size() < 2) return;
  type.name = absl::StrCat("decimal(", parts[0], ", ", parts[1], ")");
  constexpr int kMostDigits = 38;
  if (!absl::SimpleAtoi(parts[1], &type.scale) || type.scale < -kMostDigits ||
      type.scale > kMostDigits) {
    return;
  }
  const absl::string_view bits = parts.size() > 2 ? parts[2] : "128";
  if (bits == "32") type.kind = Kind::kDecimal32;
  if (bits == "64") type.kind = Kind::kDecimal64;
  if (bits == "128") type.kind = Kind::kDecimal128;
}

// The type of a value, as the schema of a column or of a list's values says.
void SetValue(const ArrowSchema& schema, ArrowType& type) {
  const absl::string_view format = schema.format;
  for (const SimpleType& simple : kSimpleTypes) {
    if (format != simple.format) continue;
    type.kind = simple.kind;
    type.name = std::string(simple.name);
    return;
  }
  if (absl::StartsWith(format, "d:")) {
    SetDecimal(format, type);
    return;
  }
  if (absl::StartsWith(format, "w:")) {
    type.name = absl::StrCat("fixed_size_binary(", format.substr(2), ")");
    if (absl::SimpleAtoi(format.substr(2), &type.text_bytes) &&
        type.text_bytes >= 0) {
      type.kind = Kind::kFixedText;
    }
    return;
  }
  type.name = ShownText(format);
  for (const auto& [start, name] : kOtherTypes) {
    if (!absl::StartsWith(format, start)) continue;
    type.name = std::string(name);
    return;
  }
}

void SetValueOrDictionary(const ArrowSchema& schema, ArrowType& type) {
  if (schema.dictionary == nullptr) {
    SetValue(schema, type);
    return;
  }
  ArrowType index;
  SetValue(schema, index);
  SetValue(*schema.dictionary, type);
  type.name = absl::StrCat("dictionary<", type.name, ">");
  if (IsInteger(index.kind)) {
    type.index = index.kind;
  } else {
    type.kind = Kind::kUnknown;
  }
}

enum class Group { kDecimal, kText, kExactly };

Group GroupOf(Kind kind) {
  if (kind >= Kind::kText) return Group::kText;
  if (kind >= Kind::kDecimal32) return Group::kDecimal;
  return Group::kExactly;
}

}  // namespace

ArrowType ArrowTypeOf(const ArrowSchema& schema) {
  ArrowType type;
  const absl::string_view format = schema.format;
  if (format == "+l") type.list = List::kList;
  if (format == "+L") type.list = List::kLargeList;
  if (absl::StartsWith(format, "+w:") &&
      absl::SimpleAtoi(format.substr(3), &type.list_values) &&
      type.list_values >= 0) {
    type.list = List::kFixedList;
  }
  if (type.list == List::kNone || schema.n_children != 1) {
    SetValueOrDictionary(schema, type);
    return type;
  }
  SetValueOrDictionary(*schema.children[0], type);
  type.name = absl::StrCat("list<", type.name, ">");
  if (type.list == List::kFixedList) {
    absl::StrAppend(&type.name, "[", type.list_values, "]");
  }
  return type;
}

bool IsSameColumn(const ArrowType& a, const ArrowType& b) {
  if (a.kind == Kind::kNull || b.kind == Kind::kNull) return true;
  if ((a.list == List::kNone) != (b.list == List::kNone)) return false;
  const Group group = GroupOf(a.kind);
  return group == GroupOf(b.kind) &&
         (group != Group::kExactly || a.kind == b.kind);
}

}  // namespace parasol
