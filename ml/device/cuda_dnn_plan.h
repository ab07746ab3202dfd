#ifndef PARASOL_ML_DEVICE_CUDA_DNN_PLAN_H_
#define PARASOL_ML_DEVICE_CUDA_DNN_PLAN_H_

#include <cudnn.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ml/device/cuda_dnn.h"
#include "ml/device/cuda_dnn_functions.h"

// One pass of a convolution as a graph of cuDNN's with one operation, and the
// plan that carries it out. Only for .cu files.
namespace parasol {

// A descriptor of cuDNN's graph interface.
class DnnDescriptor {
 public:
  static absl::StatusOr<DnnDescriptor> Create(
      const DnnFunctions& f, cudnnBackendDescriptorType_t type) {
    cudnnBackendDescriptor_t descriptor = nullptr;
    RETURN_IF_ERROR(
        DnnStatus(f.create_descriptor(type, &descriptor), "descriptor"));
    return DnnDescriptor(f, descriptor);
  }
  DnnDescriptor(DnnDescriptor&& other) noexcept
      : f_(other.f_), descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  DnnDescriptor& operator=(DnnDescriptor&& other) noexcept {
    std::swap(f_, other.f_);
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~DnnDescriptor() {
    if (descriptor_ != nullptr) f_->destroy_descriptor(descriptor_);
  }

  cudnnBackendDescriptor_t get() const { return descriptor_; }

  template <typename T>
  absl::Status Set(cudnnBackendAttributeName_t name,
                   cudnnBackendAttributeType_t type,
                   absl::Span<const T> values) {
    return DnnStatus(
        f_->set_attribute(descriptor_, name, type,
                          static_cast<int64_t>(values.size()), values.data()),
        "attribute");
  }
  template <typename T>
  absl::Status Set(cudnnBackendAttributeName_t name,
                   cudnnBackendAttributeType_t type, const T& value) {
    return Set(name, type, absl::MakeConstSpan(&value, 1));
  }
  absl::Status Set(cudnnBackendAttributeName_t name,
                   const DnnDescriptor& value) {
    return Set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, value.descriptor_);
  }

  // Reads as many values as there are and fit; returns their number.
  template <typename T>
  absl::StatusOr<int64_t> Get(cudnnBackendAttributeName_t name,
                              cudnnBackendAttributeType_t type,
                              absl::Span<T> values) const {
    int64_t count = 0;
    RETURN_IF_ERROR(
        DnnStatus(f_->get_attribute(descriptor_, name, type,
                                    static_cast<int64_t>(values.size()), &count,
                                    values.data()),
                  "attribute"));
    return std::min(count, static_cast<int64_t>(values.size()));
  }

  absl::Status Finalize(absl::string_view what) {
    return DnnStatus(f_->finalize(descriptor_), what);
  }

 private:
  DnnDescriptor(const DnnFunctions& f, cudnnBackendDescriptor_t descriptor)
      : f_(&f), descriptor_(descriptor) {}

  const DnnFunctions* f_;
  cudnnBackendDescriptor_t descriptor_;
};

enum class DnnPass { kForward, kKernelGradient, kInputGradient };

// The way in which cuDNN computes one pass.
class DnnPlan {
 public:
  // Returns the first plan of cuDNN's heuristics that gives the same bits every
  // time, adds up in float32, and needs at most `max_workspace_bytes`. The
  // choice is not measured, so that all processes with one kind of device
  // compute the same bits. All three arrays have elements of `type`. `f` and
  // `handle` must outlive the result.
  //   Unimplemented      there is no such plan.
  //   ResourceExhausted  the device is full.
  static absl::StatusOr<DnnPlan> Create(const DnnFunctions& f,
                                        cudnnHandle_t handle, DnnPass pass,
                                        const DnnConvolutionShape& shape,
                                        cudnnDataType_t type,
                                        int64_t max_workspace_bytes);

  int64_t workspace_bytes() const { return workspace_bytes_; }

  // Enqueues the pass on the handle's stream. Arrays are NHWC, and the kernel
  // is [filters, height, width, channels]; all are aligned to kAlignment bytes.
  // The one that the pass computes is written.
  static constexpr int64_t kAlignment = DnnConvolution::kAlignment;
  absl::Status Run(void* x, void* kernel, void* y, void* workspace) const;

 private:
  DnnPlan(const DnnFunctions& f, cudnnHandle_t handle,
          std::vector<DnnDescriptor> parts, DnnDescriptor plan,
          int64_t workspace_bytes)
      : f_(&f),
        handle_(handle),
        parts_(std::move(parts)),
        plan_(std::move(plan)),
        workspace_bytes_(workspace_bytes) {}

  const DnnFunctions* f_;
  cudnnHandle_t handle_;
  std::vector<DnnDescriptor> parts_;  // all that the plan was made of
  DnnDescriptor plan_;
  int64_t workspace_bytes_;
};

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_CUDA_DNN_PLAN_H_
