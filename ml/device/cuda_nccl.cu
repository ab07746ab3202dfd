#include <cuda_runtime.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "ml/device/cuda_library.h"
#include "ml/device/cuda_nccl.h"
#include "ml/device/cuda_nccl_types.h"
#include "ml/device/cuda_status.h"

namespace parasol {
namespace {

struct NcclFunctions {
  int (*comm_init_all)(NcclRank* ranks, int count, const int* devices);
  int (*comm_destroy)(NcclRank rank);
  int (*group_start)();
  int (*group_end)();
  int (*all_reduce)(const void* from, void* to, size_t count, int type,
                    int operation, NcclRank rank, cudaStream_t stream);
  const char* (*error_string)(int result);
};

absl::StatusOr<NcclFunctions> LoadNccl() {
  ASSIGN_OR_RETURN(const CudaLibrary library,
                   CudaLibrary::Open("NCCL", "libnccl.so.2"));
  NcclFunctions functions;
  RETURN_IF_ERROR(library.Find("ncclCommInitAll", functions.comm_init_all));
  RETURN_IF_ERROR(library.Find("ncclCommDestroy", functions.comm_destroy));
  RETURN_IF_ERROR(library.Find("ncclGroupStart", functions.group_start));
  RETURN_IF_ERROR(library.Find("ncclGroupEnd", functions.group_end));
  RETURN_IF_ERROR(library.Find("ncclAllReduce", functions.all_reduce));
  RETURN_IF_ERROR(library.Find("ncclGetErrorString", functions.error_string));
  return functions;
}

class LoadedNccl final : public CudaNccl {
 public:
  LoadedNccl(const NcclFunctions& functions, std::vector<CudaDevice*> devices)
      : functions_(functions), devices_(std::move(devices)) {}
  ~LoadedNccl() override {
    for (NcclRank rank : ranks_) {
      if (rank != nullptr) functions_.comm_destroy(rank);
    }
    CudaDevice::SelectAnew();
  }

  absl::Status Start() {
    std::vector<int> indices;
    for (const CudaDevice* device : devices_)
      indices.push_back(device->index());
    std::vector<NcclRank> ranks(indices.size());
    const int result = functions_.comm_init_all(
        ranks.data(), static_cast<int>(ranks.size()), indices.data());
    CudaDevice::SelectAnew();
    RETURN_IF_ERROR(
        StatusOf(result, absl::StrCat("ncclCommInitAll for cuda:",
                                      absl::StrJoin(indices, ", cuda:"),
                                      " (with NCCL_DEBUG=WARN it says more)")));
    ranks_ = std::move(ranks);
    return absl::OkStatus();
  }

  // A call of one thread for one rank after the other would wait for the ranks
  // to come, so all are one group. A group that was begun is ended in any case.
  absl::Status AllReduce(absl::Span<float* const> arrays,
                         int64_t elements) override {
    std::vector<CUstream_st*> streams;
    for (CudaDevice* device : devices_) {
      ASSIGN_OR_RETURN(streams.emplace_back(), device->ComputeStream());
    }
    RETURN_IF_ERROR(StatusOf(functions_.group_start(), "ncclGroupStart"));
    absl::Status status;
    for (size_t i = 0; i < ranks_.size(); ++i) {
      status.Update(StatusOf(
          functions_.all_reduce(arrays[i], arrays[i], elements, kNcclFloat32,
                                kNcclSum, ranks_[i], streams[i]),
          "ncclAllReduce", devices_[i]));
    }
    status.Update(StatusOf(functions_.group_end(), "ncclGroupEnd"));
    CudaDevice::SelectAnew();
    return status;
  }

 private:
  absl::Status StatusOf(int result, absl::string_view what,
                        const CudaDevice* device = nullptr) const {
    if (result == kNcclSuccess) return absl::OkStatus();
    // Clears the error, which the next launch would otherwise report as its
    // own.
    cudaGetLastError();
    return absl::UnavailableError(
        absl::StrCat("NCCL: ", what, device == nullptr ? "" : " on ",
                     device == nullptr ? "" : device->name(), ": ",
                     functions_.error_string(result)));
  }

  const NcclFunctions functions_;
  const std::vector<CudaDevice*> devices_;
  std::vector<NcclRank> ranks_;  // one for each device
};

}  // namespace

absl::Status CudaNccl::Check() { return LoadNccl().status(); }

absl::StatusOr<std::unique_ptr<CudaNccl>> CudaNccl::Open(
    std::vector<CudaDevice*> devices) {
  ASSIGN_OR_RETURN(const NcclFunctions functions, LoadNccl());
  auto nccl = std::make_unique<LoadedNccl>(functions, std::move(devices));
  RETURN_IF_ERROR(nccl->Start());
  return nccl;
}

}  // namespace parasol
