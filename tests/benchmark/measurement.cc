#include "tests/benchmark/measurement.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include "base/clock.h"
#include "tests/benchmark/cpu_use.h"

namespace parasol {
namespace {

// Share of a repetition's time that is spent on pieces that run alone.
constexpr double kAlone = .3;

struct Samples {
  std::vector<double> throughputs;  // one per repetition
  // CPU seconds for one of the amount, and others' share of all cores.
  std::vector<double> cpu;
  std::vector<double> foreign_shares;
  std::vector<double> seconds;  // one per piece that ran alone
};

// Returns the amount done by `end` or little later.
double Work(WorkQueue& lane, size_t window, absl::Time end) {
  Clock& clock = Clock::Real();
  size_t started = 0;
  size_t finished = 0;
  do {
    lane.Start();
    ++started;
    if (started - finished == window) {
      lane.Finish();
      ++finished;
    }
  } while (clock.Now() < end);
  for (; finished < started; ++finished) lane.Finish();
  return lane.amount() * started;
}

void TimePieces(WorkQueue& lane, absl::Duration time,
                std::vector<double>& seconds) {
  Clock& clock = Clock::Real();
  absl::Time now = clock.Now();
  const absl::Time end = now + time;
  while (now < end) {
    lane.Start();
    lane.Finish();
    const absl::Time done = clock.Now();
    seconds.push_back(absl::ToDoubleSeconds(done - now));
    now = done;
  }
}

std::vector<pid_t> ServerOf(const Entrant& entrant) {
  if (entrant.contender.server == nullptr) return {};
  if (entrant.contender.twin == nullptr) {
    return {entrant.contender.server->pid()};
  }
  return {entrant.contender.server->pid(), entrant.contender.twin->pid()};
}

void Repeat(const Entrant& entrant, absl::Duration time, Samples& samples) {
  const std::vector<pid_t> server = ServerOf(entrant);
  const CpuUse before = CpuUse::Now(server);
  const absl::Time start = Clock::Real().Now();
  samples.throughputs.push_back(
      Throughput(entrant.lanes, entrant.window, time * (1 - kAlone)));
  const absl::Duration passed = Clock::Real().Now() - start;
  const CpuUse use = CpuUse::Now(server) - before;
  samples.cpu.push_back(
      absl::ToDoubleSeconds(use.measured) /
      (samples.throughputs.back() * absl::ToDoubleSeconds(passed)));
  samples.foreign_shares.push_back(ForeignShare(use, passed));
  TimePieces(*entrant.lanes[0], time * kAlone, samples.seconds);
}

std::optional<MemoryUse> MemoryOf(const Contender& contender) {
  if (contender.server == nullptr) return std::nullopt;
  return contender.server->memory();
}

}  // namespace

double Throughput(const std::vector<std::unique_ptr<WorkQueue>>& lanes,
                  size_t window, absl::Duration time) {
  const absl::Time start = Clock::Real().Now();
  std::vector<double> amounts(lanes.size());
  std::vector<std::thread> threads;
  for (size_t i = 1; i < lanes.size(); ++i) {
    threads.emplace_back(
        [&, i] { amounts[i] = Work(*lanes[i], window, start + time); });
  }
  double amount = Work(*lanes[0], window, start + time);
  for (std::thread& thread : threads) thread.join();
  for (double part : amounts) amount += part;
  return amount / absl::ToDoubleSeconds(Clock::Real().Now() - start);
}

std::vector<Measurement> Measure(const std::vector<Entrant>& entrants,
                                 const MeasurementPlan& plan) {
  std::vector<Measurement> measurements;
  for (const Entrant& entrant : entrants) {
    measurements.push_back({.contender = entrant.contender.name,
                            .before = MemoryOf(entrant.contender),
                            .target = entrant.target});
    Samples warm_up;
    Repeat(entrant, plan.repetition_time, warm_up);
  }
  std::vector<Samples> samples(entrants.size());
  for (int i = 0; i < plan.repetitions; ++i) {
    for (size_t j = 0; j < entrants.size(); ++j) {
      Repeat(entrants[j], plan.repetition_time, samples[j]);
    }
  }
  for (size_t j = 0; j < entrants.size(); ++j) {
    Measurement& measurement = measurements[j];
    measurement.figure = Quantile(samples[j].throughputs, .5);
    measurement.cpu = Quantile(samples[j].cpu, .5);
    measurement.foreign_share = Quantile(samples[j].foreign_shares, .5);
    measurement.p50 = absl::Seconds(Quantile(samples[j].seconds, .5));
    measurement.p99 = absl::Seconds(Quantile(samples[j].seconds, .99));
    measurement.after = MemoryOf(entrants[j].contender);
  }
  return measurements;
}

double Quantile(std::vector<double> values, double quantile) {
  const auto at = values.begin() + std::lround(quantile * (values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace parasol
