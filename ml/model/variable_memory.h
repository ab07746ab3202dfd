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

namespace parasol {

// Where a model's variables and their gradients live, and how they travel
// between host and device. On the CPU nothing travels: kernels read and write
// the arrays that the caller sees.
//
// Two host arrays for each value, so that the next one arrives while this one
// is read, and two for each gradient, so that the last one leaves while this
// one is written. Not thread-safe.
class VariableMemory {
 public:
  // Borrows `device`. ResourceExhausted: it is full.
  static absl::StatusOr<VariableMemory> Create(
      const std::vector<VariableSpec>& variables, Device& device);

  // As Model's. On a CUDA device the copy is on the copy-in stream, which the
  // compute stream is to be ordered behind before a pass.
  absl::Span<float> HostValue(size_t index);
  absl::Status Upload(size_t index);

  // The kernels' inputs, one array per variable.
  absl::Span<const float* const> values() const { return values_; }

  // Before a backward pass: the gradients written from now on leave those of
  // the last pass in place. The first call allocates.
  absl::Status NextGradients();
  // Which of the two host arrays the gradients now go to.
  int gradient_side() const { return gradient_side_; }
  // The kernels' outputs, one array per variable.
  absl::Span<float* const> gradients() const { return gradients_; }
  // Starts to bring gradient `index` to the host once the compute stream gets
  // here, and waits until it is there.
  absl::Status FetchGradient(size_t index);
  absl::StatusOr<absl::Span<const float>> AwaitGradient(size_t index);

 private:
  struct Value {
    std::array<Array<float>, 2> host;
    Array<float> device;  // empty on the CPU
    int next = 0;         // host[next] is the caller's
  };
  struct Gradient {
    std::array<Array<float>, 2> host;
    std::unique_ptr<Device::Event> fetched;
    Array<float> device;  // empty on the CPU
  };

  explicit VariableMemory(Device& device) : device_(&device) {}

  absl::Status AddValue(size_t elements);
  absl::Status AddGradient(size_t elements);

  Device* device_;
  std::vector<Value> value_memory_;
  std::vector<Gradient> gradient_memory_;
  int gradient_side_ = 0;
  std::vector<const float*> values_;
  std::vector<float*> gradients_;
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_VARIABLE_MEMORY_H_
