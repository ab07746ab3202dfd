#ifndef PARASOL_THIRD_PARTY_CUDA_ON_HOST_DNN_GRAPH_H_
#define PARASOL_THIRD_PARTY_CUDA_ON_HOST_DNN_GRAPH_H_

#include <cudnn.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "third_party/cuda_on_host/convolution.h"

// cuDNN's descriptors, and what they say of a convolution.
namespace cuda_on_host {

// The heuristics' answers, the fastest first. A program that takes an answer
// which it should refuse gets other results.
enum Choice : int64_t {
  kOtherBitsEachTime,
  kHalfSums,
  kWinograd,
  kRefused,     // refuses to be made a plan
  kHugeMemory,  // wants a huge workspace
  kRight,
};
struct Descriptor {
  struct Attribute {
    cudnnBackendAttributeType_t type = CUDNN_TYPE_INT64;
    int64_t count = 0;
    std::vector<char> bytes;
  };

  cudnnBackendDescriptorType_t type = {};
  bool is_finalized = false;
  std::map<cudnnBackendAttributeName_t, Attribute> attributes = {};
  // The heuristics' choice, in engines and their configurations.
  const Descriptor* graph = nullptr;
  Choice choice = kRight;
};

// The descriptors that have not been destroyed.
std::set<const void*>& LiveDescriptors();

// Returns a descriptor, or ends the program if it was destroyed. The real
// library's documents don't say whether a descriptor needs the descriptors that
// it was made of; here it does.
Descriptor& At(cudnnBackendDescriptor_t descriptor);

size_t BytesOf(cudnnBackendAttributeType_t type);

// Reads attributes, and remembers whether any was missing or of another form.
class Reader {
 public:
  explicit Reader(const Descriptor& descriptor) : descriptor_(descriptor) {}

  template <typename T>
  std::vector<T> All(cudnnBackendAttributeName_t name,
                     cudnnBackendAttributeType_t type, int64_t count) {
    std::vector<T> values(count);
    const auto found = descriptor_.attributes.find(name);
    if (found == descriptor_.attributes.end() || found->second.type != type ||
        found->second.count != count) {
      is_whole_ = false;
      return values;
    }
    std::memcpy(values.data(), found->second.bytes.data(),
                found->second.bytes.size());
    return values;
  }
  template <typename T>
  T One(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) {
    return All<T>(name, type, 1)[0];
  }
  // A finalized descriptor; `descriptor_` itself where there is none.
  const Descriptor& Part(cudnnBackendAttributeName_t name) {
    auto* const part =
        One<cudnnBackendDescriptor_t>(name, CUDNN_TYPE_BACKEND_DESCRIPTOR);
    if (!is_whole_) return descriptor_;
    const Descriptor& at = At(part);
    is_whole_ = is_whole_ && at.is_finalized;
    return at;
  }
  bool is_whole() const { return is_whole_; }

 private:
  const Descriptor& descriptor_;
  bool is_whole_ = true;
};

// The arrays' names in a variant pack.
struct ArrayNames {
  int64_t x = 0, w = 0, y = 0;
};

cudnnStatus_t ReadArray(const Descriptor& descriptor, ConvolutionArray& array);
cudnnStatus_t ReadConvolution(const Descriptor& descriptor, Convolution& s);
cudnnStatus_t ReadOperation(const Descriptor& descriptor, Convolution& s,
                            ArrayNames& array_names);
cudnnStatus_t ReadGraph(const Descriptor& graph, Convolution& s,
                        ArrayNames& names);

}  // namespace cuda_on_host

#endif  // PARASOL_THIRD_PARTY_CUDA_ON_HOST_DNN_GRAPH_H_
