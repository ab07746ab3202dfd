#include "ml/optimizer/optimizer.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/status/status.h"
#include "ml/optimizer/adadelta.h"
#include "ml/optimizer/adagrad.h"
#include "ml/optimizer/adam.h"
#include "ml/optimizer/adamax.h"
#include "ml/optimizer/custom_optimizer.h"
#include "ml/optimizer/ftrl.h"
#include "ml/optimizer/lamb.h"
#include "ml/optimizer/lion.h"
#include "ml/optimizer/nadam.h"
#include "ml/optimizer/rmsprop.h"
#include "ml/optimizer/sgd.h"

namespace parasol {
namespace {

// Zeros and saved values of so many rows stay in the cache.
constexpr size_t kElementsAtOnce = 4096;

}  // namespace

size_t Optimizer::FloatsOfRow(size_t width) const {
  size_t floats = width;
  for (size_t slot = 0; slot < slot_names().size(); ++slot) {
    floats += SlotWidth(slot, width);
  }
  return floats;
}

void Optimizer::FillSlots(size_t width, float* row) const {
  float* next = row + width;
  for (size_t slot = 0; slot < slot_names().size(); ++slot) {
    next = std::fill_n(next, SlotWidth(slot, width), InitialSlotValue(slot));
  }
}

void Optimizer::ApplyOtherRows(int64_t iterations,
                               const RowUpdate& update) const {
  const OtherRows other = other_rows();
  if (other == OtherRows::kUntouched || update.width == 0) return;
  const size_t width = update.width;
  const size_t rows_at_once = std::max<size_t>(1, kElementsAtOnce / width);
  const std::vector<float> zeros(rows_at_once * width);
  std::vector<float> values(other == OtherRows::kSlots ? zeros.size() : 0);
  for (size_t first = 0; first < update.count; first += rows_at_once) {
    const size_t count = std::min(rows_at_once, update.count - first);
    float* const* rows = update.rows + first;
    const auto row_of = [&](size_t i) { return values.data() + i * width; };
    const size_t bytes = values.empty() ? 0 : width * sizeof(float);
    for (size_t i = 0; bytes > 0 && i < count; ++i) {
      std::memcpy(row_of(i), rows[i], bytes);
    }
    ApplyRows(iterations,
              {.count = count,
               .width = width,
               .gradients = reinterpret_cast<const std::byte*>(zeros.data()),
               .rows = rows});
    for (size_t i = 0; bytes > 0 && i < count; ++i) {
      std::memcpy(rows[i], row_of(i), bytes);
    }
  }
}

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
    case job::Optimizer::kLamb:
      return MakeLamb(spec.lamb(), schedule);
    case job::Optimizer::kRowwiseAdagrad:
      return MakeRowwiseAdagrad(spec.rowwise_adagrad(), schedule);
    case job::Optimizer::kCustom:
      return MakeCustomOptimizer(spec.custom(), schedule);
    case job::Optimizer::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "none is chosen: sgd, adagrad, adam, lazy_adam, rmsprop, adadelta, "
      "adamax, nadam, ftrl, adamw, lion, lamb, rowwise_adagrad or custom");
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
    case job::Optimizer::kLamb:
      return FillDefaults(*spec.mutable_lamb());
    case job::Optimizer::kRowwiseAdagrad:
      return FillDefaults(*spec.mutable_rowwise_adagrad());
    case job::Optimizer::kCustom:
      return FillDefaults(*spec.mutable_custom());
    case job::Optimizer::KIND_NOT_SET:
      break;
  }
}

}  // namespace parasol
