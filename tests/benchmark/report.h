#ifndef PARASOL_TESTS_BENCHMARK_REPORT_H_
#define PARASOL_TESTS_BENCHMARK_REPORT_H_

#include <map>
#include <string>
#include <vector>

#include "tests/benchmark/measurement.h"

namespace parasol {

struct Report {
  std::vector<Measurement> measurements;
  // Of each contender's server at the end.
  std::map<std::string, size_t> server_rss_bytes;
};

// For people: one line per measurement, with its throughput over that of raw
// TCP and of plain gRPC in the same run.
std::string ToTable(const Report& report);

// For programs: the same numbers, in bytes and seconds.
std::string ToJson(const Report& report);

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_REPORT_H_
