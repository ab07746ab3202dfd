#ifndef PARASOL_TESTS_BENCHMARK_LINEUP_H_
#define PARASOL_TESTS_BENCHMARK_LINEUP_H_

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "parameters/client/parameter_client.h"
#include "tests/benchmark/contender.h"
#include "tests/benchmark/exchange_lane.h"
#include "tests/benchmark/measurement.h"

namespace parasol {

// Most bytes of a dense variable: all variables of a measurement together.
inline constexpr size_t kMaxVariableBytes = 32 << 20;

// Settings from the command line.
struct Settings {
  MeasurementPlan plan;
  std::vector<std::string> only;       // the contenders; empty: all
  std::vector<size_t> variable_bytes;  // sizes of dense variables
  ParameterClient::Options client;
  size_t rows = 0;         // rows of a sparse table
  size_t growth_rows = 0;  // rows that a sparse table grows to
  size_t adam_elements = 0;

  bool TakesPart(const std::string& contender) const {
    return only.empty() ||
           std::find(only.begin(), only.end(), contender) != only.end();
  }
};

// Returns the number of exchanges of `bytes` that each of `sessions` keeps in
// flight: 8 MiB or 256 exchanges in all sessions together, whichever is less.
// At least two together, so that contenders with one session and with two have
// the same in flight, and at least one in each session.
size_t WindowOf(size_t bytes, size_t sessions);

// Returns an entrant: `contender` with a lane in each of its sessions.
using MakeLane =
    std::function<std::unique_ptr<WorkQueue>(Session&, const Share&)>;
Entrant Enter(Contender contender, size_t exchange_bytes,
              const MakeLane& make_lane, FigureTarget target = {});

// The entrants of a comparison.
class Lineup {
 public:
  explicit Lineup(const Settings& settings) : settings_(settings) {}

  // Adds the entrant that `make` returns. Calls `make`, which starts the
  // server, only if --only does not exclude `contender`.
  void Add(const std::string& contender, const std::function<Entrant()>& make);

  // Measures all entrants; returns nothing if there are none.
  std::vector<Measurement> Measure() const {
    return parasol::Measure(entrants_, settings_.plan);
  }

 private:
  const Settings& settings_;
  std::vector<Entrant> entrants_;
};

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_LINEUP_H_
