#include "ml/layer/sequence/sequence_mask.h"

#include <cstdint>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "ml/kernel/table_rows.h"
#include "ml/layer/id_inputs.h"

namespace parasol {
namespace {

class SequenceMaskPass final : public LayerPass {
 public:
  SequenceMaskPass(Device& device, int64_t examples, int64_t length)
      : device_(device), examples_(examples), length_(length) {}

  absl::Status RunForward(const Forward& pass) override {
    return MaskSequences(device_,
                         {.offsets = pass.rows.offsets, .examples = examples_},
                         length_, pass.y);
  }

  absl::Status RunVariableGradients(const Backward& /*pass*/) override {
    return absl::OkStatus();
  }

  absl::Status RunInputGradients(const Backward& /*pass*/) override {
    return absl::OkStatus();
  }

 private:
  Device& device_;
  const int64_t examples_;
  const int64_t length_;
};

class SequenceMaskLayer final : public Layer {
 public:
  explicit SequenceMaskLayer(int64_t length) { output_shape_ = {length}; }

  bool KeepsOutputGradient() const override { return true; }
  bool IsRecordable() const override { return true; }
  absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device& device, int64_t examples) const override {
    return std::make_unique<SequenceMaskPass>(device, examples,
                                              output_shape()[0]);
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<const Layer>> MakeSequenceMask(
    absl::Span<const LayerInput> inputs) {
  ASSIGN_OR_RETURN(const LayerInput input, OnlyIdInput(inputs));
  if (StepsOf(input) == 0) {
    return absl::InvalidArgumentError(
        "a mask is of ids that are a sequence; give the input a sequence");
  }
  return std::make_unique<SequenceMaskLayer>(StepsOf(input));
}

}  // namespace parasol
