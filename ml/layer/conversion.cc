#include "ml/layer/conversion.h"

#include "absl/status/status.h"
#include "ml/kernel/image/convert.h"

namespace parasol {
namespace {

class ConversionPass final : public LayerPass {
 public:
  ConversionPass(Device& device, int64_t size) : device_(device), size_(size) {}

  absl::Status RunForward(const Forward& pass) override {
    return Convert(device_, pass.x[0], size_, pass.y);
  }
  absl::Status RunVariableGradients(const Backward& pass) override {
    return absl::OkStatus();
  }
  absl::Status RunInputGradients(const Backward& pass) override {
    if (pass.dx[0] == nullptr) return absl::OkStatus();
    return Convert(device_, pass.dy, size_, pass.dx[0]);
  }

 private:
  Device& device_;
  const int64_t size_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LayerPass>> Conversion::NewPass(
    Device& device, int64_t examples) const {
  return std::make_unique<ConversionPass>(
      device, examples * ElementsOf(output_shape()));
}

}  // namespace parasol
