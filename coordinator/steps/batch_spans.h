#ifndef PARASOL_COORDINATOR_STEPS_BATCH_SPANS_H_
#define PARASOL_COORDINATOR_STEPS_BATCH_SPANS_H_

#include <cstdint>
#include <map>

namespace parasol {

// A set of batches, kept as spans of neighbours: a few entries for an epoch,
// however many batches it has. Pure.
class BatchSpans {
 public:
  // Adds the batches first, …, first + count - 1.
  void Add(int64_t first, int64_t count = 1);
  // Removes a batch. Returns false if it is not there.
  bool Remove(int64_t batch);
  // Removes the smallest `count` batches, or all if there are fewer, and
  // returns how many it has removed.
  int64_t RemoveSmallest(int64_t count);
  // Removes begin, …, end - 1, and returns how many of them were there.
  int64_t RemoveAll(int64_t begin, int64_t end);
  // Removes end - 1, end - 2, … down to `begin`, up to the first that is not
  // there, and returns how many it has removed.
  int64_t RemoveTail(int64_t begin, int64_t end);

  bool empty() const { return ends_.empty(); }
  // Returns the number of batches.
  int64_t size() const { return size_; }
  // Returns the smallest batch; there is one.
  int64_t smallest() const { return ends_.begin()->first; }
  // Returns the first batch of each span, and the batch behind its last one.
  const std::map<int64_t, int64_t>& ends() const { return ends_; }

 private:
  std::map<int64_t, int64_t> ends_;
  int64_t size_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_STEPS_BATCH_SPANS_H_
