#ifndef PARASOL_STORAGE_SHARD_ENTRY_H_
#define PARASOL_STORAGE_SHARD_ENTRY_H_

#include <cstdint>
#include <string>

namespace parasol {

// Which array of a variable: its value, or one of the optimizer's slots.
inline constexpr int kValueArray = 0;  // slot i is array 1 + i

// Which pushes of one worker a shard has applied: see ps/dedup_window.h.
struct DedupEntry {
  uint64_t worker_incarnation = 0;
  std::string window;  // opaque here
};

}  // namespace parasol

#endif  // PARASOL_STORAGE_SHARD_ENTRY_H_
