// Values and slots step by step, beside Keras's, PyTorch's and FBGEMM's.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/optimizer/apply.h"
#include "ml/optimizer/optimizer.h"
#include "nlohmann/json.hpp"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using ::nlohmann::json;

struct RowGradient {
  std::vector<int64_t> rows;
  std::vector<float> values;
};

// A golden trajectory: `sparse` or `dense` has a gradient for each step.
struct Trajectory {
  std::string name;
  std::string textproto;
  size_t width = 1;
  std::vector<float> initial;
  std::vector<std::vector<float>> dense;
  std::vector<RowGradient> sparse;
  std::vector<std::vector<double>> values;
  bool has_slots = false;
  std::map<std::string, std::vector<double>> slots;
  // Slots of 1 - beta_2, which Keras has rounded to float32.
  double slot_tolerance = 1e-5;
};

template <typename T>
std::vector<T> Flat(const json& nested) {
  if (!nested.is_array()) return {nested.get<T>()};
  std::vector<T> flat;
  for (const json& part : nested) {
    const std::vector<T> values = Flat<T>(part);
    flat.insert(flat.end(), values.begin(), values.end());
  }
  return flat;
}

// Parses the fields that both files have.
Trajectory Parse(const json& golden) {
  Trajectory trajectory;
  trajectory.name = golden["name"];
  trajectory.initial = Flat<float>(golden["init"]);
  for (const json& values : golden["var_after_each_step"]) {
    trajectory.values.push_back(Flat<double>(values));
  }
  if (!golden.contains("slots")) return trajectory;
  trajectory.has_slots = true;
  for (const auto& [name, values] : golden["slots"].items()) {
    trajectory.slots[name] = Flat<double>(values);
  }
  return trajectory;
}

std::string TextprotoOf(const json& golden) {
  static const auto& kinds = *new std::map<std::string, std::string>{
      {"SGD", "sgd"},         {"Adagrad", "adagrad"},   {"Adam", "adam"},
      {"RMSprop", "rmsprop"}, {"Adadelta", "adadelta"}, {"Adamax", "adamax"},
      {"Nadam", "nadam"},     {"Ftrl", "ftrl"}};
  static const auto& fields = *new std::map<std::string, std::string>{
      {"lr", "learning_rate"},
      {"init", "initial_accumulator_value"},
      {"l1", "l1_regularization_strength"},
      {"l2", "l2_regularization_strength"}};
  std::string text = kinds.at(golden["optimizer"]) + " {";
  for (const auto& [name, value] : golden["hyper"].items()) {
    const auto renamed = fields.find(name);
    text += " " + (renamed == fields.end() ? name : renamed->second) + ": " +
            value.dump();
  }
  return text + " }";
}

// Keras's formulas in float64; the gradients are in each case's "mode".
Trajectory ParseFormulaCase(const json& golden) {
  Trajectory trajectory = Parse(golden);
  trajectory.textproto = TextprotoOf(golden);
  const bool sparse = golden["mode"].get<std::string>().starts_with("sparse");
  const RowGradient cycle[] = {
      {{0, 2, 0}, {.1f, -.3f, .05f}}, {{2, 3}, {.2f, .4f}}, {{0}, {-.1f}}};
  for (size_t step = 0; step < trajectory.values.size(); ++step) {
    if (sparse) {
      trajectory.sparse.push_back(cycle[step % 3]);
    } else {
      trajectory.dense.push_back({.1f, .2f, -.3f, .4f});
    }
  }
  return trajectory;
}

// Results of TensorFlow, Keras 3, PyTorch or FBGEMM, which have everything in
// them.
Trajectory ParseTensorflowCase(const json& golden) {
  Trajectory trajectory = Parse(golden);
  trajectory.textproto = golden["textproto"];
  trajectory.width = golden["init"][0].size();
  trajectory.slot_tolerance = 2e-5;
  for (const json& gradient : golden["gradients"]) {
    const std::vector<float> values = Flat<float>(gradient["values"]);
    if (golden["mode"] == "sparse") {
      trajectory.sparse.push_back({Flat<int64_t>(gradient["indices"]), values});
    } else {
      trajectory.dense.push_back(values);
    }
  }
  return trajectory;
}

void ExpectClose(const std::vector<float>& got, const std::vector<double>& want,
                 double tolerance, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  double largest = 0;
  for (const double value : want) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], tolerance * std::abs(want[i]) + 1e-6 * largest)
        << what << " " << i;
  }
}

void Follow(const Trajectory& want) {
  SCOPED_TRACE(want.name);
  job::Optimizer spec;
  ASSERT_TRUE(
      google::protobuf::TextFormat::ParseFromString(want.textproto, &spec));
  ASSERT_OK_AND_ASSIGN(const auto optimizer, MakeOptimizer(spec));
  const std::vector<std::string>& names = optimizer->slot_names();
  std::vector<float> values = want.initial;
  std::vector<std::vector<float>> slots;
  for (size_t s = 0; s < names.size(); ++s) {
    slots.emplace_back(
        values.size() / want.width * optimizer->SlotWidth(s, want.width),
        optimizer->InitialSlotValue(s));
  }
  std::vector<float*> pointers;
  for (std::vector<float>& slot : slots) pointers.push_back(slot.data());
  const VariableArrays variable = {
      .values = absl::MakeSpan(values), .slots = pointers, .width = want.width};
  for (size_t step = 0; step < want.values.size(); ++step) {
    if (want.dense.empty()) {
      const RowGradient& gradient = want.sparse[step];
      ASSERT_OK(ApplySparse(*optimizer, step, gradient.rows, gradient.values,
                            variable));
    } else {
      ASSERT_OK(ApplyDense(*optimizer, step, want.dense[step], variable));
    }
    ExpectClose(values, want.values[step], 1e-5, std::to_string(step));
  }
  if (!want.has_slots) return;
  ASSERT_EQ(names.size(), want.slots.size());
  for (size_t s = 0; s < slots.size(); ++s) {
    ExpectClose(slots[s], want.slots.at(names[s]), want.slot_tolerance,
                names[s]);
  }
}

template <typename Parser>
int FollowAll(const std::string& file, Parser parse) {
  std::ifstream lines("ml/optimizer/testdata/" + file);
  int cases = 0;
  for (std::string line; std::getline(lines, line); ++cases) {
    Follow(parse(json::parse(line)));
  }
  return cases;
}

TEST(TrajectoryTest, IsThatOfTheFormulasInFloat64) {
  EXPECT_EQ(FollowAll("optimizer_cases.jsonl", ParseFormulaCase), 24);
}

TEST(TrajectoryTest, IsThatOfTensorflow) {
  EXPECT_EQ(FollowAll("tensorflow_cases.jsonl", ParseTensorflowCase), 85);
}

TEST(TrajectoryTest, OfAdamWAndLionIsThatOfKerasAndPyTorch) {
  EXPECT_EQ(FollowAll("keras_cases.jsonl", ParseTensorflowCase), 20);
  EXPECT_EQ(FollowAll("pytorch_cases.jsonl", ParseTensorflowCase), 2);
}

TEST(TrajectoryTest, OfRowwiseAdagradIsThatOfFbgemm) {
  EXPECT_EQ(FollowAll("fbgemm_cases.jsonl", ParseTensorflowCase), 4);
}

}  // namespace
}  // namespace parasol
