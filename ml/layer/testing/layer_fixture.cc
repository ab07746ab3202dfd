#include "ml/layer/testing/layer_fixture.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "gtest/gtest.h"
#include "ml/kernel/pass_argument.h"
#include "ml/kernel/testing/reference.h"
#include "ml/model/places_by_row.h"

namespace parasol {
namespace {

constexpr int64_t kRows = 5;
constexpr int64_t kMostIds = 4;
// Value of row gradients before a pass, which adds to them.
constexpr float kBefore = 0.5;
constexpr uint64_t kSeedOffset = 77;
// Step of central differences: their own error, of its square, stays far below
// float32's.
constexpr double kStep = 1e-6;

std::vector<double> RandomValues(int64_t size, uint32_t seed) {
  return RandomMatrix(1, size, seed).values;
}

void RandomIds(int64_t ids_per_example, uint32_t seed, LayerValues& values) {
  values.offsets = {0};
  for (int64_t i = 0; i < values.examples; ++i) {
    const int64_t any = values.examples == 1 ? 3 : (i * 3) % (kMostIds + 1);
    values.offsets.push_back(values.offsets.back() +
                             (ids_per_example > 0 ? ids_per_example : any));
  }
  const std::vector<double> random =
      RandomValues(2 * values.offsets.back(), seed);
  for (size_t i = 0; i < random.size(); i += 2) {
    values.positions.push_back(
        static_cast<int32_t>((random[i] + 1) / 2 * kRows));
    values.weights.push_back((random[i + 1] + 1) / 2 + 0.25);
  }
}

std::vector<float> Floats(const std::vector<double>& values) {
  return std::vector<float>(values.begin(), values.end());
}

int64_t OutputSize(const Layer& layer, int64_t examples) {
  return examples * ElementsOf(layer.output_shape());
}

double Dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Returns the gradient of Σ r·reference(values) by each element of `at`, which
// is part of `values`.
std::vector<double> Differences(const LayerReference& reference,
                                LayerValues& values, std::vector<double>& at,
                                const std::vector<double>& r) {
  std::vector<double> gradient;
  for (double& element : at) {
    const double original = element;
    element = original + kStep;
    const double above = Dot(r, reference(values));
    element = original - kStep;
    const double below = Dot(r, reference(values));
    element = original;
    gradient.push_back((above - below) / (2 * kStep));
  }
  return gradient;
}

void ExpectNear(absl::Span<const float> got, absl::Span<const double> want,
                double tolerance, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    // A comparison with NaN is false.
    const double allowed = tolerance * (1 + std::abs(want[i]));
    ASSERT_TRUE(std::abs(got[i] - want[i]) <= allowed)
        << what << "[" << i << "] is " << got[i] << ", not " << want[i];
  }
}

std::vector<double> Doubles(const std::vector<float>& values) {
  return std::vector<double>(values.begin(), values.end());
}

// Returns true if a pass has left all elements as they were before, NaN.
bool IsUnwritten(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(),
                     [](float value) { return std::isnan(value); });
}

// The order in which a device adds may change from pass to pass. A layer that
// is frozen writes no gradients of its variables.
void ExpectSame(const LayerResults& got, const LayerResults& want,
                double tolerance) {
  ExpectNear(got.y, Doubles(want.y), tolerance, "again: y");
  for (size_t i = 0; i < want.gradients.size(); ++i) {
    if (IsUnwritten(want.gradients[i]) && IsUnwritten(got.gradients[i])) {
      continue;
    }
    ExpectNear(got.gradients[i], Doubles(want.gradients[i]), tolerance,
               absl::StrCat("again: gradient ", i));
  }
  for (size_t i = 0; i < want.dx.size(); ++i) {
    ExpectNear(got.dx[i], Doubles(want.dx[i]), tolerance,
               absl::StrCat("again: dx[", i, "]"));
  }
  ExpectNear(got.row_gradients, Doubles(want.row_gradients), tolerance,
             "again: rows");
}

}  // namespace

