#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "tests/benchmark/contents.h"
#include "tests/benchmark/exchange_lane.h"
#include "tests/benchmark/parasol_contender.h"
#include "tests/benchmark/tcp_contender.h"
#include "tests/benchmark/workloads.h"

namespace parasol {
namespace {

constexpr Unit kMillionRows = {"M rows/s", 1e-6};
constexpr char kAdagrad[] = "adagrad { learning_rate: 0.01 }";

struct SparseWorkload {
  std::string name;
  Contents contents;
  Direction direction;
  FigureTarget target;
};

// What must be reached is given in rows per second on a machine that is quiet,
// with the floor beside it: on a slower one the floor's share counts.
std::vector<SparseWorkload> SparseWorkloads() {
  const Contents narrow = {.row_width = 16};
  const Contents narrow_adagrad = {.row_width = 16, .optimizer = kAdagrad};
  const Contents wide = {.row_width = 64};
  return {{"sparse push", narrow, Direction::kPush,
           FigureTarget::Any({{15e6}, {.42, "raw TCP"}})},
          {"Adagrad push", narrow_adagrad, Direction::kPush,
           FigureTarget::Any({{10e6}, {.42, "raw TCP"}})},
          {"sparse pull", narrow, Direction::kPull,
           FigureTarget::Any({{15e6}, {.52, "raw TCP"}})},
          {"push x 64", wide, Direction::kPush,
           FigureTarget::Any({{6e6}, {.66, "raw TCP"}})},
          {"pull x 64", wide, Direction::kPull,
           FigureTarget::Any({{6e6}, {.66, "raw TCP"}})},
          {"push+pull x 64", wide, Direction::kPushPull,
           FigureTarget::Any({{4.5e6}, {.66, "raw TCP"}})}};
}

size_t RequestBytes(const Contents& contents) {
  return kRowsPerRequest *
         (sizeof(uint64_t) + contents.row_width * sizeof(float));
}

// Seconds of each request that adds rows until there are so many.
std::vector<double> Grow(WorkQueue& lane, size_t rows) {
  std::vector<double> seconds;
  for (size_t added = 0; added < rows; added += kRowsPerRequest) {
    const absl::Time start = Clock::Real().Now();
    lane.Start();
    lane.Finish();
    seconds.push_back(absl::ToDoubleSeconds(Clock::Real().Now() - start));
  }
  return seconds;
}

// Each repetition is a server of its own.
Measurement MeasureGrowth(const std::function<Contender()>& make,
                          const Contents& contents, const Settings& settings) {
  Measurement measurement;
  std::vector<double> longest;
  std::vector<double> all;
  for (int i = 0; i < settings.plan.repetitions; ++i) {
    const Contender contender = make();
    measurement.contender = contender.name;
    measurement.before = contender.server->memory();
    const auto lane = MakeGrowthLane(*contender.sessions[0], contents);
    const std::vector<double> seconds = Grow(*lane, settings.growth_rows);
    measurement.after = contender.server->memory();
    longest.push_back(*std::max_element(seconds.begin(), seconds.end()));
    std::copy(seconds.begin(), seconds.end(), std::back_inserter(all));
  }
  measurement.figure = Quantile(longest, .5);
  measurement.p50 = absl::Seconds(Quantile(all, .5));
  measurement.p99 = absl::Seconds(Quantile(all, .99));
  return measurement;
}

}  // namespace

void RunSparse(const Settings& settings, const TakeComparison& take) {
  for (const SparseWorkload& workload : SparseWorkloads()) {
    const Contents& contents = workload.contents;
    const MakeLane make_lane = [&](Session& session, const Share& share) {
      return MakeRowLane(session, contents, workload.direction, share,
                         settings.rows);
    };
    Lineup lineup(settings);
    const auto add = [&](const std::string& name, RowStore store) {
      lineup.Add(name, [&] {
        return Enter(MakeTcpContender(name, contents, 2, store),
                     RequestBytes(contents), make_lane);
      });
    };
    add("raw TCP", RowStore::kOpenAddressing);
    add("raw TCP, unordered_map", RowStore::kUnorderedMap);
    lineup.Add("Parasol", [&] {
      return Enter(MakeParasolContender("Parasol", contents, settings.client),
                   RequestBytes(contents), make_lane, workload.target);
    });
    lineup.Add(kOneMachine, [&] {
      ParameterClient::Options options = settings.client;
      options.shared_memory = true;
      return Enter(MakeParasolContender(kOneMachine, contents, options),
                   RequestBytes(contents), make_lane);
    });
    take({.workload = workload.name,
          .unit = kMillionRows,
          .measurements = lineup.Measure()});
  }
}

void RunGrowth(const Settings& settings, const TakeComparison& take) {
  const Contents contents = {.row_width = 16};
  EntrantComparison comparison = {
      .workload = absl::StrCat("growth to ", settings.growth_rows / 1000, "k"),
      .unit = {"ms max", 1e3}};
  if (settings.TakesPart("raw TCP, 1 stream")) {
    comparison.measurements.push_back(MeasureGrowth(
        [&] { return MakeTcpContender("raw TCP, 1 stream", contents, 1); },
        contents, settings));
  }
  if (settings.TakesPart("Parasol")) {
    comparison.measurements.push_back(MeasureGrowth(
        [&] {
          return MakeParasolContender("Parasol", contents, settings.client);
        },
        contents, settings));
    comparison.measurements.back().target = FigureTarget::AtMost(.05);
  }
  take(std::move(comparison));
}

}  // namespace parasol
