#ifndef PARASOL_ML_OPTIMIZER_DEVICE_UPDATE_KERNELS_H_
#define PARASOL_ML_OPTIMIZER_DEVICE_UPDATE_KERNELS_H_

#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "ml/device/device.h"
#include "ml/optimizer/rule/update_rule.h"

// The kernels of DenseUpdate on a CUDA device. Each is launched once for all
// variables, a block for each chunk of kSumChunk elements (rule/clip.h), and
// finds the arrays by tables in the device's memory.
//
// All functions enqueue on the compute stream and return. Error Unavailable:
// the device was lost.
namespace parasol::cuda {

// Addresses of one variable's arrays, and its range of chunks.
struct UpdateArrays {
  const float* gradient;
  float* value;
  float* slots[kMaxSlots];
  int64_t count;
  int64_t first_chunk;
  int64_t num_chunks;
};

struct UpdateChunk {
  int64_t variable;
  int64_t begin;  // first element
};

// Tables of all variables and of their chunks, in the order of the variables.
struct UpdateTables {
  const UpdateArrays* variables;
  int64_t num_variables;
  const UpdateChunk* chunks;
  int64_t num_chunks;
};

// The way in which gradients are clipped when they are read. Their arrays stay
// as they are.
struct GradientClip {
  float value_limit = std::numeric_limits<float>::infinity();
  double norm_limit = 0;
  const double* sums = nullptr;  // one per variable; null: no limit of norms
  double global_limit = 0;
  const double* global_sum = nullptr;  // null: no limit of the common norm
};

// Applies `rule` to `num_chunks` chunks from `first_chunk` on.
absl::Status LaunchUpdate(Device& device, const UpdateRule& rule,
                          const UpdateTables& tables, int64_t first_chunk,
                          int64_t num_chunks, const GradientClip& clip);

// Memory for the sums of squares by which LAMB's steps are made: of the values
// and of the directions, one for each chunk and one for each variable.
struct LambSums {
  double* values_of_chunks = nullptr;
  double* directions_of_chunks = nullptr;
  double* values = nullptr;
  double* directions = nullptr;
};

// Makes LAMB's update in three calls, for the step needs the sums of whole
// variables: changes the slots of some chunks, as LaunchUpdate() does, and sums
// each chunk's squares; adds up each variable's; changes the values.
absl::Status LaunchLambSlots(Device& device, const LambRule& rule,
                             const UpdateTables& tables, int64_t first_chunk,
                             int64_t num_chunks, const GradientClip& clip,
                             const LambSums& sums);
absl::Status LaunchLambSums(Device& device, const UpdateTables& tables,
                            const LambSums& sums);
absl::Status LaunchLambStep(Device& device, const LambRule& rule,
                            const UpdateTables& tables, int64_t first_chunk,
                            int64_t num_chunks, const LambSums& sums);

// Writes the sum of squares of each variable's gradient, clipped by `clip`, to
// `sums`. `chunk_sums` is memory for one number per chunk.
absl::Status LaunchSums(Device& device, const UpdateTables& tables,
                        const GradientClip& clip, double* chunk_sums,
                        double* sums);

// Writes the sum of `count` numbers to `total`.
absl::Status LaunchTotal(Device& device, const double* sums, int64_t count,
                         double* total);

}  // namespace parasol::cuda

#endif  // PARASOL_ML_OPTIMIZER_DEVICE_UPDATE_KERNELS_H_
