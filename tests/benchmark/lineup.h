#ifndef PARASOL_TESTS_BENCHMARK_LINEUP_H_
#define PARASOL_TESTS_BENCHMARK_LINEUP_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "cluster/client/parameter_client.h"
#include "tests/benchmark/contender.h"
#include "tests/benchmark/exchange_lane.h"
#include "tests/benchmark/measurement.h"

namespace parasol {

// The command line's.
struct Settings {
  MeasurementPlan plan;
  std::string only;  // the contender that takes part; empty: all
  ParameterClient::Options client;
  size_t rows = 0;         // of a sparse table
  size_t growth_rows = 0;  // that a sparse table grows to
  size_t adam_elements = 0;

  bool TakesPart(const std::string& contender) const {
    return only.empty() || only == contender;
  }
};

// Exchanges of `bytes` in flight in one of `sessions`: 8 MiB in all of them, or
// 256 exchanges; at least one.
size_t WindowOf(size_t bytes, size_t sessions);

// The contender with a lane in each of its sessions.
using MakeLane = std::function<std::unique_ptr<Lane>(Session&, const Share&)>;
Entrant Enter(Contender contender, size_t exchange_bytes,
              const MakeLane& make_lane, Target target = {});

// Those who take part in a comparison.
class Lineup {
 public:
  explicit Lineup(const Settings& settings) : settings_(settings) {}

  // Calls `make`, which starts the server, unless --only names others.
  void Add(const std::string& contender, const std::function<Entrant()>& make);

  // Nothing, if nobody takes part.
  std::vector<Measurement> Measure() const {
    return parasol::Measure(entrants_, settings_.plan);
  }

 private:
  const Settings& settings_;
  std::vector<Entrant> entrants_;
};

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_LINEUP_H_
