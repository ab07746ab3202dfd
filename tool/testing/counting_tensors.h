#ifndef PARASOL_TOOL_TESTING_COUNTING_TENSORS_H_
#define PARASOL_TOOL_TESTING_COUNTING_TENSORS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "storage/tensor_files/tensor_reader.h"

namespace parasol {

// Tensors in memory whose elements are 0, 1, 2, …
class CountingTensors : public TensorReader {
 public:
  explicit CountingTensors(std::vector<TensorInfo> tensors)
      : tensors_(std::move(tensors)) {}

  const std::vector<TensorInfo>& tensors() const override { return tensors_; }

  absl::Status Read(size_t, uint64_t first, absl::Span<char> out) override {
    for (size_t i = 0; i < out.size(); i += sizeof(float)) {
      const float value = static_cast<float>((first + i) / sizeof(float));
      std::memcpy(&out[i], &value, sizeof(float));
    }
    return absl::OkStatus();
  }

 private:
  const std::vector<TensorInfo> tensors_;
};

}  // namespace parasol

#endif  // PARASOL_TOOL_TESTING_COUNTING_TENSORS_H_
