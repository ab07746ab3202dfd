#ifndef PARASOL_STORAGE_SHARD_INDEX_H_
#define PARASOL_STORAGE_SHARD_INDEX_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "storage/shard_key.h"

namespace parasol {

// The number of a shard, and of all shards of its run.
struct ShardNumber {
  uint32_t shard = 0;
  uint32_t num_shards = 0;

  bool operator==(const ShardNumber&) const = default;
};

// The place in a shard's journal (storage/journal) from which on a file of the
// shard may lack records. A file keeps it beside its index.
struct JournalPlace {
  uint64_t journal = 0;  // the journal's number
  uint64_t segment = 0;  // number, from 1 on

  bool operator==(const JournalPlace&) const = default;

  std::string Encode() const;
  // Returns what Encode() has written; nullopt for any other bytes.
  static std::optional<JournalPlace> Decode(absl::string_view bytes);
};

// The file that an increment follows, as the manifest lists it. An increment
// keeps it beside its index: with any other file before it, it is of no use.
struct IncrementBase {
  uint64_t bytes = 0;
  uint32_t crc32c = 0;

  bool operator==(const IncrementBase&) const = default;

  std::string Encode() const;
  // Returns what Encode() has written; nullopt for any other bytes.
  static std::optional<IncrementBase> Decode(absl::string_view bytes);
};

// The contents of a shard file: which elements and tables it has. A file keeps
// its index beside its entries, so that a reader knows them without reading
// them.
struct ShardIndex {
  // An elements entry: elements [key.first, key.first + count).
  struct Extent {
    ElementsKey key;
    int64_t count = 0;
    int64_t updates = 0;
  };
  // Properties that all rows entries of a table share.
  struct Table {
    std::string prefix;   // TablePrefix()
    uint32_t floats = 0;  // floats of a row; 0: no rows here
  };

  // The shard that wrote the file; nullopt if the file does not say.
  std::optional<ShardNumber> writer;
  // Entries of the file, each kind in ascending order of the keys.
  std::vector<Extent> extents;
  std::vector<Table> tables;

  // Adds the entry of a file. The header entry, dedup entries, removed ids and
  // counts add nothing.
  //   DataLoss  its key or its value has not the form of any entry.
  absl::Status Add(absl::string_view key, absl::string_view value);

  std::string Encode() const;
  // Returns what Encode() has written; nullopt for any other bytes.
  static std::optional<ShardIndex> Decode(absl::string_view bytes);
};

// The names of the properties of an SST file that hold the index, the place in
// the journal, and an increment's base.
inline constexpr char kIndexProperty[] = "parasol.index";
inline constexpr char kJournalProperty[] = "parasol.journal";
inline constexpr char kIncrementProperty[] = "parasol.increment";

// The bytes in front of an elements entry's floats: its number of updates.
inline constexpr size_t kUpdatesBytes = 8;

}  // namespace parasol

#endif  // PARASOL_STORAGE_SHARD_INDEX_H_
