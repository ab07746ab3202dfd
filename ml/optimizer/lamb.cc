#include "ml/optimizer/lamb.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/multiversion.h"
#include "base/set_default.h"
#include "base/status_macros.h"
#include "ml/optimizer/hyperparameter.h"
#include "ml/optimizer/learning_rate.h"
#include "ml/optimizer/rule/clip.h"
#include "ml/optimizer/rule/lamb.h"
#include "ml/optimizer/rule/lane_sum.h"
#include "ml/optimizer/update_loop.h"
#include "re2/re2.h"

namespace parasol {
namespace {

using Expressions = google::protobuf::RepeatedPtrField<std::string>;

constexpr size_t kChunk = kSumChunk;

// Squares of a chunk's values and directions.
struct Squares {
  double of_values;
  double of_directions;
};

PARASOL_MULTIVERSION
Squares SquaresOfChunk(const LambRule& given, const float* w, const float* m,
                       const float* v, int64_t count) {
  const LambRule rule = given;
  double values[kSumLanes] = {};
  double directions[kSumLanes] = {};
  int64_t i = 0;
  for (; i + kSumLanes <= count; i += kSumLanes) {
    for (int64_t lane = 0; lane < kSumLanes; ++lane) {
      const int64_t at = i + lane;
      values[lane] += Square(w[at]);
      directions[lane] += Square(rule.Direction(w[at], m[at], v[at]));
    }
  }
  for (int64_t lane = 0; i < count; ++i, ++lane) {
    values[lane] += Square(w[i]);
    directions[lane] += Square(rule.Direction(w[i], m[i], v[i]));
  }
  return {.of_values = LaneSum::Fold(values),
          .of_directions = LaneSum::Fold(directions)};
}

class Lamb final : public Optimizer {
 public:
  Lamb(LearningRate learning_rate, const job::Lamb& spec, bool adapts)
      : learning_rate_(std::move(learning_rate)),
        spec_(spec),
        adapts_(adapts) {}

  const std::vector<std::string>& slot_names() const override {
    static const auto* const names = new std::vector<std::string>{"m", "v"};
    return *names;
  }
  float InitialSlotValue(size_t) const override { return 0; }
  OtherRows other_rows() const override { return OtherRows::kAll; }
  bool needs_whole_variable() const override { return adapts_; }
  UpdateRule RuleAt(int64_t iterations) const override {
    return LambRuleAt(iterations);
  }

  void Apply(int64_t iterations, const UpdateSpan& update) const override {
    const LambRule rule = LambRuleAt(iterations);
    if (!adapts_) return ApplyRule(rule, update);
    LaneSum values, directions;
    // A chunk stays in the cache between the two loops over it.
    for (size_t first = 0; first < update.count; first += kChunk) {
      const UpdateSpan chunk = {
          .count = std::min(kChunk, update.count - first),
          .gradient = update.gradient + first * sizeof(float),
          .value = update.value + first,
          .new_value = update.new_value + first};
      const Squares squares = Remember(
          rule, chunk, {update.slots[0] + first, update.slots[1] + first});
      values.Add(squares.of_values);
      directions.Add(squares.of_directions);
    }
    const float factor = rule.Factor(values.Total(), directions.Total());
    ApplyRule(LambStepRule{.lamb = rule, .factor = factor},
              UpdateSpan{.count = update.count,
                         .gradient = update.gradient,
                         .value = update.new_value,
                         .new_value = update.new_value,
                         .slots = update.slots});
  }

  void ApplyRows(int64_t iterations, const RowUpdate& update) const override {
    for (size_t i = 0; i < update.count; ++i) {
      float* const row = update.rows[i];
      const std::array<float*, 2> slots = {row + update.width,
                                           row + 2 * update.width};
      Apply(iterations, {.count = update.width,
                         .gradient = update.gradient(i),
                         .value = row,
                         .new_value = row,
                         .slots = slots});
    }
  }

 private:
  static Squares Remember(const LambRule& rule, UpdateSpan chunk,
                          const std::array<float*, 2>& slots) {
    chunk.slots = slots;
    ApplyRule(LambRememberRule{rule}, chunk);
    return SquaresOfChunk(rule, chunk.new_value, slots[0], slots[1],
                          static_cast<int64_t>(chunk.count));
  }

