#include "ml/optimizer/custom_optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/log.h"
#include "base/set_default.h"
#include "base/status_macros.h"
#include "ml/custom/code_registry.h"
#include "ml/optimizer/hyperparameter.h"
#include "ml/optimizer/learning_rate.h"

namespace parasol {
namespace {

// Name of the slot that averages have (ml/optimizer/assigned/averaged.h).
constexpr absl::string_view kTakenName = "average";

CodeRegistry<CustomOptimizerFactory>& Registry() {
  static auto* const registry =
      new CodeRegistry<CustomOptimizerFactory>("optimizer", "ps and as worker");
  return *registry;
}

class CustomOptimizer final : public Optimizer {
 public:
  // `update` is null if this program does not have it.
  CustomOptimizer(const job::CustomOptimizer& spec, LearningRate learning_rate,
                  std::unique_ptr<const CustomUpdate> update)
      : type_(spec.type()),
        learning_rate_(std::move(learning_rate)),
        update_(std::move(update)) {
    for (const job::CustomSlot& slot : spec.slot()) {
      slot_names_.push_back(slot.name());
      initial_values_.push_back(slot.initial_value());
    }
  }

  const std::vector<std::string>& slot_names() const override {
    return slot_names_;
  }
  float InitialSlotValue(size_t index) const override {
    return initial_values_[index];
  }
  OtherRows other_rows() const override {
    return update_ == nullptr ? OtherRows::kUntouched : update_->other_rows();
  }
  absl::Status CheckCode() const override {
    if (update_ != nullptr) return absl::OkStatus();
    return absl::InvalidArgumentError(Registry().Lacks(type_));
  }
  UpdateRule RuleAt(int64_t) const override {
    // Their owners are in the host's memory.
    CHECK(false) << "a device's rule of the custom optimizer " << type_;
    return UpdateRule();
  }

  void Apply(int64_t iterations, const UpdateSpan& update) const override {
    const CustomUpdate::Step step = StepAt(iterations);
    // Gradients lie at any alignment, and values move if they are not updated
    // in place: a piece at a time, which stays in the cache.
    std::array<float, kPiece> gradient;
    std::array<float*, kMaxCustomSlots> slots;
    for (size_t first = 0; first < update.count; first += kPiece) {
      const size_t count = std::min(kPiece, update.count - first);
      std::memcpy(gradient.data(), update.gradient + first * sizeof(float),
                  count * sizeof(float));
      if (update.new_value != update.value) {
        std::copy_n(update.value + first, count, update.new_value + first);
      }
      for (size_t i = 0; i < slot_names_.size(); ++i) {
        slots[i] = update.slots[i] + first;
      }
      ApplyPiece(step, {.count = count,
                        .gradient = gradient.data(),
                        .value = update.new_value + first,
                        .slots = SlotsOf(slots)});
    }
  }

  void ApplyRows(int64_t iterations, const RowUpdate& update) const override {
    const CustomUpdate::Step step = StepAt(iterations);
    std::vector<float> gradient(update.width);
    const size_t bytes = update.width * sizeof(float);
    std::array<float*, kMaxCustomSlots> slots;
    for (size_t row = 0; row < update.count; ++row) {
      std::memcpy(gradient.data(), update.gradient(row), bytes);
      for (size_t i = 0; i < slot_names_.size(); ++i) {
        slots[i] = update.rows[row] + (1 + i) * update.width;
      }
      ApplyPiece(step, {.count = update.width,
                        .gradient = gradient.data(),
                        .value = update.rows[row],
                        .slots = SlotsOf(slots)});
    }
  }

 private:
  static constexpr size_t kPiece = 1024;

  CustomUpdate::Step StepAt(int64_t iterations) const {
    return {.iterations = iterations,
            .learning_rate = learning_rate_.At(iterations)};
  }
  absl::Span<float* const> SlotsOf(
      const std::array<float*, kMaxCustomSlots>& slots) const {
    return absl::MakeConstSpan(slots).first(slot_names_.size());
  }
  void ApplyPiece(const CustomUpdate::Step& step,
                  const CustomUpdate::Elements& elements) const {
    CHECK(update_ != nullptr) << "no code of custom optimizer " << type_;
    update_->Apply(step, elements);
  }

