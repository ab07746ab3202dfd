#include <memory>
#include <vector>

#include "base/log.h"
#include "ml/optimizer/optimizer.h"
#include "tests/benchmark/triad.h"
#include "tests/benchmark/workloads.h"

namespace parasol {
namespace {

constexpr char kAdam[] = "adam {}";
// Arrays that an update reads (gradient, value, two slots) and writes (value,
// two slots).
constexpr double kStreams = 4 + 3;

// Starts a cache line, as a ps's arrays do: a vector register that is stored
// over the end of one takes twice the time.
class Array {
 public:
  Array(size_t count, float value)
      : memory_(count + kLine / sizeof(float), value), size_(count) {}

  absl::Span<float> span() {
    void* first = memory_.data();
    size_t space = memory_.size() * sizeof(float);
    std::align(kLine, size_ * sizeof(float), first, space);
    return {static_cast<float*>(first), size_};
  }

 private:
  static constexpr size_t kLine = 64;

  std::vector<float> memory_;
  const size_t size_;
};

struct Arrays {
  explicit Arrays(size_t count)
      : gradient(count, 1e-3f),
        value(count, 1),
        first(count, 0),
        second(count, 0) {}

  Array gradient;
  Array value;
  Array first;
  Array second;
};

class ArrayLane : public WorkQueue {
 public:
  explicit ArrayLane(size_t count) : count_(count), arrays_(count) {}

  void Finish() override {}
  double amount() const override { return kStreams * sizeof(float) * count_; }

 protected:
  const size_t count_;
  Arrays arrays_;
};

class TriadLane : public ArrayLane {
 public:
  using ArrayLane::ArrayLane;

  void Start() override {
    Triad(arrays_.gradient.span(), arrays_.value.span(), arrays_.first.span(),
          arrays_.second.span());
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
    float* const value = arrays_.value.span().data();
    float* const slots[] = {arrays_.first.span().data(),
                            arrays_.second.span().data()};
    adam_->Apply(iterations_++, {.count = count_,
                                 .gradient = reinterpret_cast<const std::byte*>(
                                     arrays_.gradient.span().data()),
                                 .value = value,
                                 .new_value = value,
                                 .slots = slots});
  }

 private:
  std::unique_ptr<const Optimizer> adam_;
  int64_t iterations_ = 0;
};

template <typename KernelLane>
Entrant EnterKernel(const std::string& name, size_t count,
                    FigureTarget target = {}) {
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
                                 FigureTarget::All({{.7, "triad"}}));
  });
  take({.workload = "Adam alone",
        .unit = {"GB/s", 1e-9},
        .measurements = lineup.Measure()});
}

}  // namespace parasol
