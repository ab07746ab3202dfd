#include "ml/optimizer/assigned/optimizer_of.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "google/protobuf/descriptor.h"
#include "ml/optimizer/assigned/averaged.h"
#include "ml/optimizer/assigned/plain_subtraction.h"
#include "ml/optimizer/lamb.h"
#include "ml/optimizer/learning_rate.h"

namespace parasol {
namespace {

// Multiplies the learning_rate of the optimizer's kind, which every kind has.
void ScaleRate(double factor, job::Optimizer& spec) {
  const auto& reflection = *spec.GetReflection();
  const auto* const kind = reflection.GetOneofFieldDescriptor(
      spec, job::Optimizer::descriptor()->FindOneofByName("kind"));
  CHECK(kind != nullptr) << "an optimizer that was not checked";
  google::protobuf::Message& settings = *reflection.MutableMessage(&spec, kind);
  const auto* const rate =
      settings.GetDescriptor()->FindFieldByName("learning_rate");
  settings.GetReflection()->SetDouble(
      &settings, rate,
      factor * settings.GetReflection()->GetDouble(settings, rate));
}

// The other schedules have factors of the rate only.
void ScaleRates(double factor, job::LearningRateSchedule& schedule) {
  if (schedule.has_piecewise_constant_decay()) {
    auto& values =
        *schedule.mutable_piecewise_constant_decay()->mutable_value();
    for (double& value : values) value *= factor;
  }
  if (schedule.has_polynomial_decay()) {
    job::PolynomialDecay& decay = *schedule.mutable_polynomial_decay();
    decay.set_end_learning_rate(factor * decay.end_learning_rate());
  }
  if (schedule.has_warmup()) {
    schedule.mutable_warmup()->set_start(factor * schedule.warmup().start());
  }
}

bool IsOfProgramLayer(absl::string_view variable, const job::Layer& layer) {
  const auto& all = layer.custom().variable();
  return layer.custom().type() == kProgramLayer &&
         std::any_of(all.begin(), all.end(),
                     [variable](const job::CustomVariable& of_layer) {
                       return of_layer.name() == variable;
                     });
}

// Returns the layer of the variable "layer/kernel". A name in which another
// layer's name stands before a slash is of the longer one.
const job::Layer* LayerOf(absl::string_view variable, const job::Model& model) {
  const job::Layer* found = nullptr;
  for (const job::Layer& layer : model.layer()) {
    if (IsOfProgramLayer(variable, layer)) return &layer;
    if (!absl::StartsWith(variable, absl::StrCat(layer.name(), "/"))) continue;
    if (found == nullptr || layer.name().size() > found->name().size()) {
      found = &layer;
    }
  }
  return found;
}

}  // namespace

const job::Optimizer& OptimizerOfVariable(absl::string_view variable,
                                          const job::Job& job) {
  const job::Layer* const layer = LayerOf(variable, job.model());
  return layer != nullptr && layer->has_optimizer() ? layer->optimizer()
                                                    : job.optimizer();
}

job::Optimizer WithRateTimes(double factor, job::Optimizer spec) {
  if (factor == 1) return spec;
  FillDefaults(spec);
  ScaleRate(factor, spec);
  if (spec.has_learning_rate_schedule()) {
    FillDefaults(*spec.mutable_learning_rate_schedule());
    ScaleRates(factor, *spec.mutable_learning_rate_schedule());
  }
  return spec;
}

job::Optimizer VariableOptimizerOf(const job::Optimizer& of_job,
                                   absl::string_view variable,
                                   double multiplier) {
  job::Optimizer spec = WithRateTimes(multiplier, of_job);
  if (spec.has_lamb()) *spec.mutable_lamb() = LambOf(spec.lamb(), variable);
  return spec;
}

absl::StatusOr<std::unique_ptr<const Optimizer>> MakeVariableOptimizer(
    const job::Optimizer& of_job, double multiplier) {
  ASSIGN_OR_RETURN(std::unique_ptr<const Optimizer> optimizer,
                   MakeOptimizer(of_job));
  if (of_job.has_rowwise_adagrad()) {
    return absl::InvalidArgumentError(
        "rowwise_adagrad is for rows of tables alone; give variables another "
        "one, such as adagrad {}");
  }
  if (multiplier != 1) {
    ASSIGN_OR_RETURN(optimizer,
                     MakeOptimizer(WithRateTimes(multiplier, of_job)));
  }
  if (!of_job.has_ema()) return optimizer;
  return MakeAveraged(std::move(optimizer), of_job.ema());
}

job::Optimizer RowOptimizerOf(const job::SparseTable& table,
                              const job::Job& job) {
  if (!table.trainable()) return PlainSubtraction();
  return WithRateTimes(table.learning_rate_multiplier(), table.has_optimizer()
                                                             ? table.optimizer()
                                                             : job.optimizer());
}

}  // namespace parasol
