#include "ml/input/arrow/column_values.h"

#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>
#include <string>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "ml/compression/half_bits.h"
#include "ml/input/feature/number.h"

namespace parasol {
namespace {

using Kind = ArrowType::Kind;
using List = ArrowType::List;

absl::Status Outside(absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat(what, " points to outside of the column"));
}

// Element number `i`, from the array's own beginning, of a buffer of numbers.
template <typename Number>
Number NumberAt(const ArrowArray& array, int buffer, int64_t i) {
  Number number;
  std::memcpy(&number,
              static_cast<const char*>(array.buffers[buffer]) +
                  (array.offset + i) * sizeof(number),
              sizeof(number));
  return number;
}

bool BitAt(const void* bits, int64_t i) {
  return (static_cast<const uint8_t*>(bits)[i / 8] >> (i % 8) & 1) != 0;
}

bool IsNull(const ArrowArray& array, int64_t i) {
  return array.n_buffers > 0 && array.buffers[0] != nullptr &&
         !BitAt(array.buffers[0], array.offset + i);
}

// The float64 next to unscaled / 10^scale, which is what its digits are read
// as.
double FromDecimal(absl::int128 unscaled, int scale) {
  const bool is_negative = unscaled < 0;
  absl::uint128 rest = static_cast<absl::uint128>(unscaled);
  if (is_negative) rest = ~rest + 1;
  std::string digits;
  for (; rest != 0; rest /= 10) {
    digits.insert(digits.begin(),
                  static_cast<char>('0' + static_cast<int>(rest % 10)));
  }
  const std::string text = absl::StrCat(
      is_negative ? "-" : "", digits.empty() ? "0" : digits, "e", -scale);
  return ParseNumber(text).value_or(std::numeric_limits<double>::quiet_NaN());
}

absl::int128 Decimal128At(const ArrowArray& array, int64_t i) {
  const auto low = NumberAt<uint64_t>(array, 1, 2 * i + array.offset);
  const auto high = NumberAt<int64_t>(array, 1, 2 * i + 1 + array.offset);
  return absl::MakeInt128(high, low);
}

// Sets `text` to the bytes of value `i` between two offsets.
template <typename Offset>
absl::Status FindText(const ArrowArray& array, int64_t i,
                      absl::string_view& text) {
  const auto begin = NumberAt<Offset>(array, 1, i);
  const auto end = NumberAt<Offset>(array, 1, i + 1);
  if (begin < 0 || begin > end ||
      end > NumberAt<Offset>(array, 1, array.length)) {
    return Outside("an offset of a text");
  }
  text = absl::string_view(static_cast<const char*>(array.buffers[2]) + begin,
                           static_cast<size_t>(end - begin));
  return absl::OkStatus();
}

// A view of a text: its length and its bytes, or if they are more than 12 the
// first 4 of them, a buffer's number and an offset there.
absl::Status FindViewed(const ArrowArray& array, int64_t i,
                        absl::string_view& text) {
  constexpr int kViewBytes = 16;
  constexpr int kInlineBytes = 12;
  // Validity and views come before the texts' buffers, and their lengths after.
  constexpr int kFirstBuffer = 2;
  const char* const view = static_cast<const char*>(array.buffers[1]) +
                           (array.offset + i) * kViewBytes;
  int32_t fields[4];  // length, first bytes, buffer, offset
  std::memcpy(fields, view, kViewBytes);
  const int32_t length = fields[0];
  if (length >= 0 && length <= kInlineBytes) {
    text = absl::string_view(view + sizeof(length), length);
    return absl::OkStatus();
  }
  const int64_t buffers = array.n_buffers - kFirstBuffer - 1;
  const auto* const lengths =
      static_cast<const int64_t*>(array.buffers[array.n_buffers - 1]);
  const int32_t buffer = fields[2];
  const int64_t offset = fields[3];
  if (length < 0 || buffer < 0 || buffer >= buffers || offset < 0 ||
      offset + length > lengths[buffer]) {
    return Outside("a view of a text");
  }
  text = absl::string_view(
      static_cast<const char*>(array.buffers[kFirstBuffer + buffer]) + offset,
      length);
  return absl::OkStatus();
}

absl::Status FindTextOf(const ArrowType& type, const ArrowArray& array,
                        int64_t i, absl::string_view& text) {
  switch (type.kind) {
    case Kind::kLargeText:
      return FindText<int64_t>(array, i, text);
    case Kind::kTextView:
      return FindViewed(array, i, text);
    case Kind::kFixedText:
      text = absl::string_view(static_cast<const char*>(array.buffers[1]) +
                                   (array.offset + i) * type.text_bytes,
                               type.text_bytes);
      return absl::OkStatus();
    default:
      return FindText<int32_t>(array, i, text);
  }
}

int64_t IndexAt(Kind kind, const ArrowArray& array, int64_t i) {
  switch (kind) {
    case Kind::kInt8:
      return NumberAt<int8_t>(array, 1, i);
    case Kind::kInt16:
      return NumberAt<int16_t>(array, 1, i);
    case Kind::kInt32:
      return NumberAt<int32_t>(array, 1, i);
    case Kind::kUint8:
      return NumberAt<uint8_t>(array, 1, i);
    case Kind::kUint16:
      return NumberAt<uint16_t>(array, 1, i);
    case Kind::kUint32:
      return NumberAt<uint32_t>(array, 1, i);
    default:
      return NumberAt<int64_t>(array, 1, i);
  }
}

ValueKind ValueKindOf(Kind kind) {
  switch (kind) {
    case Kind::kInt8:
      return ValueKind::kInt8;
    case Kind::kInt16:
      return ValueKind::kInt16;
    case Kind::kInt32:
      return ValueKind::kInt32;
    case Kind::kInt64:
      return ValueKind::kInt64;
    case Kind::kBool:
    case Kind::kUint8:
      return ValueKind::kUint8;
    case Kind::kUint16:
      return ValueKind::kUint16;
    case Kind::kUint32:
      return ValueKind::kUint32;
    case Kind::kUint64:
      return ValueKind::kUint64;
    case Kind::kHalf:
    case Kind::kFloat:
      return ValueKind::kFloat;
    case Kind::kDouble:
    case Kind::kDecimal32:
    case Kind::kDecimal64:
    case Kind::kDecimal128:
      return ValueKind::kDouble;
    default:
      return ValueKind::kText;
  }
}

// Appends a value that lies in the array itself.
absl::Status AppendPlain(const ArrowType& type, const ArrowArray& array,
                         int64_t i, ValueRecordWriter& records) {
  switch (type.kind) {
    case Kind::kBool:
      records.Value<uint8_t>(BitAt(array.buffers[1], array.offset + i));
      break;
    case Kind::kInt8:
    case Kind::kUint8:
      records.Value(NumberAt<uint8_t>(array, 1, i));
      break;
    case Kind::kInt16:
    case Kind::kUint16:
      records.Value(NumberAt<uint16_t>(array, 1, i));
      break;
    case Kind::kInt32:
    case Kind::kUint32:
    case Kind::kFloat:
      records.Value(NumberAt<uint32_t>(array, 1, i));
      break;
    case Kind::kInt64:
    case Kind::kUint64:
    case Kind::kDouble:
      records.Value(NumberAt<uint64_t>(array, 1, i));
      break;
    case Kind::kHalf:
      records.Value(FloatFromFloat16(NumberAt<uint16_t>(array, 1, i)));
      break;
    case Kind::kDecimal32:
      records.Value(FromDecimal(NumberAt<int32_t>(array, 1, i), type.scale));
      break;
    case Kind::kDecimal64:
      records.Value(FromDecimal(NumberAt<int64_t>(array, 1, i), type.scale));
      break;
    case Kind::kDecimal128:
      records.Value(FromDecimal(Decimal128At(array, i), type.scale));
      break;
    default: {
      absl::string_view text;
      RETURN_IF_ERROR(FindTextOf(type, array, i, text));
      records.Text(text);
    }
  }
  return absl::OkStatus();
}

// The values of an array, in a dictionary or not. Borrows both.
class Values {
 public:
  Values(const ArrowType& type, const ArrowArray& array)
      : type_(type), array_(array) {}

