// The stand-in's cuBLAS, cuDNN and NCCL as libraries that are opened.

#include <cublas_v2.h>
#include <cuda_on_host.h>
#include <cudnn.h>
#include <nccl.h>

#include <map>
#include <string>

#include "third_party/cuda_on_host/settings.h"

namespace cuda_on_host {
namespace {

using Functions = std::map<std::string, void*>;

#define CUDA_ON_HOST_FUNCTION(name) \
  { #name, reinterpret_cast < void*>(&name) }

const std::map<std::string, Functions>& Libraries() {
  static const auto* const libraries = new std::map<std::string, Functions>{
      {"libcublas.so.13",
       {
           CUDA_ON_HOST_FUNCTION(cublasCreate_v2),
           CUDA_ON_HOST_FUNCTION(cublasDestroy_v2),
           CUDA_ON_HOST_FUNCTION(cublasSetStream_v2),
           CUDA_ON_HOST_FUNCTION(cublasSetWorkspace_v2),
           CUDA_ON_HOST_FUNCTION(cublasSetMathMode),
           CUDA_ON_HOST_FUNCTION(cublasGemmEx),
       }},
      {"libcudnn.so.9",
       {
           CUDA_ON_HOST_FUNCTION(cudnnCreate),
           CUDA_ON_HOST_FUNCTION(cudnnDestroy),
           CUDA_ON_HOST_FUNCTION(cudnnSetStream),
           CUDA_ON_HOST_FUNCTION(cudnnBackendCreateDescriptor),
           CUDA_ON_HOST_FUNCTION(cudnnBackendDestroyDescriptor),
           CUDA_ON_HOST_FUNCTION(cudnnBackendSetAttribute),
           CUDA_ON_HOST_FUNCTION(cudnnBackendGetAttribute),
           CUDA_ON_HOST_FUNCTION(cudnnBackendFinalize),
           CUDA_ON_HOST_FUNCTION(cudnnBackendExecute),
       }},
      {"libnccl.so.2",
       {
           CUDA_ON_HOST_FUNCTION(ncclGetVersion),
           CUDA_ON_HOST_FUNCTION(ncclGetErrorString),
           CUDA_ON_HOST_FUNCTION(ncclGetUniqueId),
           CUDA_ON_HOST_FUNCTION(ncclCommInitAll),
           CUDA_ON_HOST_FUNCTION(ncclCommInitRank),
           CUDA_ON_HOST_FUNCTION(ncclCommInitRankConfig),
           CUDA_ON_HOST_FUNCTION(ncclCommDestroy),
           CUDA_ON_HOST_FUNCTION(ncclCommAbort),
           CUDA_ON_HOST_FUNCTION(ncclCommGetAsyncError),
           CUDA_ON_HOST_FUNCTION(ncclCommCount),
           CUDA_ON_HOST_FUNCTION(ncclCommCuDevice),
           CUDA_ON_HOST_FUNCTION(ncclCommUserRank),
           CUDA_ON_HOST_FUNCTION(ncclRedOpCreatePreMulSum),
           CUDA_ON_HOST_FUNCTION(ncclRedOpDestroy),
           CUDA_ON_HOST_FUNCTION(ncclGroupStart),
           CUDA_ON_HOST_FUNCTION(ncclGroupEnd),
           CUDA_ON_HOST_FUNCTION(ncclAllReduce),
           CUDA_ON_HOST_FUNCTION(ncclReduceScatter),
           CUDA_ON_HOST_FUNCTION(ncclAllGather),
           CUDA_ON_HOST_FUNCTION(ncclBroadcast),
           CUDA_ON_HOST_FUNCTION(ncclSend),
           CUDA_ON_HOST_FUNCTION(ncclRecv),
       }},
  };
  return *libraries;
}

thread_local std::string last_problem;

}  // namespace

void* dlopen(const char* file, int mode) {
  const auto found = Libraries().find(file);
  if (found == Libraries().end() || FaultOf(file) != 0) {
    last_problem = std::string(file) + ": not on this machine";
    return nullptr;
  }
  return const_cast<Functions*>(&found->second);
}

void* dlsym(void* library, const char* name) {
  const auto& functions = *static_cast<const Functions*>(library);
  const auto found = functions.find(name);
  return found == functions.end() ? nullptr : found->second;
}

const char* dlerror() { return last_problem.c_str(); }

}  // namespace cuda_on_host
