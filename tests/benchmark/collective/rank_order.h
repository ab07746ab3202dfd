#ifndef PARASOL_TESTS_BENCHMARK_COLLECTIVE_RANK_ORDER_H_
#define PARASOL_TESTS_BENCHMARK_COLLECTIVE_RANK_ORDER_H_

#include <cstddef>
#include <string>
#include <vector>

namespace parasol {

// An order to one process of a contender: to reduce packs of these sizes with
// the others, and as rank 0 to print the times.
struct RankOrder {
  int rank = 0;
  int ranks = 1;
  // A folder through which ranks find each other.
  std::string directory;
  std::vector<size_t> bytes;
  // The address at which the others reach Parasol's ranks.
  std::string host = "127.0.0.1";
};

// Writes `text` as the file that the rank is found by.
void Publish(const RankOrder& order, const std::string& text);
// Returns what rank `rank` has published; waits for it.
std::string AwaitPublished(const RankOrder& order, int rank);

// The contenders. Each ends the process with a message if something fails.

// Sums in shared memory; `in_place`: they take the place of the contributions,
// in memory that the library has given. Otherwise both are ordinary memory.
void ReduceShared(const RankOrder& order, bool in_place);
// Sums over sockets: as AUTO chooses, packs of every size by owner slices, or
// as AUTO chooses with pieces between ranks of a machine in memory that both
// see.
enum class SocketSums { kChosen, kOwnerSlices, kLanes };
void ReduceOverSockets(const RankOrder& order, SocketSums sums);
// A plain ring over loopback sockets: what a CPU that sends, receives and adds
// has to do at least.
void ReduceInRing(const RankOrder& order);
// Each of `order.ranks` processes, which this call starts, adds its part of all
// packs in place, in memory that all see: what memory and caches have to do at
// least.
void ReduceInPlace(const RankOrder& order);

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_COLLECTIVE_RANK_ORDER_H_
