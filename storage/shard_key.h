#ifndef PARASOL_STORAGE_SHARD_KEY_H_
#define PARASOL_STORAGE_SHARD_KEY_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

// Keys of a shard file; storage/FORMAT.md has their grammar.
namespace parasol {

inline constexpr absl::string_view kHeaderKey = "H";
inline constexpr absl::string_view kHeaderValue = "parasol shard 1";

// Returns the prefix of all keys of one array of one variable; no other key
// starts with it. `array` is 0 to 255.
std::string ArrayPrefix(absl::string_view variable, int array);

struct ElementsKey {
  std::string array_prefix;
  int64_t first = 0;

  std::string Encode() const;
};

// Returns the prefix of all keys of one sparse table; no other key starts with
// it.
std::string TablePrefix(absl::string_view table);

// Key of a batch of a table's rows. Batches are numbered from 0 on in each
// file.
struct RowsKey {
  std::string table_prefix;
  uint64_t batch = 0;

  std::string Encode() const;
};

// Key of a batch of the ids whose rows have gone since the file before, and of
// a batch of counts of ids without a row. Batches are numbered as in RowsKey.
std::string RemovedKey(absl::string_view table, uint64_t batch);
std::string CountsKey(absl::string_view table, uint64_t batch);
// Returns the keys' part in front of the batch, by the prefix of the table's
// rows.
std::string RemovedPrefix(absl::string_view table_prefix);
std::string CountsPrefix(absl::string_view table_prefix);

struct DedupKey {
  uint32_t shard = 0;
  uint32_t num_shards = 0;
  uint64_t worker_incarnation = 0;

  std::string Encode() const;
};

// Return the parsed key; nullopt if the bytes are not a key of that kind.
std::optional<ElementsKey> ParseElementsKey(absl::string_view key);
std::optional<RowsKey> ParseRowsKey(absl::string_view key);
std::optional<DedupKey> ParseDedupKey(absl::string_view key);
// Return true for the key of a batch of removed ids, or of counts.
bool IsRemovedKey(absl::string_view key);
bool IsCountsKey(absl::string_view key);

}  // namespace parasol

#endif  // PARASOL_STORAGE_SHARD_KEY_H_
