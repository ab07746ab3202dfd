#ifndef PARASOL_ML_INPUT_RECORD_RECORD_READER_H_
#define PARASOL_ML_INPUT_RECORD_RECORD_READER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ml/input/record/block_cache.h"
#include "ml/input/record/records.h"

namespace parasol {

// Reads records one after the other, wherever they are. Borrows them. For one
// thread; others have readers of their own.
class RecordReader {
 public:
  explicit RecordReader(const Records& records);

  // Returns the record's bytes, which are valid until the next call.
  //   DataLoss     the record is broken, or its file has changed since it was
  //                opened: names the file and the offset.
  //   Unavailable  as for StoredFile::Read().
  absl::StatusOr<absl::string_view> Read(int64_t record);

  // Has what Read() will return near: a block in memory, and its first
  // kPrefetchedBytes in the processor's caches.
  static constexpr size_t kPrefetchedBytes = 512;
  void Prefetch(int64_t record);

  // Returns DataLoss: "<path> line <n> at byte <offset>: <what>", or the error
  // of reading it again. The offset is in the unpacked bytes; `inside` is an
  // offset in the record.
  absl::Status Corrupt(int64_t record, size_t inside, absl::string_view what);

 private:
  using Block = std::shared_ptr<const RecordBlock>;

  // A record that is at hand.
  struct Found {
    const RecordBlock* block = nullptr;
    absl::string_view bytes;
    const std::string* broken = nullptr;
  };
  // A block that this reader holds: to ask the cache for each record would have
  // the processors of all readers wait for each other.
  struct Held {
    size_t number = std::numeric_limits<size_t>::max();
    Block block;
  };

  // Returns the record, which stays at hand until kAtHand others are; null: its
  // block can't be read, says `status`.
  const Found* Find(int64_t record, absl::Status& status);
  // Returns the block, which stays until kAtHand others were taken.
  absl::StatusOr<const RecordBlock*> Hold(size_t number);

  const Records& records_;
  // Records that were prefetched or read last, round and round.
  static constexpr size_t kAtHand = 8;
  std::array<int64_t, kAtHand> numbers_;
  std::array<Found, kAtHand> found_;
  size_t next_found_ = 0;
  std::vector<Held> held_;  // each at its number, modulo the size
  std::array<Block, kAtHand> dropped_;
  size_t next_dropped_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_RECORD_RECORD_READER_H_
