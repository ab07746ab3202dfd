// lstm and gru beside plain loops. reference_test.cc has Keras's results.

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/layer/sequence/gru.h"
#include "ml/layer/sequence/lstm.h"
#include "ml/layer/testing/layer_fixture.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;
using Numbers = std::vector<double>;

constexpr int64_t kSteps = 4;
constexpr int64_t kChannels = 3;
constexpr int64_t kUnits = 5;

double SigmoidOf(double x) { return 1 / (1 + std::exp(-x)); }

// A row times a matrix [size of the row, columns], plus a bias or nothing.
Numbers RowProduct(const double* row, int64_t size, const Numbers& matrix,
                   const double* bias) {
  const int64_t columns = static_cast<int64_t>(matrix.size()) / size;
  Numbers y(columns);
  for (int64_t j = 0; j < columns; ++j) {
    if (bias != nullptr) y[j] = bias[j];
    for (int64_t i = 0; i < size; ++i) y[j] += row[i] * matrix[i * columns + j];
  }
  return y;
}

// A cell's step: from the inputs' part, the recurrent part, h and c.
using Cell = void (*)(const Numbers& x, const Numbers& r, Numbers& h,
                      Numbers& c);

void LstmCellStep(const Numbers& x, const Numbers& r, Numbers& h, Numbers& c) {
  for (int64_t u = 0; u < kUnits; ++u) {
    const auto at = [&](int64_t gate) {
      return x[gate * kUnits + u] + r[gate * kUnits + u];
    };
    c[u] = SigmoidOf(at(1)) * c[u] + SigmoidOf(at(0)) * std::tanh(at(2));
    h[u] = SigmoidOf(at(3)) * std::tanh(c[u]);
  }
}

void GruCellStep(const Numbers& x, const Numbers& r, Numbers& h, Numbers&) {
  for (int64_t u = 0; u < kUnits; ++u) {
    const double z = SigmoidOf(x[u] + r[u]);
    const double reset = SigmoidOf(x[kUnits + u] + r[kUnits + u]);
    const double candidate =
        std::tanh(x[2 * kUnits + u] + reset * r[2 * kUnits + u]);
    h[u] = z * h[u] + (1 - z) * candidate;
  }
}

struct RecurrentCase {
  Cell cell = LstmCellStep;
  bool has_bias = true;
  bool return_sequences = true;
  bool go_backwards = false;
  job::Bidirectional::Merge merge = job::Bidirectional::ONE_DIRECTION;
  bool masked = false;

  std::string Text() const {
    const auto boolean = [](const char* name, bool value) {
      return std::string(name) + (value ? ": true " : ": false ");
    };
    return "units: 5 " + boolean("use_bias", has_bias) +
           boolean("return_sequences", return_sequences) +
           boolean("go_backwards", go_backwards) +
           "bidirectional: " + job::Bidirectional::Merge_Name(merge);
  }
};

// The outputs of all steps of one example, in the order of the steps.
std::vector<Numbers> Run(const RecurrentCase& c, const LayerValues& v,
                         int64_t example, size_t first_variable,
                         bool backwards) {
  const Numbers* const variables = &v.variables[first_variable];
  const double* bias = c.has_bias ? variables[2].data() : nullptr;
  const bool is_gru = c.cell == GruCellStep;
  const double* recurrent_bias =
      is_gru && c.has_bias ? bias + 3 * kUnits : nullptr;
  Numbers h(kUnits), state(kUnits);
  std::vector<Numbers> outputs;
  for (int64_t step = 0; step < kSteps; ++step) {
    const int64_t place =
        example * kSteps + (backwards ? kSteps - 1 - step : step);
    if (!c.masked || v.inputs[1][place] > .5) {
      c.cell(RowProduct(&v.inputs[0][place * kChannels], kChannels,
                        variables[0], bias),
             RowProduct(h.data(), kUnits, variables[1], recurrent_bias), h,
             state);
    }
    outputs.push_back(h);
  }
  return outputs;
}

void AppendMerged(job::Bidirectional::Merge merge, const Numbers& a,
                  const Numbers& b, Numbers& y) {
  if (merge == job::Bidirectional::CONCAT) {
    y.insert(y.end(), a.begin(), a.end());
    y.insert(y.end(), b.begin(), b.end());
    return;
  }
  for (int64_t u = 0; u < kUnits; ++u) {
    y.push_back(merge == job::Bidirectional::MUL   ? a[u] * b[u]
                : merge == job::Bidirectional::SUM ? a[u] + b[u]
                                                   : (a[u] + b[u]) / 2);
  }
}

Numbers RecurrentReference(const RecurrentCase& c, const LayerValues& v) {
  Numbers y;
  for (int64_t n = 0; n < v.examples; ++n) {
    const std::vector<Numbers> a = Run(c, v, n, 0, c.go_backwards);
    const bool has_two = c.merge != job::Bidirectional::ONE_DIRECTION;
    const std::vector<Numbers> b =
        has_two ? Run(c, v, n, c.has_bias ? 3 : 2, true) : a;
    for (int64_t step = c.return_sequences ? 0 : kSteps - 1; step < kSteps;
         ++step) {
      if (has_two) {
        // The step of the second direction that reads the same numbers.
        const int64_t same = c.return_sequences ? kSteps - 1 - step : step;
        AppendMerged(c.merge, a[step], b[same], y);
      } else {
        y.insert(y.end(), a[step].begin(), a[step].end());
      }
    }
  }
  return y;
}