LayerValues RandomLayerValues(const Layer& layer,
                              absl::Span<const LayerInput> inputs,
                              int64_t examples, uint32_t seed) {
  LayerValues values = {.examples = examples};
  uint32_t next = seed * 1000;
  for (const LayerInput& input : inputs) {
    const bool dense = input.kind == LayerInput::Kind::kDense;
    values.inputs.push_back(
        RandomValues(dense ? examples * ElementsOf(input.shape) : 0, next++));
    if (dense) continue;
    values.width = layer.output_shape().back();
    values.rows = RandomValues(kRows * values.width, next++);
    RandomIds(input.ids_per_example, next++, values);
  }
  for (const VariableSpec& variable : layer.variables()) {
    values.variables.push_back(
        RandomValues(ElementsOf(variable.shape), next++));
  }
  return values;
}

// A pass's arrays on the device.
class LayerTest::Memory {
 public:
  Memory(LayerTest& test, const Layer& layer, const LayerValues& values,
         const std::vector<bool>& wanted)
      : test_(test), values_(values) {
    for (size_t i = 0; i < values.inputs.size(); ++i) {
      const std::vector<double>& x = values.inputs[i];
      x_.push_back(x.empty() ? ConstElements()
                             : ConstElements(test.Put(Floats(x))));
      const bool has_gradient = !x.empty() && (wanted.empty() || wanted[i]);
      dx_.push_back(has_gradient ? Elements(Unwritten(x.size())) : Elements());
    }
    for (const std::vector<double>& variable : values.variables) {
      variables_.push_back(test.Put(Floats(variable)));
      gradients_.push_back(Unwritten(variable.size()));
    }
    y_ = Unwritten(OutputSize(layer, values.examples));
    if (!values.offsets.empty()) PutRows();
    seed_.base = test.Put(std::vector<uint64_t>{values.seed - kSeedOffset});
  }

  LayerPass::Forward forward() const {
    return {.x = x_,
            .y = y_,
            .variables = variables_,
            .rows = rows_,
            .training = values_.training,
            .seed = values_.seed,
            .stored_seed = seed_};
  }
  LayerPass::Backward backward(float* dy) const {
    return {.x = x_,
            .y = y_,
            .dy = dy,
            .dx = dx_,
            .variables = variables_,
            .gradients = gradients_,
            .rows = rows_,
            .seed = values_.seed,
            .stored_seed = seed_};
  }

  LayerResults Results(int64_t outputs) const {
    LayerResults results = {.y = test_.Get(y_, outputs)};
    for (size_t i = 0; i < dx_.size(); ++i) {
      results.dx.push_back(
          dx_[i] == nullptr
              ? std::vector<float>()
              : test_.Get(dx_[i].As<float>(), values_.inputs[i].size()));
    }
    for (size_t i = 0; i < gradients_.size(); ++i) {
      results.gradients.push_back(
          test_.Get(gradients_[i], values_.variables[i].size()));
    }
    results.row_gradients = test_.Get(row_gradients_, values_.rows.size());
    for (float& gradient : results.row_gradients) gradient -= kBefore;
    return results;
  }

 private:
  float* Unwritten(int64_t size) {
    return test_.Put(
        std::vector<float>(size, std::numeric_limits<float>::quiet_NaN()));
  }
  void PutRows() {
    row_gradients_ =
        test_.Put(std::vector<float>(values_.rows.size(), kBefore));
    TableRows table = {};
    table.values = test_.Put(Floats(values_.rows));
    table.gradients = row_gradients_;
    table.elements = static_cast<int64_t>(values_.rows.size());
    table.width = static_cast<int32_t>(values_.width);
    places_.Assign(values_.offsets, values_.positions,
                   values_.rows.size() / values_.width);
    const int32_t* const counted_rows = PutInts(places_.counted_rows());
    rows_ = {
        .table = test_.Put(std::vector<TableRows>{table}),
        .offsets = test_.Put(values_.offsets),
        .positions = test_.Put(values_.positions),
        .weights = values_.weights.empty() ? nullptr
                                           : test_.Put(Floats(values_.weights)),
        .by_row = {.num_rows = counted_rows,
                   .rows = counted_rows + 1,
                   .starts = PutInts(places_.starts()),
                   .places = PutInts(places_.places()),
                   .examples = PutInts(places_.examples()),
                   .capacity = static_cast<int64_t>(values_.positions.size())}};
  }
  const int32_t* PutInts(absl::Span<const int32_t> values) {
    if (values.empty()) return nullptr;
    return test_.Put(std::vector<int32_t>(values.begin(), values.end()));
  }