  LambRule LambRuleAt(int64_t iterations) const {
    const double t = static_cast<double>(iterations) + 1;
    const auto unbias = [t](double beta) {
      return static_cast<float>(1 / (1 - std::pow(beta, t)));
    };
    return {.beta_1 = static_cast<float>(spec_.beta_1()),
            .one_minus_beta_1 = static_cast<float>(1 - spec_.beta_1()),
            .beta_2 = static_cast<float>(spec_.beta_2()),
            .one_minus_beta_2 = static_cast<float>(1 - spec_.beta_2()),
            .unbias_m = unbias(spec_.beta_1()),
            .unbias_v = unbias(spec_.beta_2()),
            .epsilon = static_cast<float>(spec_.epsilon()),
            .weight_decay = static_cast<float>(spec_.weight_decay()),
            .learning_rate = learning_rate_.At(iterations)};
  }

  const LearningRate learning_rate_;
  const job::Lamb spec_;
  const bool adapts_;
};

RE2::Options Quiet() {
  RE2::Options options;
  options.set_log_errors(false);
  return options;
}

bool IsFound(const Expressions& expressions, absl::string_view variable) {
  return std::any_of(expressions.begin(), expressions.end(),
                     [variable](const std::string& text) {
                       const RE2 expression(text, Quiet());
                       return expression.ok() &&
                              RE2::PartialMatch(
                                  {variable.data(), variable.size()},
                                  expression);
                     });
}

// Returns true if an expression is empty, which is found in every name.
bool IsForAll(const Expressions& expressions) {
  return std::find(expressions.begin(), expressions.end(), "") !=
         expressions.end();
}

absl::Status CheckExpressions(absl::string_view field,
                              const Expressions& expressions) {
  for (int i = 0; i < expressions.size(); ++i) {
    const RE2 expression(expressions[i], Quiet());
    if (expression.ok()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "lamb.", field, "[", i, "] is \"", absl::CHexEscape(expressions[i]),
        "\"; it must be a regular expression of RE2: ",
        absl::CHexEscape(expression.error())));
  }
  return absl::OkStatus();
}

}  // namespace

void FillDefaults(job::Lamb& spec) {
  PARASOL_SET_DEFAULT(spec, learning_rate, .001);
  PARASOL_SET_DEFAULT(spec, beta_1, .9);
  PARASOL_SET_DEFAULT(spec, beta_2, .999);
  PARASOL_SET_DEFAULT(spec, epsilon, 1e-6);
  FillEpsilon(spec);
  PARASOL_SET_DEFAULT(spec, weight_decay, 0.0);
  if (spec.exclude_from_layer_adaptation().empty()) {
    *spec.mutable_exclude_from_layer_adaptation() =
        spec.exclude_from_weight_decay();
  }
}

job::Lamb LambOf(job::Lamb spec, absl::string_view variable) {
  FillDefaults(spec);
  if (IsFound(spec.exclude_from_weight_decay(), variable)) {
    spec.set_weight_decay(0);
  }
  const bool adapts = !IsFound(spec.exclude_from_layer_adaptation(), variable);
  spec.clear_exclude_from_weight_decay();
  spec.clear_exclude_from_layer_adaptation();
  if (!adapts) spec.add_exclude_from_layer_adaptation("");
  return spec;
}

absl::StatusOr<std::unique_ptr<const Optimizer>> MakeLamb(
    const job::Lamb& given, const job::LearningRateSchedule& schedule) {
  job::Lamb spec = given;
  FillDefaults(spec);
  RETURN_IF_ERROR(CheckNotNegative("lamb.learning_rate", spec.learning_rate()));
  RETURN_IF_ERROR(CheckBelowOne("lamb.beta_1", spec.beta_1()));
  RETURN_IF_ERROR(CheckBelowOne("lamb.beta_2", spec.beta_2()));
  RETURN_IF_ERROR(CheckPositive("lamb.epsilon", spec.epsilon()));
  RETURN_IF_ERROR(CheckNotNegative("lamb.weight_decay", spec.weight_decay()));
  RETURN_IF_ERROR(CheckExpressions("exclude_from_weight_decay",
                                   given.exclude_from_weight_decay()));
  RETURN_IF_ERROR(CheckExpressions("exclude_from_layer_adaptation",
                                   given.exclude_from_layer_adaptation()));
  ASSIGN_OR_RETURN(LearningRate learning_rate,
                   LearningRate::Create(spec.learning_rate(), schedule));
  if (IsForAll(spec.exclude_from_weight_decay())) spec.set_weight_decay(0);
  const bool adapts = !IsForAll(spec.exclude_from_layer_adaptation());
  return std::make_unique<Lamb>(std::move(learning_rate), spec, adapts);
}

}  // namespace parasol
