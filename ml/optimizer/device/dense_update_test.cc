#include "ml/optimizer/device/dense_update.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/optimizer/assigned/optimizer_of.h"
#include "ml/optimizer/clip.h"
#include "ml/optimizer/testing/plain_table.h"
#include "ml/optimizer/testing/update_cases.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using Gradients = std::vector<std::vector<float>>;  // one for each variable

// The last one takes the rate to 0.
const std::vector<std::string>& Schedules() {
  static const auto* const all = new std::vector<std::string>{
      "",
      "exponential_decay { decay_steps: 2 decay_rate: .5 }",
      "inverse_time_decay { decay_steps: 2 decay_rate: .5 }",
      "piecewise_constant_decay { boundary: 1 value: .1 }",
      "cosine_decay { decay_steps: 5 }",
      "warmup { steps: 2 }",
      "polynomial_decay { decay_steps: 2 end_learning_rate: 0 }"};
  return *all;
}

const std::vector<std::string>& Limits() {
  static const auto* const all = new std::vector<std::string>{
      "", "clipvalue: .3", "clipnorm: 1", "global_clipnorm: 2",
      "clipvalue: .3 clipnorm: 1 global_clipnorm: 1.2"};
  return *all;
}

// Optimizers for rows, too, and for whole variables alone.
const std::vector<std::string>& Optimizers() {
  static const auto* const all = [] {
    auto* const optimizers =
        new std::vector<std::string>(OptimizersWithBitsOfTheCpu());
    optimizers->push_back("lamb { weight_decay: .1 }");
    optimizers->push_back("lamb { exclude_from_layer_adaptation: '' }");
    return optimizers;
  }();
  return *all;
}

Gradients DrawAll(const std::vector<size_t>& sizes, unsigned seed) {
  Gradients gradients;
  for (const size_t size : sizes) gradients.push_back(DrawValues(size, ++seed));
  return gradients;
}

// The bits of a NaN are the machine's choice.
bool IsSame(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

void ExpectSame(const std::vector<float>& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_TRUE(IsSame(got[i], want[i]))
        << "element " << i << ": " << got[i] << " is not " << want[i];
  }
}

// Variables in host memory, clipped and updated one by one.
class PlainVariables {
 public:
  PlainVariables(const job::Optimizer& spec, const Gradients& values)
      : spec_(spec), optimizer_(*MakeVariableOptimizer(spec)) {
    for (const std::vector<float>& value : values) {
      tables_.emplace_back(*optimizer_, value);
    }
  }

  void Update(Gradients gradients, const std::vector<int64_t>& iterations) {
    std::vector<absl::Span<float>> all;
    for (std::vector<float>& gradient : gradients) {
      all.push_back(absl::MakeSpan(gradient));
      if (spec_.has_clipvalue()) ClipByValue(spec_.clipvalue(), all.back());
      if (spec_.has_clipnorm()) ClipByNorm(spec_.clipnorm(), all.back());
    }
    if (spec_.has_global_clipnorm()) {
      ClipByGlobalNorm(spec_.global_clipnorm(), all);
    }
    for (size_t i = 0; i < tables_.size(); ++i) {
      tables_[i].Apply(*optimizer_, iterations[i], gradients[i]);
    }
  }

  const Optimizer& optimizer() const { return *optimizer_; }
  const std::vector<TestTable>& tables() const { return tables_; }

 private:
  const job::Optimizer spec_;
  const std::unique_ptr<const Optimizer> optimizer_;
  std::vector<TestTable> tables_;
};

