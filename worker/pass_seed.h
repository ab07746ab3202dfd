#ifndef PARASOL_WORKER_PASS_SEED_H_
#define PARASOL_WORKER_PASS_SEED_H_

#include <cstdint>

#include "ml/initializer/philox.h"

namespace parasol {

// What is random in one pass (dropout), of a job's seed and of which pass it
// is: asynchronous, number `pass` of worker `who` since it started;
// synchronous, step `pass` of replica `who`, whichever worker computes it.
constexpr uint64_t PassSeed(uint64_t job_seed, uint64_t pass, uint64_t who) {
  const PhiloxCounter bits = Philox4x32(
      {static_cast<uint32_t>(pass), static_cast<uint32_t>(pass >> 32),
       static_cast<uint32_t>(who), static_cast<uint32_t>(who >> 32)},
      {static_cast<uint32_t>(job_seed), static_cast<uint32_t>(job_seed >> 32)});
  return uint64_t{bits[1]} << 32 | bits[0];
}

}  // namespace parasol

#endif  // PARASOL_WORKER_PASS_SEED_H_
