#ifndef PARASOL_ML_DEVICE_CUDA_NCCL_TYPES_H_
#define PARASOL_ML_DEVICE_CUDA_NCCL_TYPES_H_

#include <cstddef>

#ifdef PARASOL_CUDA_ON_HOST
#include <nccl.h>
#endif

namespace parasol {

// NCCL's types and values, the same in all of NCCL 2: its headers are no part
// of CUDA's toolkit. Enumerations are ints to its functions. Only for .cu
// files.
using NcclRank = struct ncclComm*;
inline constexpr int kNcclSuccess = 0;
inline constexpr int kNcclInProgress = 7;
inline constexpr int kNcclSum = 0;
inline constexpr int kNcclFloat32 = 7;
struct NcclId {
  char bytes[128];
};
// The first fields of ncclConfig_t, which version 2.14 has; NCCL reads as many
// as `size` says.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned int magic = 0xcafebeef;
  unsigned int version = 21400;
  int blocking = 0;
};

#ifdef PARASOL_CUDA_ON_HOST
static_assert(kNcclSuccess == ncclSuccess && kNcclSum == ncclSum &&
              kNcclFloat32 == ncclFloat32 && kNcclInProgress == ncclInProgress);
static_assert(sizeof(NcclId) == sizeof(ncclUniqueId) &&
              sizeof(NcclConfig) == sizeof(ncclConfig_t));
#endif

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_CUDA_NCCL_TYPES_H_
