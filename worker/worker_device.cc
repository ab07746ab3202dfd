#include "worker/worker_device.h"

namespace parasol {
namespace {

Precision PrecisionOf(const job::WorkerSettings& settings) {
  switch (settings.precision()) {
    case job::WorkerSettings::FLOAT32:
      return Precision::kFloat32;
    case job::WorkerSettings::TF32:
      return Precision::kTf32;
    case job::WorkerSettings::BFLOAT16:
      return Precision::kBfloat16;
  }
  return Precision::kFloat32;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> OpenDevice(
    absl::string_view name, int threads, const job::WorkerSettings& settings) {
  return Device::Open(name, {.threads = threads,
                             .precision = PrecisionOf(settings),
                             .cuda_graphs = !settings.has_cuda_graphs() ||
                                            settings.cuda_graphs()});
}

}  // namespace parasol
