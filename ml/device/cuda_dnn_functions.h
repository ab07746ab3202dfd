#ifndef PARASOL_ML_DEVICE_CUDA_DNN_FUNCTIONS_H_
#define PARASOL_ML_DEVICE_CUDA_DNN_FUNCTIONS_H_

#include <cudnn.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "ml/device/cuda_library.h"

// Only for .cu files.
namespace parasol {

// cuDNN's functions that are used here, typed by cuDNN's own declarations.
struct DnnFunctions {
  decltype(&cudnnCreate) create;
  decltype(&cudnnDestroy) destroy;
  decltype(&cudnnSetStream) set_stream;
  decltype(&cudnnBackendCreateDescriptor) create_descriptor;
  decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor;
  decltype(&cudnnBackendSetAttribute) set_attribute;
  decltype(&cudnnBackendGetAttribute) get_attribute;
  decltype(&cudnnBackendFinalize) finalize;
  decltype(&cudnnBackendExecute) execute;
};

// Opens cuDNN and looks up its functions.
//   FailedPrecondition  the library is not on this machine.
inline absl::StatusOr<DnnFunctions> LoadDnn() {
  ASSIGN_OR_RETURN(
      const CudaLibrary library,
      CudaLibrary::Open("cuDNN", absl::StrCat("libcudnn.so.", CUDNN_MAJOR)));
  DnnFunctions f = {};
  const auto find = [&library](const char* name, auto& function) {
    return library.Find(name, function);
  };
  RETURN_IF_ERROR(find("cudnnCreate", f.create));
  RETURN_IF_ERROR(find("cudnnDestroy", f.destroy));
  RETURN_IF_ERROR(find("cudnnSetStream", f.set_stream));
  RETURN_IF_ERROR(find("cudnnBackendCreateDescriptor", f.create_descriptor));
  RETURN_IF_ERROR(find("cudnnBackendDestroyDescriptor", f.destroy_descriptor));
  RETURN_IF_ERROR(find("cudnnBackendSetAttribute", f.set_attribute));
  RETURN_IF_ERROR(find("cudnnBackendGetAttribute", f.get_attribute));
  RETURN_IF_ERROR(find("cudnnBackendFinalize", f.finalize));
  RETURN_IF_ERROR(find("cudnnBackendExecute", f.execute));
  return f;
}

// Returns `status` with what was done.
//   ResourceExhausted  the device is full.
//   Unimplemented      cuDNN does not support that.
//   Unavailable        anything else: the device was lost.
inline absl::Status DnnStatus(cudnnStatus_t status, absl::string_view what) {
  // CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED of cuDNN 9.
  constexpr int kDeviceIsFull = 4004;
  if (status == CUDNN_STATUS_SUCCESS) return absl::OkStatus();
  const std::string words =
      absl::StrCat(what, ": cuDNN status ", static_cast<int>(status));
  if (status == CUDNN_STATUS_ALLOC_FAILED || status == kDeviceIsFull) {
    return absl::ResourceExhaustedError(words);
  }
  // The thousands of a status are its kind, and the rest says which of that
  // kind.
  switch (status / 1000 * 1000) {
    case CUDNN_STATUS_NOT_SUPPORTED:
    case CUDNN_STATUS_BAD_PARAM:
      return absl::UnimplementedError(words);
    default:
      return absl::UnavailableError(words);
  }
}

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_CUDA_DNN_FUNCTIONS_H_
