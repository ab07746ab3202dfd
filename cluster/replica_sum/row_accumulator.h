#ifndef PARASOL_CLUSTER_REPLICA_SUM_ROW_ACCUMULATOR_H_
#define PARASOL_CLUSTER_REPLICA_SUM_ROW_ACCUMULATOR_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cluster/replica_sum/held_memory.h"
#include "cluster/rows/row_memory.h"

namespace parasol {

// Gradients of distinct rows of a sparse table.
struct RowGradients {
  std::vector<uint64_t> ids;
  std::vector<float> values;     // one row of elements per id
  std::vector<uint32_t> counts;  // how often each id occurs in examples
};

// The gradients of one synchronous step of a sparse table. They are added in
// the ascending order of their replicas, so that the sums have the same bits
// whatever the order of arrival. A gradient is added at once if all lower
// replicas' are in the sums; otherwise it is held until they are. Not
// thread-safe.
class RowAccumulator {
 public:
  // Counts the sums, and the gradients that are held, in `memory`, which may be
  // null.
  RowAccumulator(size_t width, std::shared_ptr<RowMemory> memory);

  // Returns true if there is memory for the gradients of `count` rows, or if
  // they are the next ones in order.
  bool HasRoom(int replica, size_t count) const;

  // Adds the gradients of one replica, which must not have been added before.
  // `ids`: count uint64, `gradients`: count x width float32, both at any
  // alignment. Gradients of the same id are summed first, in their order.
  // `counts`: how often each id occurs, count uint32 at any alignment; null: as
  // often as it is listed.
  void Add(int replica, const std::byte* ids, const std::byte* gradients,
           size_t count, const std::byte* counts = nullptr);

  // Returns for each row the sum divided by the number of replicas whose
  // gradient touches that row; counts are summed. The rows are in the order in
  // which replicas, ascending, first touch them. The accumulator is empty
  // afterwards.
  RowGradients TakeMeans();

  void Clear();

 private:
  struct Held {
    RowGradients gradients;
    HeldMemory memory;
  };

  size_t BytesOf(size_t rows) const {
    return rows *
           (sizeof(uint64_t) + sizeof(uint32_t) + width_ * sizeof(float));
  }
  // Adds a row and returns its place in `sums_`.
  size_t AddRow(uint64_t id, const float* gradient, uint32_t count);
  void AddToSums(const RowGradients& gradients);

  const size_t width_;
  const std::shared_ptr<RowMemory> memory_;
  // The sums of replicas [0, next_replica_), their rows' places, and how many
  // of these replicas touch each row.
  RowGradients sums_;
  absl::flat_hash_map<uint64_t, size_t> places_;
  std::vector<uint32_t> touched_;
  HeldMemory sums_memory_;
  int next_replica_ = 0;
  std::map<int, Held> held_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_REPLICA_SUM_ROW_ACCUMULATOR_H_