  const std::string type_;
  const LearningRate learning_rate_;
  const std::unique_ptr<const CustomUpdate> update_;
  std::vector<std::string> slot_names_;
  std::vector<float> initial_values_;
};

absl::Status CheckSlots(const job::CustomOptimizer& spec) {
  if (spec.slot_size() > kMaxCustomSlots) {
    return absl::InvalidArgumentError(
        absl::StrCat("custom.slot has ", spec.slot_size(),
                     " slots; it must have at most ", kMaxCustomSlots));
  }
  for (int i = 0; i < spec.slot_size(); ++i) {
    const std::string& name = spec.slot(i).name();
    const std::string path = absl::StrCat("custom.slot[", i, "]");
    if (!IsCodeName(name) || name == kTakenName) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ".name is \"", absl::CHexEscape(name), "\"; it must be 1 to ",
          kMaxCodeNameBytes, " letters, digits and '_', and not ", kTakenName));
    }
    for (int j = 0; j < i; ++j) {
      if (spec.slot(j).name() != name) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          path, ".name is ", name, "; it must differ from the others"));
    }
    if (std::isfinite(spec.slot(i).initial_value())) continue;
    return absl::InvalidArgumentError(absl::StrCat(path, ".initial_value is ",
                                                   spec.slot(i).initial_value(),
                                                   "; it must be finite"));
  }
  return absl::OkStatus();
}

// "m = 0, v = 1e-06".
std::string TextOf(const std::vector<CustomUpdate::Slot>& slots) {
  if (slots.empty()) return "none";
  return absl::StrJoin(
      slots, ", ", [](std::string* out, const CustomUpdate::Slot& slot) {
        absl::StrAppend(out, slot.name, " = ", slot.initial_value);
      });
}

absl::Status CheckDeclared(const job::CustomOptimizer& spec,
                           const CustomUpdate& update) {
  std::vector<CustomUpdate::Slot> declared;
  for (const job::CustomSlot& slot : spec.slot()) {
    declared.push_back({slot.name(), slot.initial_value()});
  }
  const std::string wanted = TextOf(update.slots());
  if (TextOf(declared) == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("custom.slot declares ", TextOf(declared), "; \"",
                   spec.type(), "\" has ", wanted));
}

}  // namespace

CustomOptimizerRegistration::CustomOptimizerRegistration(
    absl::string_view type, CustomOptimizerFactory factory) {
  Registry().Add(type, std::move(factory));
}

void FillDefaults(job::CustomOptimizer& spec) {
  PARASOL_SET_DEFAULT(spec, learning_rate, .001);
  for (job::CustomSlot& slot : *spec.mutable_slot()) {
    PARASOL_SET_DEFAULT(slot, initial_value, 0);
  }
}

absl::StatusOr<std::unique_ptr<const Optimizer>> MakeCustomOptimizer(
    const job::CustomOptimizer& given,
    const job::LearningRateSchedule& schedule) {
  job::CustomOptimizer spec = given;
  FillDefaults(spec);
  if (spec.type().empty()) {
    return absl::InvalidArgumentError("custom.type is not set");
  }
  RETURN_IF_ERROR(
      CheckNotNegative("custom.learning_rate", spec.learning_rate()));
  RETURN_IF_ERROR(CheckSlots(spec));
  ASSIGN_OR_RETURN(LearningRate learning_rate,
                   LearningRate::Create(spec.learning_rate(), schedule));
  std::unique_ptr<const CustomUpdate> update;
  const CustomOptimizerFactory* const factory = Registry().Find(spec.type());
  if (factory != nullptr) {
    ASSIGN_OR_RETURN(update, (*factory)(spec),
                     _ << "custom \"" << spec.type() << "\"");
    CHECK(update != nullptr) << "custom optimizer " << spec.type();
    RETURN_IF_ERROR(CheckDeclared(spec, *update));
  }
  return std::make_unique<CustomOptimizer>(spec, std::move(learning_rate),
                                           std::move(update));
}

}  // namespace parasol
