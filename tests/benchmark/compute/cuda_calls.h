#ifndef PARASOL_TESTS_BENCHMARK_COMPUTE_CUDA_CALLS_H_
#define PARASOL_TESTS_BENCHMARK_COMPUTE_CUDA_CALLS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ml/device/precision.h"
#include "proto/job.pb.h"
#include "tests/benchmark/compute/training_step.h"
#include "third_party/cuda_on_host/counts.h"

namespace parasol {

// A model, and the number of examples of its batches. More examples have more
// bytes, and may need kernels that add up slices.
struct CountedModel {
  std::string name = {};
  job::Model model = {};
  int64_t examples = 0;
  // Place of variables and tables.
  TrainingStep::Updates updates = TrainingStep::Updates::kOnHost;
  Precision precision = Precision::kFloat32;
};

// Returns an MLP, with and without dropout, ResNet-56, Wide & Deep and DeepFM
// with updates on the host, as for a worker of a cluster, some of them with
// updates on the device, as for a worker without one, and in bfloat16 ResNet-56
// and a residual block whose convolutions are cuDNN's.
std::vector<CountedModel> AllCountedModels();

// Returns what a training step in the steady state asks of CUDA: batch, and
// perhaps values, to the device, forward and backward pass, gradients to the
// host or updates. Only with --config=cuda_host.
absl::StatusOr<cuda_on_host::Counts> CallsOfAStep(const CountedModel& counted,
                                                  bool cuda_graphs);

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_COMPUTE_CUDA_CALLS_H_
