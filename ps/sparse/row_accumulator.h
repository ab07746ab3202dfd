#ifndef PARASOL_PS_SPARSE_ROW_ACCUMULATOR_H_
#define PARASOL_PS_SPARSE_ROW_ACCUMULATOR_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace parasol {

// Gradients of distinct rows of a sparse table.
struct RowGradients {
  std::vector<uint64_t> ids;
  std::vector<float> values;  // one row of elements per id
};

// The gradients of one synchronous step of a sparse table. They are held until
// the step is complete, then added in the ascending order of their replicas, so
// that the sums have the same bits whatever the order of arrival. Not
// thread-safe.
class RowAccumulator {
 public:
  explicit RowAccumulator(size_t width) : width_(width) {}

  // Adds the gradients of one replica, which must not have been added before.
  // `ids`: count uint64, `gradients`: count x width float32, both at any
  // alignment. Gradients of the same id are summed first, in their order.
  void Add(int replica, const std::byte* ids, const std::byte* gradients,
           size_t count);

  // Returns for each row the sum divided by the number of replicas whose
  // gradient touches that row. The rows are in the order in which replicas,
  // ascending, first touch them. The accumulator is empty afterwards.
  RowGradients TakeMeans();

  void Clear() { held_.clear(); }

 private:
  const size_t width_;
  std::map<int, RowGradients> held_;
};

}  // namespace parasol

#endif  // PARASOL_PS_SPARSE_ROW_ACCUMULATOR_H_
