#include "ml/optimizer/assigned/averaged.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/set_default.h"
#include "base/status_macros.h"
#include "ml/optimizer/hyperparameter.h"
#include "ml/optimizer/update_loop.h"

namespace parasol {
namespace {

class Averaged final : public Optimizer {
 public:
  Averaged(std::unique_ptr<const Optimizer> optimizer, double decay)
      : optimizer_(std::move(optimizer)),
        decay_(decay),
        slot_names_(optimizer_->slot_names()) {
    slot_names_.emplace_back(kAverageSlot);
  }

  const std::vector<std::string>& slot_names() const override {
    return slot_names_;
  }
  float InitialSlotValue(size_t index) const override {
    return index < LastSlot() ? optimizer_->InitialSlotValue(index) : 0;
  }
  UpdateRule RuleAt(int64_t iterations) const override {
    return optimizer_->RuleAt(iterations);
  }
  std::optional<AverageRule> AverageAt(int64_t iterations) const override {
    const double decay = iterations == 0 ? 0 : decay_;
    return AverageRule{.decay = static_cast<float>(decay),
                       .one_minus_decay = static_cast<float>(1 - decay)};
  }
  bool needs_whole_variable() const override {
    return optimizer_->needs_whole_variable();
  }
  absl::Status CheckCode() const override { return optimizer_->CheckCode(); }
  OtherRows other_rows() const override { return optimizer_->other_rows(); }

  void Apply(int64_t iterations, const UpdateSpan& update) const override {
    optimizer_->Apply(iterations, {.count = update.count,
                                   .gradient = update.gradient,
                                   .value = update.value,
                                   .new_value = update.new_value,
                                   .slots = update.slots.first(LastSlot())});
    ApplyRule(*AverageAt(iterations),
              UpdateSpan{.count = update.count,
                         .gradient = update.gradient,
                         .value = update.new_value,
                         .new_value = update.new_value,
                         .slots = update.slots.subspan(LastSlot())});
  }

  void ApplyRows(int64_t iterations, const RowUpdate& update) const override {
    optimizer_->ApplyRows(iterations, update);
    const AverageRule rule = *AverageAt(iterations);
    for (size_t i = 0; i < update.count; ++i) {
      float* const row = update.rows[i];
      float* const average = row + update.width * (1 + LastSlot());
      for (size_t j = 0; j < update.width; ++j) rule(0, row[j], average[j]);
    }
  }

 private:
  size_t LastSlot() const { return slot_names_.size() - 1; }

  const std::unique_ptr<const Optimizer> optimizer_;
  const double decay_;
  std::vector<std::string> slot_names_;
};

}  // namespace

void FillDefaults(job::Ema& ema) { PARASOL_SET_DEFAULT(ema, decay, .99); }

absl::Status CheckEma(const job::Ema& ema) {
  return CheckBelowOne("ema.decay", ema.decay());
}

absl::StatusOr<std::unique_ptr<const Optimizer>> MakeAveraged(
    std::unique_ptr<const Optimizer> optimizer, const job::Ema& given) {
  job::Ema ema = given;
  FillDefaults(ema);
  RETURN_IF_ERROR(CheckEma(ema));
  return std::make_unique<Averaged>(std::move(optimizer), ema.decay());
}

}  // namespace parasol
