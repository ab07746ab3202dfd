#ifndef PARASOL_ML_DEVICE_CUDA_RECORDER_H_
#define PARASOL_ML_DEVICE_CUDA_RECORDER_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ml/device/recorder.h"

struct CUstream_st;

namespace parasol {

class CudaDevice;

// A recorder that captures the compute stream into a CUDA graph, together with
// the copy-out stream where it is ordered behind the compute stream.
class CudaRecorder : public Recorder {
 public:
  // `device` and `copy_out` must outlive the recorder.
  CudaRecorder(CudaDevice& device, CUstream_st* copy_out)
      : device_(device), copy_out_(copy_out) {}

  bool is_recording() const { return is_recording_; }

  absl::StatusOr<std::unique_ptr<Recording>> Record(
      const std::function<absl::Status()>& enqueue) override;
  absl::Status Replay(Recording& recording) override;
  int64_t replayed() const override { return replayed_; }

 private:
  absl::Status JoinCopies();

  CudaDevice& device_;
  CUstream_st* const copy_out_;
  bool is_recording_ = false;
  int64_t replayed_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_CUDA_RECORDER_H_