class DenseUpdateTest : public DeviceTest {
 protected:
  // Variables that start as `values`, in the device's memory and in the host's.
  class Pair {
   public:
    Pair(DenseUpdateTest& test, const std::string& spec,
         const Gradients& values)
        : test_(test), plain_(ParseOptimizer(spec), values) {
      for (const TestTable& table : plain_.tables()) {
        DenseUpdate::Variable variable;
        variable.count = static_cast<int64_t>(table.value.size());
        variable.gradient = test.Put(table.value);
        variable.value = test.Put(table.value);
        for (size_t s = 0; s < table.slots.size(); ++s) {
          variable.slots[s] = test.Put(table.slots[s]);
        }
        variables_.push_back(variable);
      }
      auto update = DenseUpdate::Create(test.device(), plain_.optimizer(),
                                        ParseOptimizer(spec), variables_);
      EXPECT_OK(update);
      update_ = *std::move(update);
    }

    void Update(const Gradients& gradients,
                const std::vector<int64_t>& iterations) {
      for (size_t i = 0; i < gradients.size(); ++i) {
        test_.Set(gradients[i], variables_[i].gradient);
      }
      ASSERT_OK(update_->Apply(iterations));
      plain_.Update(gradients, iterations);
    }
    void Update(const Gradients& gradients, int64_t iterations) {
      Update(gradients, std::vector<int64_t>(gradients.size(), iterations));
    }

    std::vector<float> Value(size_t variable) {
      return test_.Get(variables_[variable].value, variables_[variable].count);
    }
    const std::vector<TestTable>& want() const { return plain_.tables(); }

    void ExpectSameBits() {
      for (size_t i = 0; i < want().size(); ++i) {
        SCOPED_TRACE(absl::StrCat("variable ", i));
        ExpectSame(Value(i), want()[i].value);
        for (size_t s = 0; s < want()[i].slots.size(); ++s) {
          SCOPED_TRACE(absl::StrCat("slot ", s));
          ExpectSame(test_.Get(variables_[i].slots[s], variables_[i].count),
                     want()[i].slots[s]);
        }
      }
    }

   private:
    DenseUpdateTest& test_;
    PlainVariables plain_;
    std::vector<DenseUpdate::Variable> variables_;
    std::unique_ptr<DenseUpdate> update_;
  };

  // Copies `values` to `to` in the device's memory.
  void Set(const std::vector<float>& values, float* to) {
    const Array<float> host = *device().NewHostArray<float>(values.size());
    std::copy(values.begin(), values.end(), host.data());
    ASSERT_OK(device().Copy(Device::Stream::kCompute,
                            absl::Span<const float>(host.span()), to));
    ASSERT_OK(device().Synchronize());
  }
};

TEST_P(DenseUpdateTest, EachOptimizerScheduleAndLimitGivesTheBitsOfTheHost) {
  const std::vector<size_t> sizes = {5, 0, 1, 300};
  for (const std::string& optimizer : Optimizers()) {
    for (const std::string& schedule : Schedules()) {
      for (const std::string& limits : Limits()) {
        const std::string spec = absl::StrCat(
            optimizer, " learning_rate_schedule { ", schedule, " } ", limits);
        SCOPED_TRACE(spec);
        Pair pair(*this, spec, DrawAll(sizes, 0));
        for (int step = 0; step < 3; ++step) {
          pair.Update(DrawAll(sizes, 10 * (step + 1)), step);
        }
        pair.ExpectSameBits();
        if (HasFailure()) return;
      }
    }
  }
}

TEST_P(DenseUpdateTest, TheAverageBesideEachOptimizerHasTheBitsOfTheHost) {
  const std::vector<size_t> sizes = {5, 0, 1, 300, 5000};
  for (const std::string& optimizer : Optimizers()) {
    SCOPED_TRACE(optimizer);
    Pair pair(*this, optimizer + " clipnorm: 1 ema { decay: .75 }",
              DrawAll(sizes, 0));
    for (int step = 0; step < 3; ++step) {
      pair.Update(DrawAll(sizes, 10 * (step + 1)), step);
      pair.ExpectSameBits();
    }
    // Ranges of variables that have had as many updates.
    pair.Update(DrawAll(sizes, 50), {3, 3, 0, 0, 7});
    pair.ExpectSameBits();
  }
}

