#ifndef PARASOL_TESTS_BENCHMARK_MEASUREMENT_H_
#define PARASOL_TESTS_BENCHMARK_MEASUREMENT_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/benchmark/contender.h"

namespace parasol {

enum class ExchangeKind { kPush, kPull, kPushPull };
std::string NameOf(ExchangeKind kind);

// What one contender achieved with exchanges of one kind and variable.
struct Measurement {
  std::string contender;
  ExchangeKind kind = ExchangeKind::kPush;
  size_t bytes = 0;
  // Median over the repetitions, of a tensor's bytes, once for push and pull.
  double gigabytes_per_second = 0;
  absl::Duration p50;
  absl::Duration p99;
};

struct MeasurementPlan {
  int repetitions = 7;
  absl::Duration repetition_time = absl::Milliseconds(200);
};

// Measures all contenders in turn, repetition by repetition, so that what else
// the machine does meets them alike. One exchange at a time.
std::vector<Measurement> Measure(
    const std::vector<std::unique_ptr<Contender>>& contenders,
    ExchangeKind kind, size_t variable, const MeasurementPlan& plan);

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_MEASUREMENT_H_
