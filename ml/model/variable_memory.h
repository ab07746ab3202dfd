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
#include "ml/model/device_training.h"
#include "ml/model/graph.h"
#include "ml/model/variable_layout.h"

namespace parasol {

// Memory for a model's variables and their gradients, and their way between
// host and device. On the CPU nothing is copied: kernels read and write the
// arrays that the caller sees.
//
// All values lie in one array, and all gradients in another, so that a few
// copies take all. On the host there are two of each: the next values arrive
// while the present ones are read, and the last gradients are sent while the
// present ones are written. Not thread-safe.
class VariableMemory {
 public:
  // Borrows `device`.
  //   ResourceExhausted  the device is full.
  static absl::StatusOr<VariableMemory> Create(const Graph& graph,
                                               Device& device);

  const VariableLayout& layout() const { return layout_; }

  // Act as Model's functions of these names. On a CUDA device Upload() of a
  // piece's last variable starts the copy of the whole piece, on the copy-in
  // stream.
  absl::Span<float> HostValue(size_t index);
  absl::Status Upload(size_t index);
  // Starts the copies that Upload() has left. The caller orders the compute
  // stream behind the copy-in stream before a pass.
  absl::Status FinishUploads();

  // The kernels' inputs, one array per variable.
  absl::Span<const float* const> values() const { return values_; }

  // Returns the arrays of each variable on a device that does not share the
  // host's memory. They stay where they are, and there are none on the host
  // from now on: no value may be uploaded and no gradient fetched.
  absl::StatusOr<std::vector<DeviceTraining::Variable>> OnDevice();
  // Returns the array of all gradients on such a device, after OnDevice().
  absl::Span<float> GradientsOnDevice() const {
    return device_gradients_.span();
  }

  // Prepares a backward pass that leaves the last pass's gradients in place.
  // The first call allocates.
  absl::Status NextGradients();
  // Index, 0 or 1, of the host array of each gradient that is written now.
  int gradient_side() const { return gradient_side_; }
  // The kernels' outputs, one array per variable.
  absl::Span<float* const> gradients() const { return gradients_; }
  // FetchGradients() enqueues the copy of a piece's gradients to the host
  // behind the work that is on the compute stream now; AwaitGradients() blocks
  // until they are there, as HostGradient()s. No effect on the CPU.
  absl::Status FetchGradients(const VariableRange& piece);
  absl::Status AwaitGradients(const VariableRange& piece);
  absl::Span<const float> HostGradient(size_t index) const;

 private:
  explicit VariableMemory(Device& device) : device_(&device) {}

  // Part of one of the arrays.
  absl::Span<float> Part(const Array<float>& array, size_t index) const {
    return array.span().subspan(layout_.offsets[index], elements_[index]);
  }
  absl::Status CopyValues(const VariableRange& piece);
  absl::Status AllocateGradients();

  Device* device_;
  VariableLayout layout_;
  std::vector<size_t> elements_;  // one per variable
  bool has_host_arrays_ = true;
  std::array<Array<float>, 2> host_values_;
  Array<float> device_values_;     // empty on the CPU
  std::vector<int> next_side_;     // one per variable: what the caller writes
  std::vector<bool> is_uploaded_;  // one per variable: not copied yet
  std::vector<size_t> uploaded_;   // one per piece: number of those
  std::vector<const float*> values_;

  std::array<Array<float>, 2> host_gradients_;
  Array<float> device_gradients_;                        // empty on the CPU
  std::vector<std::unique_ptr<Device::Event>> fetched_;  // one per piece
  int gradient_side_ = 0;
  std::vector<float*> gradients_;
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_VARIABLE_MEMORY_H_
