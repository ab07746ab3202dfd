#include <vector>

#include "base/log.h"
#include "ml/optimizer/optimizer.h"
#include "tests/benchmark/triad.h"
#include "tests/benchmark/workloads.h"

namespace parasol {
namespace {

constexpr char kAdam[] = "adam {}";
// Of gradient, value and two slots, in bytes per element.
constexpr double kStreams = 4 + 3;

struct Arrays {
  explicit Arrays(size_t count)
      : gradient(count, 1e-3f), value(count, 1), first(count), second(count) {}

  std::vector<float> gradient;
  std::vector<float> value;
  std::vector<float> first;
  std::vector<float> second;
};

class ArrayLane : public Lane {
 public:
  explicit ArrayLane(size_t count) : arrays_(count) {}

  void Finish() override {}
  double amount() const override {
    return kStreams * sizeof(float) * arrays_.value.size();
  }

 protected:
  Arrays arrays_;
};

class TriadLane : public ArrayLane {
 public:
  using ArrayLane::ArrayLane;

  void Start() override {
    Triad(arrays_.gradient, absl::MakeSpan(arrays_.value),
          absl::MakeSpan(arrays_.first), absl::MakeSpan(arrays_.second));
  }
};

class AdamLane : public ArrayLane {
 public:
  explicit AdamLane(size_t count) : ArrayLane(count) {
    auto optimizer = MakeOptimizer(OptimizerOf({.optimizer = kAdam}));
    CHECK(optimizer.ok()) << optimizer.status();
    adam_ = *std::move(optimizer);
  }

  void Start() override {
    float* const slots[] = {arrays_.first.data(), arrays_.second.data()};
    adam_->Apply(iterations_++, {.count = arrays_.value.size(),
                                 .gradient = reinterpret_cast<const std::byte*>(
                                     arrays_.gradient.data()),
                                 .value = arrays_.value.data(),
                                 .new_value = arrays_.value.data(),
                                 .slots = slots});
  }

 private:
  std::unique_ptr<const Optimizer> adam_;
  int64_t iterations_ = 0;
};

template <typename KernelLane>
Entrant EnterKernel(const std::string& name, size_t count, Target target = {}) {
  Entrant entrant = {.contender = {.name = name}, .target = std::move(target)};
  entrant.lanes.push_back(std::make_unique<KernelLane>(count));
  return entrant;
}

}  // namespace

void RunAdam(const Settings& settings, const TakeComparison& take) {
  Lineup lineup(settings);
  lineup.Add("triad", [&] {
    return EnterKernel<TriadLane>("triad", settings.adam_elements);
  });
  lineup.Add("Parasol", [&] {
    return EnterKernel<AdamLane>("Parasol", settings.adam_elements,
                                 Target::All({{.7, "triad"}}));
  });
  take({.workload = "Adam alone",
        .unit = {"GB/s", 1e-9},
        .measurements = lineup.Measure()});
}

}  // namespace parasol
