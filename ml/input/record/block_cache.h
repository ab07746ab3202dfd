#ifndef PARASOL_ML_INPUT_RECORD_BLOCK_CACHE_H_
#define PARASOL_ML_INPUT_RECORD_BLOCK_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace parasol {

// A part of a file, in memory, with whole records. Immutable once it is made.
struct RecordBlock {
  struct Place {
    uint32_t offset = 0;  // offset in the block's bytes
    uint32_t length = 0;
  };

  int64_t first_record = 0;
  std::vector<Place> places;  // one for each record
  // Broken records, by their place in `places`, and why; ascending.
  std::vector<std::pair<size_t, std::string>> broken;
  std::unique_ptr<const char[]> memory;
  size_t allocated = 0;     // bytes of the memory
  absl::string_view bytes;  // part of the memory
  size_t file = 0;
  uint64_t offset = 0;       // offset of the bytes in the file
  int64_t lines_before = 0;  // lines of a text before the block

  bool Has(int64_t record) const {
    return record >= first_record &&
           record < first_record + static_cast<int64_t>(places.size());
  }
  absl::string_view operator[](int64_t record) const {
    const Place& place = places[record - first_record];
    return bytes.substr(place.offset, place.length);
  }
  // Returns why a record is broken, or null.
  const std::string* WhyBroken(int64_t record) const;
  size_t memory_bytes() const {
    return allocated + places.size() * sizeof(Place);
  }
};

// The blocks of a set's files that were used lately, up to a number of bytes:
// a clock of one bit. What somebody holds stays until it is dropped.
// Thread-safe; a block that several threads want at a time is loaded once, and
// without the lock.
class BlockCache {
 public:
  // `bytes`: as of KeepAtMost().
  explicit BlockCache(size_t bytes) : most_bytes_(bytes) {}

  // Sets how many bytes are kept, beside what somebody holds.
  void KeepAtMost(size_t bytes);

  // Returns block `number`, which `load` makes if it is not there. Errors come
  // from `load`; a later call loads again.
  absl::StatusOr<std::shared_ptr<const RecordBlock>> Get(
      size_t number, absl::FunctionRef<absl::StatusOr<RecordBlock>()> load);

  // Number of blocks that were loaded so far.
  int64_t loads() const;

 private:
  struct Entry {
    std::shared_ptr<const RecordBlock> block;
    bool is_loading = false;  // somebody makes the block
    bool is_used = false;     // touched since the last turn of the clock
  };

  // Returns the block if it is there; waits while another thread loads it.
  // Null: the caller is to load it.
  std::shared_ptr<const RecordBlock> Find(size_t number);
  void Keep(size_t number, std::shared_ptr<const RecordBlock> block);

  mutable absl::Mutex mu_;
  size_t most_bytes_ ABSL_GUARDED_BY(mu_);
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mu_);  // one for each block
  // Blocks that are there: the first one goes next, unless it was used.
  std::deque<size_t> order_ ABSL_GUARDED_BY(mu_);
  size_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t loads_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_RECORD_BLOCK_CACHE_H_
