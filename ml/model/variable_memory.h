#ifndef PARASOL_ML_MODEL_VARIABLE_MEMORY_H_
#define PARASOL_ML_MODEL_VARIABLE_MEMORY_H_

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/device/device.h"
#include "ml/layer/variable_spec.h"
#include "ml/model/device_training.h"

namespace parasol {

// Memory for a model's variables and their gradients, and their way between
// host and device. On the CPU nothing is copied: kernels read and write the
// arrays that the caller sees.
//
// Each value has two host arrays, so that the next value arrives while the
// present one is read. Each gradient has two as well, so that the last one is
// sent while the present one is written. Not thread-safe.
class VariableMemory {
 public:
  // Borrows `device`.
  //   ResourceExhausted  the device is full.
  static absl::StatusOr<VariableMemory> Create(
      const std::vector<VariableSpec>& variables, Device& device);

  // The same as Model's functions of these names. On a CUDA device the copy is
  // on the copy-in stream; the caller orders the compute stream behind it
  // before a pass.
  absl::Span<float> HostValue(size_t index);
  absl::Status Upload(size_t index);

  // The kernels' inputs, one array per variable.
  absl::Span<const float* const> values() const { return values_; }

  // Returns the arrays of each variable on a device that does not share the
  // host's memory. They stay where they are, and there are none on the host
  // from now on: no value may be uploaded and no gradient fetched.
  absl::StatusOr<std::vector<DeviceTraining::Variable>> OnDevice();

  // Prepares a backward pass: the gradients written from now on leave those of
  // the last pass in place. The first call allocates.
  absl::Status NextGradients();
  // Index, 0 or 1, of the host array of each gradient that is written now.
  int gradient_side() const { return gradient_side_; }
  // The kernels' outputs, one array per variable.
  absl::Span<float* const> gradients() const { return gradients_; }
  // FetchGradient() enqueues the copy of gradient `index` to the host behind
  // the work that is on the compute stream now; AwaitGradient() blocks until it
  // is there.
  absl::Status FetchGradient(size_t index);
  absl::StatusOr<absl::Span<const float>> AwaitGradient(size_t index);

 private:
  struct Value {
    std::array<Array<float>, 2> host;
    Array<float> device;  // empty on the CPU
    int next = 0;         // host[next] is the one that the caller writes
  };
  struct Gradient {
    std::array<Array<float>, 2> host;
    std::unique_ptr<Device::Event> fetched;
    Array<float> device;  // empty on the CPU
  };

  explicit VariableMemory(Device& device) : device_(&device) {}

  absl::Status AddValue(size_t elements);
  absl::Status AddGradient(size_t elements);
  // Allocates the gradients, once.
  absl::Status AddGradients();

  Device* device_;
  std::vector<Value> value_memory_;
  std::vector<Gradient> gradient_memory_;
  int gradient_side_ = 0;
  bool has_host_arrays_ = true;
  std::vector<const float*> values_;
  std::vector<float*> gradients_;
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_VARIABLE_MEMORY_H_
