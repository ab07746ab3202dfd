#include <array>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "tests/benchmark/worker_process.h"
#include "tests/benchmark/workloads.h"

namespace parasol {
namespace {

constexpr std::array<size_t, 3> kWorkers = {1, 2, 4};
// A process is up and connected by then.
constexpr absl::Duration kWarmUp = absl::Milliseconds(300);
// Medians of the same differ by this on a machine that others use too.
constexpr double kNotFallen = .95;

// Bytes per second of so many workers together.
double Aggregate(const std::string& kind, const ServerProcess& server,
                 const Contents& contents, size_t workers,
                 absl::Duration time) {
  std::vector<WorkerProcess> processes;
  const absl::Time start = Clock::Real().Now() + kWarmUp;
  for (size_t i = 0; i < workers; ++i) {
    processes.emplace_back(WorkOrder{.kind = kind,
                                     .port = server.port(),
                                     .contents = contents,
                                     .worker = i,
                                     .workers = workers,
                                     .start = start,
                                     .time = time});
  }
  double bytes_per_second = 0;
  for (WorkerProcess& process : processes) bytes_per_second += process.Wait();
  return bytes_per_second;
}

std::string NameOf(const std::string& contender, size_t workers) {
  return absl::StrCat(contender, ", ", workers,
                      workers == 1 ? " worker" : " workers");
}

// One server meets all numbers of workers in turn.
std::vector<Measurement> MeasureWorkers(const std::string& contender,
                                        const std::string& kind,
                                        const Contents& contents,
                                        const MeasurementPlan& plan) {
  const ServerProcess server(kind, contents);
  const MemoryUse before = server.memory();
  std::vector<Measurement> measurements;
  std::array<std::vector<double>, kWorkers.size()> figures;
  for (int i = 0; i < plan.repetitions; ++i) {
    for (size_t j = 0; j < kWorkers.size(); ++j) {
      figures[j].push_back(
          Aggregate(kind, server, contents, kWorkers[j], plan.repetition_time));
    }
  }
  for (size_t j = 0; j < kWorkers.size(); ++j) {
    measurements.push_back({.contender = NameOf(contender, kWorkers[j]),
                            .figure = Quantile(figures[j], .5),
                            .before = before,
                            .after = server.memory()});
  }
  return measurements;
}

}  // namespace

void RunWorkers(const Settings& settings, const TakeComparison& take) {
  const Contents contents = {.variables = 32, .elements = 1 << 18};
  EntrantComparison comparison = {.workload = "workers 1 MiB",
                                  .unit = {"GB/s", 1e-9}};
  for (const auto& [contender, kind] :
       {std::pair<std::string, std::string>{"raw TCP", "tcp"},
        {"Parasol", "parasol"}}) {
    if (!settings.TakesPart(contender)) continue;
    for (Measurement& m :
         MeasureWorkers(contender, kind, contents, settings.plan)) {
      comparison.measurements.push_back(std::move(m));
    }
  }
  for (Measurement& m : comparison.measurements) {
    if (m.contender == NameOf("Parasol", 2) ||
        m.contender == NameOf("Parasol", 4)) {
      m.target = FigureTarget::All({{kNotFallen, NameOf("Parasol", 1)}});
    }
  }
  take(std::move(comparison));
}

}  // namespace parasol