// Around the ends of chunks, and with more chunks than a sum has lanes.
TEST_P(DenseUpdateTest, LargeVariablesHaveTheBitsOfTheHost) {
  const std::vector<size_t> sizes = {4095, 4096, 4097, 70'001, 1'100'003};
  for (const std::string& limits : Limits()) {
    for (const std::string optimizer : {"adam {} ", "lamb {} "}) {
      SCOPED_TRACE(optimizer + limits);
      Pair pair(*this, optimizer + limits, DrawAll(sizes, 0));
      pair.Update(DrawAll(sizes, 10), 0);
      pair.ExpectSameBits();
    }
  }
}

TEST_P(DenseUpdateTest, MoreVariablesThanASumHasLanesHaveTheBitsOfTheHost) {
  const std::vector<size_t> sizes(300, 2);
  for (const std::string& limits : Limits()) {
    for (const std::string optimizer : {"sgd { momentum: .9 } ", "lamb {} "}) {
      SCOPED_TRACE(optimizer + limits);
      Pair pair(*this, optimizer + limits, DrawAll(sizes, 0));
      pair.Update(DrawAll(sizes, 1000), 0);
      pair.ExpectSameBits();
    }
  }
}

TEST_P(DenseUpdateTest, GradientsThatAreNotFiniteHaveTheBitsOfTheHost) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kLargest = std::numeric_limits<float>::max();
  const std::vector<Gradients> steps = {
      {{kLargest, -kLargest, 0, -0.f}, {1, 2, 3}},
      {{kInf, -1, 0, -0.f}, {1, 2, 3}},
      {{-kInf, kNan, 0, 1e-40f}, {1, 2, 3}}};
  for (const std::string& optimizer : Optimizers()) {
    for (const std::string& limits : Limits()) {
      SCOPED_TRACE(absl::StrCat(optimizer, limits));
      Pair pair(*this, absl::StrCat(optimizer, limits), DrawAll({4, 3}, 0));
      for (size_t step = 0; step < steps.size(); ++step) {
        pair.Update(steps[step], step);
        pair.ExpectSameBits();
      }
    }
  }
}

// A checkpoint may hold variables that have had different numbers of updates.
TEST_P(DenseUpdateTest, EachVariableHasItsOwnNumberOfUpdates) {
  const std::vector<size_t> sizes = {3, 5000, 4, 0, 6};
  for (const std::string& limits : Limits()) {
    for (const std::string optimizer : {"nadam {} ", "lamb {} "}) {
      SCOPED_TRACE(optimizer + limits);
      Pair pair(*this, optimizer + limits, DrawAll(sizes, 0));
      pair.Update(DrawAll(sizes, 10), {4, 4, 0, 0, 9});
      pair.Update(DrawAll(sizes, 20), {5, 5, 1, 1, 10});
      pair.ExpectSameBits();
    }
  }
}

// CUDA's pow() is another function than the host's: four units in the last
// place, and the rule multiplies a difference of two powers by the inverse of
// the rate.
TEST_P(DenseUpdateTest, AnyPowerOfFtrlIsNearTheHosts) {
  const std::vector<size_t> sizes = {300};
  Pair pair(*this, "ftrl { learning_rate: .1 learning_rate_power: -.7 }",
            DrawAll(sizes, 0));
  for (int step = 0; step < 3; ++step) {
    pair.Update(DrawAll(sizes, 10 * (step + 1)), step);
  }
  const std::vector<float> got = pair.Value(0);
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], pair.want()[0].value[i], 1e-5);
  }
}

TEST_P(DenseUpdateTest, NoVariablesAndNoElementsAreNoUpdate) {
  for (const std::string& limits : Limits()) {
    for (const std::string optimizer : {"adam {} ", "lamb {} "}) {
      SCOPED_TRACE(optimizer + limits);
      Pair none(*this, optimizer + limits, {});
      none.Update(Gradients(), 0);
      Pair empty(*this, optimizer + limits, {{}, {}});
      empty.Update({{}, {}}, 0);
      empty.ExpectSameBits();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, DenseUpdateTest, DevicesUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