absl::StatusOr<std::unique_ptr<const Layer>> MakeRecurrentOf(
    const RecurrentCase& c, const std::vector<LayerInput>& inputs) {
  job::Layer layer;
  const std::string kind = c.cell == GruCellStep ? "gru" : "lstm";
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      kind + " { " + c.Text() + " }", &layer));
  return c.cell == GruCellStep ? MakeGru(layer.gru(), inputs)
                               : MakeLstm(layer.lstm(), inputs);
}

std::vector<RecurrentCase> RecurrentCases() {
  using Merge = job::Bidirectional;
  std::vector<RecurrentCase> cases;
  for (const Cell cell : {&LstmCellStep, &GruCellStep}) {
    cases.push_back({.cell = cell});
    cases.push_back({.cell = cell, .has_bias = false});
    cases.push_back({.cell = cell, .return_sequences = false});
    cases.push_back({.cell = cell, .go_backwards = true});
    cases.push_back(
        {.cell = cell, .return_sequences = false, .go_backwards = true});
    cases.push_back({.cell = cell, .masked = true});
    cases.push_back({.cell = cell, .return_sequences = false, .masked = true});
    for (const auto merge :
         {Merge::CONCAT, Merge::SUM, Merge::MUL, Merge::AVE}) {
      cases.push_back({.cell = cell, .merge = merge});
      cases.push_back(
          {.cell = cell, .return_sequences = false, .merge = merge});
    }
    cases.push_back({.cell = cell, .merge = Merge::CONCAT, .masked = true});
    cases.push_back({.cell = cell, .has_bias = false, .merge = Merge::SUM});
  }
  return cases;
}

class RecurrentTest : public LayerTest {};

TEST_P(RecurrentTest, IsTheReferenceInAllForms) {
  for (const RecurrentCase& c : RecurrentCases()) {
    SCOPED_TRACE((c.cell == GruCellStep ? "gru " : "lstm ") + c.Text() +
                 (c.masked ? " masked" : ""));
    std::vector<LayerInput> inputs = {{.shape = {kSteps, kChannels}}};
    if (c.masked) inputs.push_back({.shape = {kSteps}});
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                         MakeRecurrentOf(c, inputs));
    LayerValues values = RandomLayerValues(*layer, inputs, 3);
    if (c.masked) {
      // Steps that count at the start, in between, none and all.
      values.inputs[1] = {1, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0};
    }
    CheckLayer(*layer, values,
               [&](const LayerValues& v) { return RecurrentReference(c, v); });
  }
}

TEST(MakeLstmTest, VariablesAndTheirFirstValuesAreKerass) {
  job::Lstm spec;
  spec.set_units(6);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                       MakeLstm(spec, {{.shape = {kSteps, kChannels}}}));
  EXPECT_EQ(layer->output_shape(), (Shape{6}));
  ASSERT_EQ(layer->variables().size(), 3);
  EXPECT_EQ(layer->variables()[0].name, "kernel");
  EXPECT_EQ(layer->variables()[0].shape, (Shape{3, 24}));
  EXPECT_TRUE(layer->variables()[0].initializer.has_glorot_uniform());
  EXPECT_EQ(layer->variables()[1].name, "recurrent_kernel");
  EXPECT_EQ(layer->variables()[1].shape, (Shape{6, 24}));
  EXPECT_TRUE(layer->variables()[1].initializer.has_orthogonal());
  EXPECT_EQ(layer->variables()[2].name, "bias");
  EXPECT_EQ(layer->variables()[2].shape, (Shape{24}));
  EXPECT_TRUE(layer->variables()[2].initializer.has_unit_forget());
}

TEST(MakeGruTest, TwoDirectionsHaveVariablesOfTheirOwn) {
  job::Gru spec;
  spec.set_units(6);
  spec.set_bidirectional(job::Bidirectional::CONCAT);
  spec.set_return_sequences(true);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                       MakeGru(spec, {{.shape = {kSteps, kChannels}}}));
  EXPECT_EQ(layer->output_shape(), (Shape{kSteps, 12}));
  ASSERT_EQ(layer->variables().size(), 6);
  EXPECT_EQ(layer->variables()[0].name, "forward/kernel");
  EXPECT_EQ(layer->variables()[2].name, "forward/bias");
  EXPECT_EQ(layer->variables()[2].shape, (Shape{2, 18}));
  EXPECT_EQ(layer->variables()[4].name, "backward/recurrent_kernel");
}

TEST(MakeLstmTest, WhatDoesNotFitIsNamed) {
  job::Lstm spec;
  spec.set_units(6);
  EXPECT_THAT(MakeLstm(spec, {{.shape = {7}}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("needs [steps, channels], not [7]")));
  EXPECT_THAT(
      MakeLstm(spec, {{.shape = {7, 2}}, {.shape = {6}}}).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is [7], not")));
  spec.set_units(0);
  EXPECT_THAT(MakeLstm(spec, {{.shape = {7, 2}}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(LstmKindTest, AFaultIsAtItsField) {
  const auto fault = [](const std::string& text) {
    job::Layer layer;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &layer));
    kLstmKind.fill_defaults(layer);
    return kLstmKind.check("lstm", layer);
  };
  EXPECT_OK(fault("lstm { units: 3 }"));
  EXPECT_THAT(fault("lstm {}"), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("lstm.units")));
  EXPECT_THAT(fault("lstm { units: 3 go_backwards: true bidirectional: SUM }"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("lstm.go_backwards")));
  EXPECT_THAT(fault("lstm { units: 3 unit_forget_bias: true "
                    "bias_initializer { constant { value: 1 } } }"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("lstm.unit_forget_bias")));
}

INSTANTIATE_TEST_SUITE_P(Devices, RecurrentTest, DevicesUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
