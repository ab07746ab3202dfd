#include "ml/optimizer/optimizer.h"

#include "absl/status/status.h"
#include "ml/optimizer/adadelta.h"
#include "ml/optimizer/adagrad.h"
#include "ml/optimizer/adam.h"
#include "ml/optimizer/adamax.h"
#include "ml/optimizer/custom_optimizer.h"
#include "ml/optimizer/ftrl.h"
#include "ml/optimizer/lion.h"
#include "ml/optimizer/nadam.h"
#include "ml/optimizer/rmsprop.h"
#include "ml/optimizer/sgd.h"

namespace parasol {

absl::StatusOr<std::unique_ptr<const Optimizer>> MakeOptimizer(
    const job::Optimizer& spec) {
  const job::LearningRateSchedule& schedule = spec.learning_rate_schedule();
  switch (spec.kind_case()) {
    case job::Optimizer::kSgd:
      return MakeSgd(spec.sgd(), schedule);
    case job::Optimizer::kAdagrad:
      return MakeAdagrad(spec.adagrad(), schedule);
    case job::Optimizer::kAdam:
      return MakeAdam(spec.adam(), schedule);
    case job::Optimizer::kLazyAdam:
      return MakeLazyAdam(spec.lazy_adam(), schedule);
    case job::Optimizer::kRmsprop:
      return MakeRmsProp(spec.rmsprop(), schedule);
    case job::Optimizer::kAdadelta:
      return MakeAdadelta(spec.adadelta(), schedule);
    case job::Optimizer::kAdamax:
      return MakeAdamax(spec.adamax(), schedule);
    case job::Optimizer::kNadam:
      return MakeNadam(spec.nadam(), schedule);
    case job::Optimizer::kFtrl:
      return MakeFtrl(spec.ftrl(), schedule);
    case job::Optimizer::kAdamw:
      return MakeAdamW(spec.adamw(), schedule);
    case job::Optimizer::kLion:
      return MakeLion(spec.lion(), schedule);
    case job::Optimizer::kCustom:
      return MakeCustomOptimizer(spec.custom(), schedule);
    case job::Optimizer::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "none is chosen: sgd, adagrad, adam, lazy_adam, rmsprop, adadelta, "
      "adamax, nadam, ftrl, adamw, lion or custom");
}

void FillDefaults(job::Optimizer& spec) {
  switch (spec.kind_case()) {
    case job::Optimizer::kSgd:
      return FillDefaults(*spec.mutable_sgd());
    case job::Optimizer::kAdagrad:
      return FillDefaults(*spec.mutable_adagrad());
    case job::Optimizer::kAdam:
      return FillDefaults(*spec.mutable_adam());
    case job::Optimizer::kLazyAdam:
      return FillDefaults(*spec.mutable_lazy_adam());
    case job::Optimizer::kRmsprop:
      return FillDefaults(*spec.mutable_rmsprop());
    case job::Optimizer::kAdadelta:
      return FillDefaults(*spec.mutable_adadelta());
    case job::Optimizer::kAdamax:
      return FillDefaults(*spec.mutable_adamax());
    case job::Optimizer::kNadam:
      return FillDefaults(*spec.mutable_nadam());
    case job::Optimizer::kFtrl:
      return FillDefaults(*spec.mutable_ftrl());
    case job::Optimizer::kAdamw:
      return FillDefaults(*spec.mutable_adamw());
    case job::Optimizer::kLion:
      return FillDefaults(*spec.mutable_lion());
    case job::Optimizer::kCustom:
      return FillDefaults(*spec.mutable_custom());
    case job::Optimizer::KIND_NOT_SET:
      break;
  }
}

}  // namespace parasol
