#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "ml/device/cuda_launch.h"
#include "ml/device/cuda_library.h"
#include "ml/device/cuda_nccl_types.h"
#include "ml/device/cuda_peer.h"
#include "ml/device/cuda_status.h"

namespace parasol {
namespace {

using PeerClock = std::chrono::steady_clock;

// Time for which a wait looks again at once, and the time between later looks.
constexpr std::chrono::microseconds kPeerSpin{200};
constexpr absl::Duration kPeerPause = absl::Microseconds(50);

struct NcclPeerFunctions {
  int (*unique_id)(NcclId* id);
  int (*comm_init)(NcclRank* rank, int ranks, NcclId id, int number,
                   NcclConfig* config);
  int (*comm_abort)(NcclRank rank);
  int (*async_error)(NcclRank rank, int* error);
  int (*all_reduce)(const void* from, void* to, size_t count, int type,
                    int operation, NcclRank rank, cudaStream_t stream);
  const char* (*error_string)(int result);
};

absl::StatusOr<NcclPeerFunctions> LoadPeerFunctions() {
  ASSIGN_OR_RETURN(const CudaLibrary library,
                   CudaLibrary::Open("NCCL", "libnccl.so.2"));
  NcclPeerFunctions functions;
  RETURN_IF_ERROR(library.Find("ncclGetUniqueId", functions.unique_id));
  RETURN_IF_ERROR(library.Find("ncclCommInitRankConfig", functions.comm_init))
      << "NCCL 2.14 is the first that can be used between workers";
  RETURN_IF_ERROR(library.Find("ncclCommAbort", functions.comm_abort));
  RETURN_IF_ERROR(library.Find("ncclCommGetAsyncError", functions.async_error));
  RETURN_IF_ERROR(library.Find("ncclAllReduce", functions.all_reduce));
  RETURN_IF_ERROR(library.Find("ncclGetErrorString", functions.error_string));
  return functions;
}

// Looks again at once for a while, then now and then.
void PauseSince(PeerClock::time_point since) {
  if (PeerClock::now() - since < kPeerSpin) return;
  Clock::Real().Pause(kPeerPause);
}

// The sum of several arrays, in their order.
struct SumOfTerms {
  static constexpr size_t kMost = 8;
  const float* terms[kMost];
  size_t count;
  float* sum;

  __device__ void operator()(int64_t i) const {
    float element = terms[0][i];
    for (size_t term = 1; term < count; ++term) element += terms[term][i];
    sum[i] = element;
  }
};

class LoadedPeer final : public CudaPeer {
 public:
  LoadedPeer(const NcclPeerFunctions& functions, const CudaDevice& device)
      : functions_(functions), device_(device) {}
  ~LoadedPeer() override {
    Leave();
    if (stream_ == nullptr) return;
    cudaSetDevice(device_.index());
    cudaStreamDestroy(stream_);
    CudaDevice::SelectAnew();
  }

  absl::Status Start(const NcclId& id, int ranks, int rank, MayGoOn may_go_on) {
    const absl::Cleanup reselect = [] { CudaDevice::SelectAnew(); };
    RETURN_IF_ERROR(
        CudaStatus(cudaSetDevice(device_.index()), "cudaSetDevice"));
    RETURN_IF_ERROR(
        CudaStatus(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                   "cudaStreamCreate"));
    NcclConfig config;
    const int result = functions_.comm_init(&rank_, ranks, id, rank, &config);
    if (result != kNcclSuccess && result != kNcclInProgress) {
      return absl::InvalidArgumentError(
          Words(result, "ncclCommInitRankConfig"));
    }
    return AwaitUnderWay("ncclCommInitRankConfig", may_go_on, kJoinLimit);
  }

  absl::Status Begin(const Pack& pack, MayGoOn may_go_on) override {
    const absl::Cleanup reselect = [] { CudaDevice::SelectAnew(); };
    absl::Status begun = Enqueue(pack, may_go_on);
    if (!begun.ok()) Leave();
    return begun;
  }
  absl::Status Await(MayGoOn may_go_on) override {
    const absl::Cleanup reselect = [] { CudaDevice::SelectAnew(); };
    absl::Status awaited = AwaitStream(may_go_on);
    if (!awaited.ok()) Leave();
    return awaited;
  }

 private:
  std::string Words(int result, absl::string_view what) const {
    // Clears the error, which the next launch would otherwise report as its
    // own.
    cudaGetLastError();
    return absl::StrCat("NCCL: ", what, " on ", device_.name(), ": ",
                        functions_.error_string(result),
                        " (with NCCL_DEBUG=WARN it says more)");
  }

  // Ends NCCL's part, whose kernels end as well, and waits for the copies and
  // sums behind them: the next group's lie where they write. What they wait for
  // is the device's own passes.
  void Leave() {
    if (rank_ == nullptr) return;
    functions_.comm_abort(std::exchange(rank_, nullptr));
    cudaSetDevice(device_.index());
    cudaStreamSynchronize(stream_);
  }

  absl::Status AsyncError(absl::string_view what, bool& in_progress) const {
    int error = kNcclSuccess;
    const int asked = functions_.async_error(rank_, &error);
    if (asked != kNcclSuccess) error = asked;
    in_progress = error == kNcclInProgress;
    if (error == kNcclSuccess || in_progress) return absl::OkStatus();
    return absl::UnavailableError(Words(error, what));
  }

