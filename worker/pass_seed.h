#ifndef PARASOL_WORKER_PASS_SEED_H_
#define PARASOL_WORKER_PASS_SEED_H_

#include <cstdint>

#include "ml/initializer/philox.h"

namespace parasol {

// Returns the seed of everything random in one pass (dropout), from the job's
// seed and the pass's identity. Asynchronous training: `pass` is the pass's
// number since worker `who` started. Synchronous training: `pass` is the step
// and `who` the replica, whichever worker computes it.
constexpr uint64_t PassSeed(uint64_t job_seed, uint64_t pass, uint64_t who) {
  const PhiloxCounter bits = Philox4x32(
      {static_cast<uint32_t>(pass), static_cast<uint32_t>(pass >> 32),
       static_cast<uint32_t>(who), static_cast<uint32_t>(who >> 32)},
      {static_cast<uint32_t>(job_seed), static_cast<uint32_t>(job_seed >> 32)});
  return uint64_t{bits[1]} << 32 | bits[0];
}

}  // namespace parasol

#endif  // PARASOL_WORKER_PASS_SEED_H_
