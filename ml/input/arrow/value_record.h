#ifndef PARASOL_ML_INPUT_ARROW_VALUE_RECORD_H_
#define PARASOL_ML_INPUT_ARROW_VALUE_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ml/input/feature/value.h"
#include "ml/input/record/record_format.h"

namespace parasol {

// Records of columns' values, one behind the other: what files of columns
// become, so that single records can be read in any order. Only this process
// reads what it has written:
//
//   frame  = length:u32 record               the machine's byte order
//          | 0xffffffff                      a record that can't be read
//   record = column *
//   column = count:varint                    0: missing
//          | count:varint kind:u8 [present:u8 ^ ((count + 7) / 8)] value *
//   value  = number | length:varint byte *
//
// Bit 7 of the kind says that some values of a list are missing: bit i of
// `present` is 1 if value i is there, and only those follow.
class ValueRecordFormat final : public RecordFormat {
 public:
  absl::StatusOr<std::optional<size_t>> Begin(const std::string& path,
                                              const FilePart& part) override;
  FoundRecord Find(const FilePart& part, size_t at) const override;
};

// The kinds of a column's values. Each number is stored in its own size.
enum class ValueKind : uint8_t {
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kFloat,
  kDouble,
  kText,
};
inline constexpr uint8_t kSomeMissing = 0x80;

// Writes frames at the end of a text. Not thread-safe.
class ValueRecordWriter {
 public:
  // `out` outlives the writer.
  explicit ValueRecordWriter(std::string& out) : out_(out) {}

  // Begins a record, whose columns follow, and ends it, or takes it back.
  void Begin();
  void End();
  void TakeBack();
  // Writes a record that can't be read.
  void AddBroken();

  // Writes a number of values or bytes.
  void Varint(uint64_t number);
  void Kind(ValueKind kind, bool some_missing);
  template <typename Number>
  void Value(Number number) {
    out_.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  void Text(absl::string_view text);
  // Writes `count` bits, for `is_present` of each number below it.
  template <typename IsPresent>
  void Bits(uint64_t count, const IsPresent& is_present) {
    for (uint64_t first = 0; first < count; first += 8) {
      uint8_t bits = 0;
      for (uint64_t i = first; i < count && i < first + 8; ++i) {
        if (is_present(i)) bits |= static_cast<uint8_t>(1u << (i - first));
      }
      Value(bits);
    }
  }

 private:
  std::string& out_;
  size_t begin_ = 0;  // begin of the record's frame
};

// Replaces `values`, one list for each of a record's columns, by the
// columns of `record`, the bytes inside a frame, which texts borrow.
//   DataLoss  they are not what ValueRecordWriter has written.
absl::Status ReadValueRecord(absl::string_view record, ColumnValues& values);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_ARROW_VALUE_RECORD_H_
