#ifndef PARASOL_STORAGE_TIER_LOG_RECORD_H_
#define PARASOL_STORAGE_TIER_LOG_RECORD_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"

namespace parasol {

// The number of a row's place in a log.
using LogPlace = uint64_t;

// A row as a log has it.
struct LoggedRow {
  uint64_t id = 0;
  // The number of the snapshot since which it has been changed; 0: of none.
  uint32_t changed = 0;
  // The update that touched it last, if that is kept.
  int64_t touched = 0;
  const float* elements = nullptr;
};

// The layout of a row in a file that only the process that wrote it reads:
//
//   record := crc changed id [touched] float32{floats}
//   crc    := uint32         crc32c of what follows, and of the place (uint64)
//   changed := uint32, id := uint64, touched := int64, if it is kept
//
// Numbers are in the machine's order.
struct LogRecordFormat {
  size_t floats = 0;
  bool timed = false;  // has the time of the last touch

  size_t record_bytes() const {
    return kFixedBytes + (timed ? sizeof(int64_t) : 0) + floats * sizeof(float);
  }

  // Writes the record of a row that is at `place`.
  void Encode(const LoggedRow& row, LogPlace place, std::byte* record) const;
  // Returns the row of a record, whose elements are in the record; 4-byte
  // aligned.
  LoggedRow Decode(const std::byte* record) const;
  //   DataLoss  the record is not what was written at `place`.
  absl::Status Verify(const std::byte* record, LogPlace place) const;

 private:
  static constexpr size_t kFixedBytes = 2 * sizeof(uint32_t) + sizeof(uint64_t);
};

}  // namespace parasol

#endif  // PARASOL_STORAGE_TIER_LOG_RECORD_H_
