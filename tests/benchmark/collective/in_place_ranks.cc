#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#include "base/log.h"
#include "tests/benchmark/collective/rank_order.h"
#include "tests/benchmark/collective/rank_timing.h"

namespace parasol {
namespace {

constexpr int kSpins = 2000;

// A count of arrivals that all processes see.
struct alignas(64) Arrivals {
  std::atomic<uint64_t> count;
};

// Waits until all ranks have called this as often.
void Meet(Arrivals& arrivals, int ranks, uint64_t& meetings) {
  ++meetings;
  arrivals.count.fetch_add(1);
  for (int spin = 0; arrivals.count < meetings * ranks; ++spin) {
    if (spin > kSpins) sched_yield();
  }
}

void AddAll(float* packs, size_t count, int rank, int ranks) {
  const size_t first = count * rank / ranks;
  const size_t end = count * (rank + 1) / ranks;
  for (int other = 1; other < ranks; ++other) {
    float* const addend = packs + other * count;
    for (size_t i = first; i < end; ++i) packs[i] += addend[i];
  }
  for (int other = 1; other < ranks; ++other) {
    std::copy(packs + first, packs + end, packs + other * count + first);
  }
}

void RunRank(const RankOrder& order, int rank, Arrivals& arrivals,
             float* packs) {
  uint64_t meetings = 0;
  for (const size_t bytes : order.bytes) {
    const size_t count = bytes / sizeof(float);
    const auto reduce = [&] {
      Meet(arrivals, order.ranks, meetings);
      AddAll(packs, count, rank, order.ranks);
      Meet(arrivals, order.ranks, meetings);
    };
    std::fill_n(packs + rank * count, count, ContributionOfRank(rank));
    reduce();
    CheckSums(packs + rank * count, count, order.ranks);
    Meet(arrivals, order.ranks, meetings);
    std::fill_n(packs + rank * count, count, 0);
    TimeRounds(bytes, rank == 0, reduce);
    Meet(arrivals, order.ranks, meetings);
  }
}

void* SharedPages(size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  return memory;
}

}  // namespace

void ReduceInPlace(const RankOrder& order) {
  const size_t most = *std::max_element(order.bytes.begin(), order.bytes.end());
  Arrivals& arrivals = *new (SharedPages(sizeof(Arrivals))) Arrivals();
  float* const packs = static_cast<float*>(SharedPages(most * order.ranks));
  for (int rank = 1; rank < order.ranks; ++rank) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child != 0) continue;
    RunRank(order, rank, arrivals, packs);
    _exit(0);
  }
  RunRank(order, 0, arrivals, packs);
  int status = 0;
  while (wait(&status) > 0) CHECK_EQ(status, 0);
}

}  // namespace parasol
