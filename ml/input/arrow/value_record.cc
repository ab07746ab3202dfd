#include "ml/input/arrow/value_record.h"

#include <cstring>
#include <type_traits>
#include <vector>

#include "absl/base/optimization.h"

namespace parasol {
namespace {

constexpr size_t kFrameBytes = sizeof(uint32_t);
constexpr uint32_t kBrokenRecord = 0xffffffff;

uint32_t LengthAt(const char* frame) {
  uint32_t length;
  std::memcpy(&length, frame, sizeof(length));
  return length;
}

absl::Status NotAsWritten() {
  return absl::DataLossError(
      "the record is not what was written: the folder for temporary files has "
      "damaged it");
}

// Takes a record apart.
class ValueBytes {
 public:
  explicit ValueBytes(absl::string_view record) : rest_(record) {}

  bool is_empty() const { return rest_.empty(); }

  bool Varint(uint64_t& number) {
    number = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      number |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  template <typename Number>
  bool Value(Number& number) {
    if (rest_.size() < sizeof(number)) return false;
    std::memcpy(&number, rest_.data(), sizeof(number));
    rest_.remove_prefix(sizeof(number));
    return true;
  }
  bool Bytes(uint64_t count, absl::string_view& bytes) {
    if (rest_.size() < count) return false;
    bytes = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return true;
  }
  size_t size() const { return rest_.size(); }

 private:
  absl::string_view rest_;
};

template <typename Number>
FieldValue ValueOf(Number number) {
  if constexpr (std::is_same_v<Number, float>) {
    return FieldValue::Real(number);
  } else if constexpr (std::is_same_v<Number, double>) {
    return FieldValue::Double(number);
  } else if constexpr (std::is_signed_v<Number>) {
    return FieldValue::Integer(number);
  } else {
    return FieldValue::Unsigned(number);
  }
}

// Reads `count` values, of which `present`, unless it is empty, has a bit each.
template <typename ReadOne>
bool ReadValues(uint64_t count, absl::string_view present,
                const ReadOne& read_one, std::vector<FieldValue>& values) {
  for (uint64_t i = 0; i < count; ++i) {
    if (!present.empty() &&
        (static_cast<uint8_t>(present[i / 8]) >> (i % 8) & 1) == 0) {
      values.push_back(FieldValue::Missing());
    } else if (!read_one()) {
      return false;
    }
  }
  return true;
}

template <typename Number>
bool ReadNumbers(uint64_t count, absl::string_view present, ValueBytes& record,
                 std::vector<FieldValue>& values) {
  return ReadValues(
      count, present,
      [&] {
        Number number;
        if (!record.Value(number)) return false;
        values.push_back(ValueOf(number));
        return true;
      },
      values);
}

bool ReadTexts(uint64_t count, absl::string_view present, ValueBytes& record,
               std::vector<FieldValue>& values) {
  return ReadValues(
      count, present,
      [&] {
        uint64_t length;
        absl::string_view text;
        if (!record.Varint(length) || !record.Bytes(length, text)) return false;
        values.push_back(FieldValue::Text(text));
        return true;
      },
      values);
}

bool ReadColumn(ValueBytes& record, std::vector<FieldValue>& values) {
  values.clear();
  uint64_t count;
  if (!record.Varint(count)) return false;
  if (count == 0) return true;
  uint8_t kind;
  absl::string_view present;
  if (!record.Value(kind)) return false;
  if ((kind & kSomeMissing) != 0) {
    if (count / 8 > record.size()) return false;
    if (!record.Bytes((count + 7) / 8, present)) return false;
  }
  switch (static_cast<ValueKind>(kind & ~kSomeMissing)) {
    case ValueKind::kInt8:
      return ReadNumbers<int8_t>(count, present, record, values);
    case ValueKind::kInt16:
      return ReadNumbers<int16_t>(count, present, record, values);
    case ValueKind::kInt32:
      return ReadNumbers<int32_t>(count, present, record, values);
    case ValueKind::kInt64:
      return ReadNumbers<int64_t>(count, present, record, values);
    case ValueKind::kUint8:
      return ReadNumbers<uint8_t>(count, present, record, values);
    case ValueKind::kUint16:
      return ReadNumbers<uint16_t>(count, present, record, values);
    case ValueKind::kUint32:
      return ReadNumbers<uint32_t>(count, present, record, values);
    case ValueKind::kUint64:
      return ReadNumbers<uint64_t>(count, present, record, values);
    case ValueKind::kFloat:
      return ReadNumbers<float>(count, present, record, values);
    case ValueKind::kDouble:
      return ReadNumbers<double>(count, present, record, values);
    case ValueKind::kText:
      return ReadTexts(count, present, record, values);
  }
  return false;
}

}  // namespace

absl::StatusOr<std::optional<size_t>> ValueRecordFormat::Begin(
    const std::string& /*path*/, const FilePart& /*part*/) {
  return std::optional<size_t>(0);
}

FoundRecord ValueRecordFormat::Find(const FilePart& part, size_t at) const {
  const size_t rest = part.file_bytes - at;
  const auto broken = [&](size_t length) {
    return FoundRecord{.kind = FoundRecord::Kind::kBroken,
                       .offset = at,
                       .length = length,
                       .next = at + length,
                       .what = "a record that could not be read"};
  };
  if (rest < kFrameBytes) return broken(rest);
  const absl::string_view there = part.From(at);
  if (there.size() < kFrameBytes) {
    return {.kind = FoundRecord::Kind::kCutOff};
  }
  const uint32_t length = LengthAt(there.data());
  if (length == kBrokenRecord) return broken(kFrameBytes);
  if (length > rest - kFrameBytes) return broken(rest);
  return {.kind = FoundRecord::Kind::kWhole,
          .offset = at + kFrameBytes,
          .length = length,
          .next = at + kFrameBytes + length};
}

void ValueRecordWriter::Begin() {
  begin_ = out_.size();
  out_.append(kFrameBytes, '\0');
}

void ValueRecordWriter::End() {
  const size_t length = out_.size() - begin_ - kFrameBytes;
  if (length > kMaxRecordBytes) {
    TakeBack();
    AddBroken();
    return;
  }
  const auto stored = static_cast<uint32_t>(length);
  std::memcpy(out_.data() + begin_, &stored, sizeof(stored));
}

void ValueRecordWriter::TakeBack() { out_.resize(begin_); }

void ValueRecordWriter::AddBroken() { Value(kBrokenRecord); }

void ValueRecordWriter::Varint(uint64_t number) {
  while (number >= 0x80) {
    out_.push_back(static_cast<char>(number | 0x80));
    number >>= 7;
  }
  out_.push_back(static_cast<char>(number));
}

void ValueRecordWriter::Kind(ValueKind kind, bool some_missing) {
  Value(static_cast<uint8_t>(static_cast<uint8_t>(kind) |
                             (some_missing ? kSomeMissing : 0)));
}

void ValueRecordWriter::Text(absl::string_view text) {
  Varint(text.size());
  out_.append(text.data(), text.size());
}

absl::Status ReadValueRecord(absl::string_view record, ColumnValues& values) {
  ValueBytes bytes(record);
  for (std::vector<FieldValue>& column : values) {
    if (ABSL_PREDICT_FALSE(!ReadColumn(bytes, column))) return NotAsWritten();
  }
  return bytes.is_empty() ? absl::OkStatus() : NotAsWritten();
}

}  // namespace parasol
