#include "tests/benchmark/measurement.h"

#include <algorithm>

#include "base/clock.h"

namespace parasol {
namespace {

struct Samples {
  std::vector<double> gigabytes_per_second;  // of each repetition
  std::vector<absl::Duration> latencies;     // of each exchange
};

template <typename T>
T Quantile(std::vector<T> values, double quantile) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(quantile * (values.size() - 1))];
}

class Exchanger {
 public:
  Exchanger(ExchangeKind kind, size_t variable)
      : kind_(kind),
        variable_(variable),
        gradient_(kVariableBytes[variable] / sizeof(float), 1e-3f),
        values_(gradient_.size()) {}

  void Exchange(Contender& contender) {
    switch (kind_) {
      case ExchangeKind::kPush:
        return contender.Push(variable_, gradient_);
      case ExchangeKind::kPull:
        return contender.Pull(variable_, absl::MakeSpan(values_));
      case ExchangeKind::kPushPull:
        return contender.PushPull(variable_, gradient_,
                                  absl::MakeSpan(values_));
    }
  }

  // One repetition.
  void Repeat(Contender& contender, absl::Duration time, Samples& samples) {
    Clock& clock = Clock::Real();
    const absl::Time start = clock.Now();
    absl::Time now = start;
    int count = 0;
    while (now - start < time) {
      Exchange(contender);
      const absl::Time done = clock.Now();
      samples.latencies.push_back(done - now);
      now = done;
      ++count;
    }
    samples.gigabytes_per_second.push_back(
        count * static_cast<double>(kVariableBytes[variable_]) /
        absl::ToDoubleSeconds(now - start) / 1e9);
  }

 private:
  const ExchangeKind kind_;
  const size_t variable_;
  std::vector<float> gradient_;
  std::vector<float> values_;
};

}  // namespace

std::string NameOf(ExchangeKind kind) {
  switch (kind) {
    case ExchangeKind::kPush:
      return "push";
    case ExchangeKind::kPull:
      return "pull";
    case ExchangeKind::kPushPull:
      return "push+pull";
  }
  return "";
}

std::vector<Measurement> Measure(
    const std::vector<std::unique_ptr<Contender>>& contenders,
    ExchangeKind kind, size_t variable, const MeasurementPlan& plan) {
  Exchanger exchanger(kind, variable);
  std::vector<Samples> samples(contenders.size());
  for (const auto& contender : contenders) {
    Samples warmup;
    exchanger.Repeat(*contender, plan.repetition_time / 2, warmup);
  }
  for (int i = 0; i < plan.repetitions; ++i) {
    for (size_t j = 0; j < contenders.size(); ++j) {
      exchanger.Repeat(*contenders[j], plan.repetition_time, samples[j]);
    }
  }
  std::vector<Measurement> measurements;
  for (size_t j = 0; j < contenders.size(); ++j) {
    measurements.push_back(
        {.contender = contenders[j]->name(),
         .kind = kind,
         .bytes = kVariableBytes[variable],
         .gigabytes_per_second = Quantile(samples[j].gigabytes_per_second, 0.5),
         .p50 = Quantile(samples[j].latencies, 0.5),
         .p99 = Quantile(samples[j].latencies, 0.99)});
  }
  return measurements;
}

}  // namespace parasol
