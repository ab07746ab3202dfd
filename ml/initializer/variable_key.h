#ifndef PARASOL_ML_INITIALIZER_VARIABLE_KEY_H_
#define PARASOL_ML_INITIALIZER_VARIABLE_KEY_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "ml/initializer/philox.h"

namespace parasol {

// The finalizer of SplitMix64: a bijection that spreads each bit.
inline uint64_t SplitMix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Returns the key of the random bits of one variable or table, the same in
// every process and on every machine. A change of this function changes every
// job's initial values.
inline PhiloxKey VariableKey(uint64_t seed, absl::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : name) {
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  }
  const uint64_t key = SplitMix(seed ^ SplitMix(hash));
  return {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)};
}

}  // namespace parasol

#endif  // PARASOL_ML_INITIALIZER_VARIABLE_KEY_H_
