#ifndef PARASOL_TESTS_BENCHMARK_MEASUREMENT_H_
#define PARASOL_TESTS_BENCHMARK_MEASUREMENT_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/benchmark/contender.h"
#include "tests/benchmark/target.h"
#include "tests/benchmark/work_queue.h"

namespace parasol {

struct MeasurementPlan {
  int repetitions = 5;
  absl::Duration repetition_time = absl::Milliseconds(150);
};

// A contender with its work.
struct Entrant {
  Contender contender;
  std::vector<std::unique_ptr<WorkQueue>> lanes = {};
  size_t window = 1;  // pieces in flight in each lane
  FigureTarget target = {};
};

// The results of one entrant.
struct Measurement {
  std::string contender;
  // Median over the repetitions of the amount per second, of all lanes
  // together.
  double figure = 0;
  // Latency of one piece with nothing else in flight: median and 99th
  // percentile.
  absl::Duration p50 = absl::ZeroDuration();
  absl::Duration p99 = absl::ZeroDuration();
  // CPU seconds of this process and the server for one of the amount.
  double cpu = 0;
  // Share of all cores that other programs have taken meanwhile.
  double foreign_share = 0;
  // Memory of the server, before the first piece and at the end.
  std::optional<MemoryUse> before = std::nullopt;
  std::optional<MemoryUse> after = std::nullopt;
  FigureTarget target = {};
};

// Returns the amount of work that `lanes` do per second, with `window` pieces
// in flight in each, measured for `time`.
double Throughput(const std::vector<std::unique_ptr<WorkQueue>>& lanes,
                  size_t window, absl::Duration time);

// Measures all entrants in turn, repetition by repetition, so that other work
// of the machine affects them alike.
std::vector<Measurement> Measure(const std::vector<Entrant>& entrants,
                                 const MeasurementPlan& plan);

// Returns the quantile of `values`, which must not be empty.
double Quantile(std::vector<double> values, double quantile);

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_MEASUREMENT_H_
