#ifndef PARASOL_ML_OPTIMIZER_DEVICE_DENSE_UPDATE_H_
#define PARASOL_ML_OPTIMIZER_DEVICE_DENSE_UPDATE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/device/device.h"
#include "ml/optimizer/optimizer.h"
#include "ml/optimizer/rule/update_rule.h"
#include "proto/job.pb.h"

namespace parasol {

// The updates of several variables by one optimizer, in the memory of a device.
// All variables together are clipped and updated by a few launches, and nothing
// is copied to the host.
//
// Values and slots have the bits that ml/optimizer/clip.h and
// Optimizer::Apply() give, on every device, as far as rule/rule.h says.
// Not thread-safe.
class DenseUpdate {
 public:
  // Arrays of one variable, in the device's memory, of `count` elements each.
  // None overlaps another one.
  struct Variable {
    int64_t count = 0;
    float* gradient = nullptr;
    float* value = nullptr;
    std::array<float*, kMaxSlots> slots = {};  // slot_names().size() are used
  };

  // Returns an object for updates of `variables`, whose arrays stay where they
  // are. Gradients are clipped as `limits` says, by value, each by its norm,
  // then all by their common norm, in this order. Borrows device and optimizer.
  //   ResourceExhausted  the device is full.
  static absl::StatusOr<std::unique_ptr<DenseUpdate>> Create(
      Device& device, const Optimizer& optimizer, const job::Optimizer& limits,
      std::vector<Variable> variables);
  virtual ~DenseUpdate() = default;

  // Enqueues one update of each variable on the compute stream. Variable i has
  // had iterations[i] updates. The gradients are unspecified afterwards.
  //   Unavailable  the device was lost.
  virtual absl::Status Apply(absl::Span<const int64_t> iterations) = 0;
};

// The implementations for CPU and CUDA devices. DenseUpdate::Create() calls the
// one for `device`.
namespace cpu {
absl::StatusOr<std::unique_ptr<DenseUpdate>> NewDenseUpdate(
    Device& device, const Optimizer& optimizer, const job::Optimizer& limits,
    std::vector<DenseUpdate::Variable> variables);
}  // namespace cpu

namespace cuda {
absl::StatusOr<std::unique_ptr<DenseUpdate>> NewDenseUpdate(
    Device& device, const Optimizer& optimizer, const job::Optimizer& limits,
    std::vector<DenseUpdate::Variable> variables);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_DEVICE_DENSE_UPDATE_H_
