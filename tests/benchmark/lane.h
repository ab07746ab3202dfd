#ifndef PARASOL_TESTS_BENCHMARK_LANE_H_
#define PARASOL_TESTS_BENCHMARK_LANE_H_

namespace parasol {

// Work without end, one piece after the other, done by one thread.
class Lane {
 public:
  virtual ~Lane() = default;

  // Starts the next piece, which others may still be ahead of.
  virtual void Start() = 0;
  // Waits for the oldest piece that is not finished.
  virtual void Finish() = 0;

  // What a piece counts for: bytes, rows, requests.
  virtual double amount() const = 0;
};

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_LANE_H_
