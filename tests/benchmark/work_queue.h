#ifndef PARASOL_TESTS_BENCHMARK_WORK_QUEUE_H_
#define PARASOL_TESTS_BENCHMARK_WORK_QUEUE_H_

namespace parasol {

// Endless work of one thread, one piece after the other.
class WorkQueue {
 public:
  virtual ~WorkQueue() = default;

  // Starts the next piece; earlier pieces may not be finished yet.
  virtual void Start() = 0;
  // Waits for the oldest piece that is not finished.
  virtual void Finish() = 0;

  // Returns the amount of work in one piece: bytes, rows or requests.
  virtual double amount() const = 0;
};

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_WORK_QUEUE_H_