  // Waits for a call that was begun to have done its part on the host.
  absl::Status AwaitUnderWay(absl::string_view what, MayGoOn may_go_on,
                             absl::Duration limit) {
    const PeerClock::time_point start = PeerClock::now();
    while (true) {
      bool in_progress = false;
      RETURN_IF_ERROR(AsyncError(what, in_progress));
      if (!in_progress) return absl::OkStatus();
      RETURN_IF_ERROR(may_go_on());
      if (absl::FromChrono(PeerClock::now() - start) > limit) {
        return absl::DeadlineExceededError(absl::StrCat(
            "NCCL: ", what, " on ", device_.name(), ": ranks have not come in ",
            absl::FormatDuration(limit)));
      }
      PauseSince(start);
    }
  }

  // The caller's word is the limit, as in AwaitStream(): NCCL may connect to
  // ranks that are still in their first pass.
  absl::Status Enqueue(const Pack& pack, MayGoOn may_go_on) {
    if (rank_ == nullptr) return HasLeft();
    RETURN_IF_ERROR(
        CudaStatus(cudaSetDevice(device_.index()), "cudaSetDevice"));
    for (Device::Event* const written : pack.written) {
      RETURN_IF_ERROR(CudaStatus(
          cudaStreamWaitEvent(stream_, CudaDevice::EventOf(*written), 0),
          "cudaStreamWaitEvent"));
    }
    ASSIGN_OR_RETURN(const float* const own, EnqueueOwnSum(pack));
    const int result = functions_.all_reduce(
        own, pack.sum, pack.elements, kNcclFloat32, kNcclSum, rank_, stream_);
    if (result != kNcclSuccess && result != kNcclInProgress) {
      return absl::UnavailableError(Words(result, "ncclAllReduce"));
    }
    RETURN_IF_ERROR(
        AwaitUnderWay("ncclAllReduce", may_go_on, absl::InfiniteDuration()));
    if (pack.on_host == nullptr) return absl::OkStatus();
    return CudaStatus(
        cudaMemcpyAsync(pack.on_host, pack.sum, pack.elements * sizeof(float),
                        cudaMemcpyDeviceToHost, stream_),
        absl::StrCat("copy of sums from ", device_.name()));
  }

  absl::Status HasLeft() const {
    return absl::UnavailableError("NCCL: the rank has left");
  }

  // Returns the array that this rank brings: a lone term as it is.
  absl::StatusOr<const float*> EnqueueOwnSum(const Pack& pack) {
    if (pack.terms.size() == 1) return pack.terms.front();
    if (pack.terms.empty()) {
      RETURN_IF_ERROR(CudaStatus(
          cudaMemsetAsync(pack.sum, 0, pack.elements * sizeof(float), stream_),
          "cudaMemsetAsync"));
    }
    for (size_t first = 0; first < pack.terms.size();) {
      SumOfTerms kernel = {.terms = {}, .count = 0, .sum = pack.sum};
      if (first > 0) kernel.terms[kernel.count++] = pack.sum;
      while (kernel.count < SumOfTerms::kMost && first < pack.terms.size()) {
        kernel.terms[kernel.count++] = pack.terms[first++];
      }
      RETURN_IF_ERROR(
          cuda::ForEach(stream_, "sum of replicas", pack.elements, kernel));
    }
    return pack.sum;
  }

  // The caller's word is the limit: others may take as long as their pass does.
  absl::Status AwaitStream(MayGoOn may_go_on) {
    if (rank_ == nullptr) return HasLeft();
    RETURN_IF_ERROR(
        CudaStatus(cudaSetDevice(device_.index()), "cudaSetDevice"));
    const PeerClock::time_point start = PeerClock::now();
    while (true) {
      const cudaError_t done = cudaStreamQuery(stream_);
      if (done == cudaSuccess) return absl::OkStatus();
      if (done != cudaErrorNotReady) {
        return CudaStatus(done,
                          absl::StrCat("sum by NCCL on ", device_.name()));
      }
      cudaGetLastError();
      bool in_progress = false;
      RETURN_IF_ERROR(AsyncError("ncclAllReduce", in_progress));
      RETURN_IF_ERROR(may_go_on());
      PauseSince(start);
    }
  }

  const NcclPeerFunctions functions_;
  const CudaDevice& device_;
  cudaStream_t stream_ = nullptr;
  NcclRank rank_ = nullptr;
};

}  // namespace

absl::Status CudaPeer::CheckLibrary() { return LoadPeerFunctions().status(); }

absl::StatusOr<std::string> CudaPeer::NewMeeting() {
  ASSIGN_OR_RETURN(const NcclPeerFunctions functions, LoadPeerFunctions());
  NcclId id;
  const int result = functions.unique_id(&id);
  CudaDevice::SelectAnew();
  if (result != kNcclSuccess) {
    return absl::UnavailableError(absl::StrCat("NCCL: ncclGetUniqueId: ",
                                               functions.error_string(result)));
  }
  return std::string(id.bytes, sizeof(id.bytes));
}

absl::StatusOr<std::unique_ptr<DevicePeer>> CudaPeer::Join(
    const CudaDevice& device, const std::string& meeting, int ranks, int rank,
    MayGoOn may_go_on) {
  NcclId id;
  if (meeting.size() != sizeof(id.bytes)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the ranks' meeting has ", meeting.size(), " bytes, NCCL's have ",
        sizeof(id.bytes), ": give all workers the same binary"));
  }
  std::memcpy(id.bytes, meeting.data(), sizeof(id.bytes));
  ASSIGN_OR_RETURN(const NcclPeerFunctions functions, LoadPeerFunctions());
  auto peer = std::make_unique<LoadedPeer>(functions, device);
  RETURN_IF_ERROR(peer->Start(id, ranks, rank, may_go_on));
  return peer;
}

}  // namespace parasol
