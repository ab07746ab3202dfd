#include <cstddef>
#include <utility>

#include "ml/optimizer/clip.h"
#include "ml/optimizer/device/dense_update.h"

namespace parasol::cpu {
namespace {

class CpuDenseUpdate final : public DenseUpdate {
 public:
  CpuDenseUpdate(const Optimizer& optimizer, const job::Optimizer& limits,
                 std::vector<Variable> variables)
      : optimizer_(optimizer),
        limits_(limits),
        variables_(std::move(variables)) {
    for (const Variable& variable : variables_) {
      gradients_.emplace_back(variable.gradient, variable.count);
    }
  }

  absl::Status Apply(absl::Span<const int64_t> iterations) override {
    Clip();
    const size_t slots = optimizer_.slot_names().size();
    for (size_t i = 0; i < variables_.size(); ++i) {
      const Variable& variable = variables_[i];
      optimizer_.Apply(
          iterations[i],
          {.count = static_cast<size_t>(variable.count),
           .gradient = reinterpret_cast<const std::byte*>(variable.gradient),
           .value = variable.value,
           .new_value = variable.value,
           .slots = absl::MakeConstSpan(variable.slots).first(slots)});
    }
    return absl::OkStatus();
  }

 private:
  void Clip() {
    for (const absl::Span<float> gradient : gradients_) {
      if (limits_.has_clipvalue()) ClipByValue(limits_.clipvalue(), gradient);
      if (limits_.has_clipnorm()) ClipByNorm(limits_.clipnorm(), gradient);
    }
    if (limits_.has_global_clipnorm()) {
      ClipByGlobalNorm(limits_.global_clipnorm(), gradients_);
    }
  }

  const Optimizer& optimizer_;
  const job::Optimizer limits_;
  const std::vector<Variable> variables_;
  std::vector<absl::Span<float>> gradients_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DenseUpdate>> NewDenseUpdate(
    Device& device, const Optimizer& optimizer, const job::Optimizer& limits,
    std::vector<DenseUpdate::Variable> variables) {
  return std::make_unique<CpuDenseUpdate>(optimizer, limits,
                                          std::move(variables));
}

}  // namespace parasol::cpu