  // Sets `is_there` to whether value `i` is no null.
  absl::Status Look(int64_t i, bool& is_there) const {
    is_there = type_.kind != Kind::kNull && !IsNull(array_, i);
    if (!is_there || !type_.index.has_value()) return absl::OkStatus();
    const int64_t index = IndexAt(*type_.index, array_, i);
    if (index < 0 || index >= array_.dictionary->length) {
      return Outside("an index of a dictionary");
    }
    is_there = !IsNull(*array_.dictionary, index);
    return absl::OkStatus();
  }
  // Appends value `i`, which is there.
  absl::Status Append(int64_t i, ValueRecordWriter& records) const {
    if (!type_.index.has_value()) return AppendPlain(type_, array_, i, records);
    return AppendPlain(type_, *array_.dictionary,
                       IndexAt(*type_.index, array_, i), records);
  }

 private:
  const ArrowType& type_;
  const ArrowArray& array_;
};

// The place of a list's values among all values.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
};

absl::Status FindList(const ArrowType& type, const ArrowArray& array,
                      int64_t row, Range& range) {
  switch (type.list) {
    case List::kLargeList:
      range = {.begin = NumberAt<int64_t>(array, 1, row),
               .end = NumberAt<int64_t>(array, 1, row + 1)};
      break;
    case List::kFixedList:
      range = {.begin = (array.offset + row) * type.list_values,
               .end = (array.offset + row + 1) * type.list_values};
      break;
    default:
      range = {.begin = NumberAt<int32_t>(array, 1, row),
               .end = NumberAt<int32_t>(array, 1, row + 1)};
  }
  if (range.begin < 0 || range.begin > range.end ||
      range.end > array.children[0]->length) {
    return Outside("an offset of a list");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AppendColumn(const ArrowType& type, const ArrowArray& array,
                          int64_t row, ValueRecordWriter& records) {
  const bool is_list = type.list != List::kNone;
  const Values values(type, is_list ? *array.children[0] : array);
  Range range = {.begin = row, .end = row + 1};
  if (is_list) {
    range.end = row;
    if (!IsNull(array, row)) {
      RETURN_IF_ERROR(FindList(type, array, row, range));
    }
  }
  int64_t present = 0;
  bool is_there = false;
  for (int64_t i = range.begin; i < range.end; ++i) {
    RETURN_IF_ERROR(values.Look(i, is_there));
    if (is_there) ++present;
  }
  const int64_t count = range.end - range.begin;
  if (count == 0 || (present == 0 && !is_list)) {
    records.Varint(0);
    return absl::OkStatus();
  }
  records.Varint(count);
  records.Kind(ValueKindOf(type.kind), present < count);
  if (present < count) {
    records.Bits(count, [&](uint64_t i) {
      bool is_present = false;
      return values.Look(range.begin + static_cast<int64_t>(i), is_present)
                 .ok() &&
             is_present;
    });
  }
  for (int64_t i = range.begin; i < range.end; ++i) {
    if (present < count) {
      RETURN_IF_ERROR(values.Look(i, is_there));
      if (!is_there) continue;
    }
    RETURN_IF_ERROR(values.Append(i, records));
  }
  return absl::OkStatus();
}

}  // namespace parasol
