#ifndef PARASOL_THIRD_PARTY_CUDA_ON_HOST_CUDA_ON_HOST_H_
#define PARASOL_THIRD_PARTY_CUDA_ON_HOST_CUDA_ON_HOST_H_

// The dynamic loader's functions for the stand-in's cuBLAS, cuDNN and NCCL,
// which are linked. They have a namespace, for <dlfcn.h> declares the names,
// too.
namespace cuda_on_host {

constexpr int RTLD_NOW = 2;
constexpr int RTLD_LOCAL = 0;

// Returns null if PARASOL_CUDA_ON_HOST_FAULT names `file`.
void* dlopen(const char* file, int mode);
// Returns null if the stand-in has no function of that name.
void* dlsym(void* library, const char* name);
const char* dlerror();

}  // namespace cuda_on_host

#endif  // PARASOL_THIRD_PARTY_CUDA_ON_HOST_CUDA_ON_HOST_H_
