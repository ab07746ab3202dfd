#ifndef PARASOL_TESTS_BENCHMARK_REPORT_H_
#define PARASOL_TESTS_BENCHMARK_REPORT_H_

#include <string>
#include <vector>

#include "tests/benchmark/machine.h"
#include "tests/benchmark/measurement.h"

namespace parasol {

// The unit in which figures are written: "GB/s" is 1e-9 bytes per second.
struct Unit {
  const char* name = "";
  double scale = 1;
};

// The measurements of entrants that did the same work.
struct EntrantComparison {
  std::string workload;
  Unit unit;
  std::vector<Measurement> measurements = {};
};

// Returns a table for people: one line per measurement, with its figure divided
// by raw TCP's and by plain gRPC's, the CPU seconds that both processes took
// for one unit (a GB, a thousand requests, …), the share of all cores that
// other programs took ("!" above 10 %), and the target with "met" or "NOT MET".
std::string ToTable(const EntrantComparison& comparison);
// Returns the lines above the table: the machine, and the columns' names.
std::string TableHeader(const Machine& machine);

// Returns the same numbers as JSON for programs, in seconds and bytes, with the
// ratios to all other entrants of a comparison.
std::string ToJson(const Machine& machine,
                   const std::vector<EntrantComparison>& comparisons);

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_REPORT_H_
