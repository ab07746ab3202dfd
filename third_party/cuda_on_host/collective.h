#ifndef PARASOL_THIRD_PARTY_CUDA_ON_HOST_COLLECTIVE_H_
#define PARASOL_THIRD_PARTY_CUDA_ON_HOST_COLLECTIVE_H_

#include <nccl.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

// The operations of NCCL on memory: which bytes each rank reads and writes, and
// what is written. No streams.
namespace cuda_on_host {

enum class Operation { kAllReduce, kReduceScatter, kAllGather, kBroadcast };

// Properties that all ranks of an operation must give alike.
struct Shape {
  Operation operation = Operation::kAllReduce;
  size_t count = 0;
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t reduce = ncclSum;
  // Factor of each element before the sum, of an operation that the user made.
  std::optional<double> factor = {};
  int root = 0;

  friend bool operator==(const Shape&, const Shape&) = default;
};

// Memory that one rank gives. A rank that is not the root of a broadcast sends
// nothing.
struct Buffers {
  const void* send = nullptr;
  void* receive = nullptr;
};

// Returns 0 if there is no such type.
size_t BytesOf(ncclDataType_t type);
// Returns true if sums and the like of `type` can be computed here.
bool IsReducible(ncclDataType_t type);
// Reads the number at `scalar`, which is of `type`.
double ReadScalar(const void* scalar, ncclDataType_t type);

// Two sizes of a rank's buffers in bytes.
size_t SentBytes(const Shape& shape, int ranks);
size_t ReceivedBytes(const Shape& shape, int ranks);
// Returns true unless the buffers of `rank` overlap in another way than NCCL
// allows for operations in place.
bool MayOverlapSo(const Shape& shape, const Buffers& buffers, int rank,
                  int ranks);

// Carries the operation out. `buffers` has one element for each rank.
void Perform(const Shape& shape, const std::vector<Buffers>& buffers);

// Returns words like "ncclAllReduce of 3 elements".
std::string Words(const Shape& shape);

}  // namespace cuda_on_host

#endif  // PARASOL_THIRD_PARTY_CUDA_ON_HOST_COLLECTIVE_H_
