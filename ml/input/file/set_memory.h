#ifndef PARASOL_ML_INPUT_FILE_SET_MEMORY_H_
#define PARASOL_ML_INPUT_FILE_SET_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <optional>

namespace parasol {

// How much of a data set is in memory. Users do not choose it; tests do.
struct SetMemory {
  // Most bytes of a set that is in memory as a whole; a larger one stays on the
  // disk. nullopt: MostInMemory() says.
  std::optional<uint64_t> whole = std::nullopt;
  // Bytes of a block, cut behind the record that reaches them.
  size_t block_bytes = 64 << 10;
  // Least bytes of the blocks that are kept for all readers of a set. More are,
  // up to MostInMemory(), if a shuffle buffer needs them.
  size_t cache_bytes = 128 << 20;
  // Records of the set, one behind the other, among which are those that the
  // readers' shuffle buffers have at a time.
  int64_t shuffled = 0;
};

// Returns how many bytes a set that is in memory as a whole may have: small
// ones are, and those that take up to an eighth of the memory that is free now,
// so that the processes of a machine, and what they compute, have room beside
// it.
uint64_t MostInMemory(const SetMemory& memory);

// Returns how many bytes of blocks are kept at least: `cache_bytes`, but not
// more than half of the memory that is free now.
size_t LeastCache(const SetMemory& memory);

// Returns about how many bytes a set of so many takes in memory, as a whole or
// as blocks of files that stay on the disk.
uint64_t MemoryOfSet(const SetMemory& memory, uint64_t bytes);

// Returns true if a set's file number `file`, from 0, keeps a descriptor: a
// quarter of those that the process may have, so that none lacks elsewhere.
bool KeepsDescriptor(size_t file);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FILE_SET_MEMORY_H_
