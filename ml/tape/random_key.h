#ifndef PARASOL_ML_TAPE_RANDOM_KEY_H_
#define PARASOL_ML_TAPE_RANDOM_KEY_H_

#include <cstdint>

namespace parasol {

// The name of a random draw: equal keys draw equal numbers, on every machine,
// and different ones numbers that have nothing to do with each other. `count`
// tells the draws of one replica's step apart.
struct RandomKey {
  uint64_t seed = 0;
  uint64_t step = 0;
  uint32_t replica = 0;
  uint32_t count = 0;
};

}  // namespace parasol

#endif  // PARASOL_ML_TAPE_RANDOM_KEY_H_
