#ifndef PARASOL_ML_DEVICE_CUDA_DNN_FUNCTIONS_H_
#define PARASOL_ML_DEVICE_CUDA_DNN_FUNCTIONS_H_

#include <cudnn.h>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/device/cuda_library.h"

namespace parasol {

// cuDNN's functions that are used here, typed by cuDNN's own declarations.
struct DnnFunctions {
  decltype(&cudnnCreate) create;
  decltype(&cudnnDestroy) destroy;
  decltype(&cudnnSetStream) set_stream;
  decltype(&cudnnCreateTensorDescriptor) create_tensor;
  decltype(&cudnnDestroyTensorDescriptor) destroy_tensor;
  decltype(&cudnnSetTensor4dDescriptor) set_tensor;
  decltype(&cudnnCreateFilterDescriptor) create_filter;
  decltype(&cudnnDestroyFilterDescriptor) destroy_filter;
  decltype(&cudnnSetFilter4dDescriptor) set_filter;
  decltype(&cudnnCreateConvolutionDescriptor) create_convolution;
  decltype(&cudnnDestroyConvolutionDescriptor) destroy_convolution;
  decltype(&cudnnSetConvolution2dDescriptor) set_convolution;
  decltype(&cudnnSetConvolutionMathType) set_math_type;
  decltype(&cudnnFindConvolutionForwardAlgorithm) find_forward;
  decltype(&cudnnFindConvolutionBackwardFilterAlgorithm) find_kernel;
  decltype(&cudnnFindConvolutionBackwardDataAlgorithm) find_input;
  decltype(&cudnnGetConvolutionForwardWorkspaceSize) forward_bytes;
  decltype(&cudnnGetConvolutionBackwardFilterWorkspaceSize) kernel_bytes;
  decltype(&cudnnGetConvolutionBackwardDataWorkspaceSize) input_bytes;
  decltype(&cudnnConvolutionForward) forward;
  decltype(&cudnnConvolutionBackwardFilter) kernel_gradient;
  decltype(&cudnnConvolutionBackwardData) input_gradient;
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
  RETURN_IF_ERROR(find("cudnnCreateTensorDescriptor", f.create_tensor));
  RETURN_IF_ERROR(find("cudnnDestroyTensorDescriptor", f.destroy_tensor));
  RETURN_IF_ERROR(find("cudnnSetTensor4dDescriptor", f.set_tensor));
  RETURN_IF_ERROR(find("cudnnCreateFilterDescriptor", f.create_filter));
  RETURN_IF_ERROR(find("cudnnDestroyFilterDescriptor", f.destroy_filter));
  RETURN_IF_ERROR(find("cudnnSetFilter4dDescriptor", f.set_filter));
  RETURN_IF_ERROR(
      find("cudnnCreateConvolutionDescriptor", f.create_convolution));
  RETURN_IF_ERROR(
      find("cudnnDestroyConvolutionDescriptor", f.destroy_convolution));
  RETURN_IF_ERROR(find("cudnnSetConvolution2dDescriptor", f.set_convolution));
  RETURN_IF_ERROR(find("cudnnSetConvolutionMathType", f.set_math_type));
  RETURN_IF_ERROR(find("cudnnFindConvolutionForwardAlgorithm", f.find_forward));
  RETURN_IF_ERROR(
      find("cudnnFindConvolutionBackwardFilterAlgorithm", f.find_kernel));
  RETURN_IF_ERROR(
      find("cudnnFindConvolutionBackwardDataAlgorithm", f.find_input));
  RETURN_IF_ERROR(
      find("cudnnGetConvolutionForwardWorkspaceSize", f.forward_bytes));
  RETURN_IF_ERROR(
      find("cudnnGetConvolutionBackwardFilterWorkspaceSize", f.kernel_bytes));
  RETURN_IF_ERROR(
      find("cudnnGetConvolutionBackwardDataWorkspaceSize", f.input_bytes));
  RETURN_IF_ERROR(find("cudnnConvolutionForward", f.forward));
  RETURN_IF_ERROR(find("cudnnConvolutionBackwardFilter", f.kernel_gradient));
  RETURN_IF_ERROR(find("cudnnConvolutionBackwardData", f.input_gradient));
  return f;
}

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_CUDA_DNN_FUNCTIONS_H_
