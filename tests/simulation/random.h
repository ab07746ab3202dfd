#ifndef PARASOL_TESTS_SIMULATION_RANDOM_H_
#define PARASOL_TESTS_SIMULATION_RANDOM_H_

#include <cstdint>

#include "absl/time/time.h"

namespace parasol::simulation {

// Generator of random numbers (SplitMix64): the same on every machine, and
// ready at once, which matters for schedules of half a millisecond.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  // Returns a number in [0, n).
  uint64_t Below(uint64_t n) { return Next() % n; }
  // Returns a number in [low, high].
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Below(high - low + 1));
  }
  absl::Duration Between(absl::Duration low, absl::Duration high) {
    return absl::Microseconds(Between(absl::ToInt64Microseconds(low),
                                      absl::ToInt64Microseconds(high)));
  }
  // Returns true `per_mille` times in a thousand.
  bool Chance(uint64_t per_mille) { return Below(1000) < per_mille; }

 private:
  uint64_t state_;
};

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_RANDOM_H_
