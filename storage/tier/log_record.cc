#include "storage/tier/log_record.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/crc32c.h"

namespace parasol {
namespace {

constexpr size_t kCrcBytes = sizeof(uint32_t);

uint32_t CrcOf(const std::byte* record, size_t bytes, LogPlace place) {
  const uint32_t crc = Crc32cOf(
      {reinterpret_cast<const char*>(record) + kCrcBytes, bytes - kCrcBytes});
  return ExtendCrc32c(crc,
                      {reinterpret_cast<const char*>(&place), sizeof(place)});
}

template <typename T>
std::byte* Put(const T& value, std::byte* to) {
  std::memcpy(to, &value, sizeof(value));
  return to + sizeof(value);
}

template <typename T>
const std::byte* Get(const std::byte* from, T& value) {
  std::memcpy(&value, from, sizeof(value));
  return from + sizeof(value);
}

}  // namespace

void LogRecordFormat::Encode(const LoggedRow& row, LogPlace place,
                             std::byte* record) const {
  std::byte* next = Put(row.changed, record + kCrcBytes);
  next = Put(row.id, next);
  if (timed) next = Put(row.touched, next);
  std::memcpy(next, row.elements, floats * sizeof(float));
  Put(CrcOf(record, record_bytes(), place), record);
}

LoggedRow LogRecordFormat::Decode(const std::byte* record) const {
  LoggedRow row;
  const std::byte* next = Get(record + kCrcBytes, row.changed);
  next = Get(next, row.id);
  if (timed) next = Get(next, row.touched);
  row.elements = reinterpret_cast<const float*>(next);
  return row;
}

absl::Status LogRecordFormat::Verify(const std::byte* record,
                                     LogPlace place) const {
  uint32_t crc;
  Get(record, crc);
  if (crc == CrcOf(record, record_bytes(), place)) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("the row at place ", place,
                   " of the tier's file is not what was written: the disk is "
                   "damaged; choose another one with --tier_dir"));
}

}  // namespace parasol