  LayerTest& test_;
  const LayerValues& values_;
  std::vector<ConstElements> x_;
  std::vector<Elements> dx_;
  std::vector<const float*> variables_;
  std::vector<float*> gradients_;
  float* y_ = nullptr;
  StoredSeed seed_ = {.offset = kSeedOffset};
  RowsView rows_;
  PlacesByRow places_;
  float* row_gradients_ = nullptr;
};

LayerResults LayerTest::RunPass(LayerPass& pass, const Layer& layer,
                                const LayerValues& values,
                                const std::vector<double>& dy,
                                const std::vector<bool>& wanted) {
  const Memory memory(*this, layer, values, wanted);
  EXPECT_OK(pass.RunForward(memory.forward()));
  if (!dy.empty()) {
    const LayerPass::Backward backward = memory.backward(Put(Floats(dy)));
    EXPECT_OK(pass.RunVariableGradients(backward));
    EXPECT_OK(pass.RunInputGradients(backward));
    if (layer.KeepsOutputGradient()) {
      EXPECT_EQ(Get(backward.dy.As<float>(), dy.size()), Floats(dy));
    }
  }
  return memory.Results(OutputSize(layer, values.examples));
}

LayerResults LayerTest::RunLayer(const Layer& layer, const LayerValues& values,
                                 const std::vector<double>& dy,
                                 const std::vector<bool>& wanted) {
  auto pass = layer.NewPass(device(), values.examples);
  EXPECT_OK(pass.status());
  if (!pass.ok()) return {};
  return RunPass(**pass, layer, values, dy, wanted);
}

void LayerTest::CheckLayer(const Layer& layer, const LayerValues& values,
                           const LayerReference& reference,
                           Tolerance tolerance) {
  ASSERT_EQ(layer.variable_l2().size(), layer.variables().size());
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<LayerPass> pass,
                       layer.NewPass(device(), values.examples));
  LayerValues at = values;
  at.training = false;
  ExpectNear(RunPass(*pass, layer, at, {}, {}).y, reference(at),
             tolerance.output, "y in evaluation");

  at.training = true;
  const std::vector<double> r =
      RandomValues(OutputSize(layer, values.examples), 4711);
  const LayerResults results = RunPass(*pass, layer, at, r, {});
  ExpectNear(results.y, reference(at), tolerance.output, "y");
  for (size_t i = 0; i < at.inputs.size(); ++i) {
    ExpectNear(results.dx[i], Differences(reference, at, at.inputs[i], r),
               tolerance.gradient, absl::StrCat("dx[", i, "]"));
  }
  for (size_t i = 0; i < at.variables.size(); ++i) {
    if (!layer.variables()[i].trained) continue;
    ExpectNear(results.gradients[i],
               Differences(reference, at, at.variables[i], r),
               tolerance.gradient, layer.variables()[i].name);
  }
  ExpectNear(results.row_gradients, Differences(reference, at, at.rows, r),
             tolerance.gradient, "rows");

  ExpectSame(RunPass(*pass, layer, at, r, {}), results, tolerance.gradient);
  for (size_t i = 0; i < at.inputs.size(); ++i) {
    std::vector<bool> wanted(at.inputs.size(), true);
    wanted[i] = false;
    LayerResults without = results;
    without.dx[i].clear();
    ExpectSame(RunPass(*pass, layer, at, r, wanted), without,
               tolerance.gradient);
  }
}

}  // namespace parasol
