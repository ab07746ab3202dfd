#ifndef PARASOL_ML_DEVICE_CUDA_LIBRARY_H_
#define PARASOL_ML_DEVICE_CUDA_LIBRARY_H_

#ifdef PARASOL_CUDA_ON_HOST
#include <cuda_on_host.h>
#else
#include <dlfcn.h>
#endif

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace parasol {

#ifdef PARASOL_CUDA_ON_HOST
// Functions that open the libraries of third_party/cuda_on_host.
using cuda_on_host::dlerror;
using cuda_on_host::dlopen;
using cuda_on_host::dlsym;
using cuda_on_host::RTLD_LOCAL;
using cuda_on_host::RTLD_NOW;
#endif

// A library of NVIDIA's that is opened when it is first needed. It stays open
// until the process ends, because it registers exit handlers. Only for .cu
// files.
class CudaLibrary {
 public:
  // Opens `file`; `name` is the library's name in errors.
  //   FailedPrecondition  the library is not on this machine.
  static absl::StatusOr<CudaLibrary> Open(std::string name,
                                          const std::string& file) {
    void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat(name, " cannot be opened: ", dlerror()));
    }
    return CudaLibrary(std::move(name), library);
  }

  // Sets `function` to the library's function of that name.
  //   FailedPrecondition  this version of the library has no such function.
  template <typename Function>
  absl::Status Find(const char* function_name, Function& function) const {
    function = reinterpret_cast<Function>(dlsym(library_, function_name));
    if (function != nullptr) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat(name_, " has no function ", function_name));
  }

 private:
  CudaLibrary(std::string name, void* library)
      : name_(std::move(name)), library_(library) {}

  std::string name_;
  void* library_;
};

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_CUDA_LIBRARY_H_
