#ifndef PARASOL_TESTS_BENCHMARK_COMPUTE_WORKLOAD_H_
#define PARASOL_TESTS_BENCHMARK_COMPUTE_WORKLOAD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ml/input/feature/batch.h"
#include "proto/job.pb.h"

namespace parasol {

// A product [m, k] · [k, n] of a training step, that many times.
struct StepProduct {
  int64_t m = 0, k = 0, n = 0;
  int times = 0;
};

// A model that is trained on one batch of synthetic examples again and again.
struct ComputeWorkload {
  std::string name = {};  // as compute_plane_peer.py has it
  job::Model model = {};
  Batch batch = {};
  // What is multiplied in a step, convolutions as products of their windows
  // with their kernels: of each layer the forward pass and the two gradients,
  // less the inputs' gradient of the first.
  std::vector<StepProduct> products = {};
};

// MLP 784-512-10 with batch 128, LeNet-5 with 64, ResNet-56 for CIFAR with 32,
// Wide & Deep of 26 categorical columns and 13 numbers with 512.
std::vector<ComputeWorkload> AllComputeWorkloads();

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_COMPUTE_WORKLOAD_H_
