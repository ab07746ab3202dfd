#ifndef PARASOL_TESTS_BENCHMARK_COLLECTIVE_RANK_TIMING_H_
#define PARASOL_TESTS_BENCHMARK_COLLECTIVE_RANK_TIMING_H_

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

// How every contender times its all-reduces. Knows nothing of the project: the
// programs of peers include it too.
namespace parasol {

// Returns how often a pack of so many bytes is reduced: the same at all ranks.
inline int RoundsOf(size_t bytes) {
  const size_t fits = (size_t{512} << 20) / std::max<size_t>(bytes, 1);
  return static_cast<int>(std::clamp<size_t>(fits, 12, 1000));
}

// Returns what rank `rank` contributes to each element.
inline float ContributionOfRank(int rank) { return 1.0f + rank; }

// Ends the process unless the sums of `ranks` contributions are right.
inline void CheckSums(const float* sums, size_t count, int ranks) {
  const float want = ranks * (ranks + 1) / 2;
  for (size_t i = 0; i < count; ++i) {
    if (sums[i] == want) continue;
    std::fprintf(stderr, "element %zu is %f, must be %f\n", i, sums[i], want);
    std::abort();
  }
}

// Calls `reduce` often and prints the pack's bytes and the median of its times
// in seconds, if `prints`.
template <typename Reduce>
void TimeRounds(size_t bytes, bool prints, const Reduce& reduce) {
  using Clock = std::chrono::steady_clock;
  const int rounds = RoundsOf(bytes);
  for (int i = 0; i < 2 + rounds / 10; ++i) reduce();
  std::vector<double> seconds;
  for (int i = 0; i < rounds; ++i) {
    const Clock::time_point start = Clock::now();
    reduce();
    seconds.push_back(
        std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + rounds / 2,
                   seconds.end());
  if (!prints) return;
  std::printf("%zu %.9f\n", bytes, seconds[rounds / 2]);
  std::fflush(stdout);
}

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_COLLECTIVE_RANK_TIMING_H_
