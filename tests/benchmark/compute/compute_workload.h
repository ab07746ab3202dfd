#ifndef PARASOL_TESTS_BENCHMARK_COMPUTE_COMPUTE_WORKLOAD_H_
#define PARASOL_TESTS_BENCHMARK_COMPUTE_COMPUTE_WORKLOAD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ml/input/feature/batch.h"
#include "proto/job.pb.h"

namespace parasol {

// A product [m, k] · [k, n] that a training step computes `times` times.
struct StepProduct {
  int64_t m = 0, k = 0, n = 0;
  int times = 0;
};

// A model that is trained on one batch of synthetic examples again and again.
struct ComputeWorkload {
  std::string name = {};  // name in compute_plane_peer.py
  job::Model model = {};
  Batch batch = {};
  // Products of a step; a convolution is the product of its windows with its
  // kernels. Each layer has one product for its forward pass and one for each
  // of its two gradients, except the inputs' gradient of the first layer.
  std::vector<StepProduct> products = {};
  // A step takes a CPU many seconds.
  bool only_if_chosen = false;
};

// Returns MLP 784-512-10 with batch 128, LeNet-5 with 64, ResNet-56 for CIFAR
// with 32, ResNet-50 for ImageNet with 32, whose products are not listed, and
// Wide & Deep of 26 categorical columns and 13 numbers with 512.
std::vector<ComputeWorkload> AllComputeWorkloads();

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_COMPUTE_COMPUTE_WORKLOAD_H_
