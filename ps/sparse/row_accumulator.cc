#include "ps/sparse/row_accumulator.h"

#include <cstring>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "ps/step/vector_sum.h"

namespace parasol {
namespace {

// Rows by id, in the order of their first addition.
class RowSums {
 public:
  RowSums(size_t width, size_t rows) : width_(width) {
    places_.reserve(rows);
    sums_.ids.reserve(rows);
    sums_.values.reserve(rows * width);
  }

  // The row's place among all rows.
  size_t Add(uint64_t id, const std::byte* gradient) {
    const auto [place, is_first] = places_.try_emplace(id, sums_.ids.size());
    if (is_first) {
      sums_.ids.push_back(id);
      sums_.values.resize(sums_.values.size() + width_);
      std::memcpy(Row(place->second).data(), gradient, width_ * sizeof(float));
    } else {
      AddTo(Row(place->second), gradient);
    }
    return place->second;
  }

  absl::Span<float> Row(size_t place) {
    return {sums_.values.data() + place * width_, width_};
  }

  RowGradients Take() && { return std::move(sums_); }

 private:
  const size_t width_;
  absl::flat_hash_map<uint64_t, size_t> places_;
  RowGradients sums_;
};

}  // namespace

void RowAccumulator::Add(int replica, const std::byte* ids,
                         const std::byte* gradients, size_t count) {
  RowSums sums(width_, count);
  for (size_t i = 0; i < count; ++i) {
    uint64_t id;
    std::memcpy(&id, ids + i * sizeof(id), sizeof(id));
    sums.Add(id, gradients + i * width_ * sizeof(float));
  }
  held_[replica] = std::move(sums).Take();
}

RowGradients RowAccumulator::TakeMeans() {
  size_t rows = 0;
  for (const auto& [replica, gradients] : held_) rows += gradients.ids.size();
  RowSums sums(width_, rows);
  std::vector<uint32_t> touched(rows);
  for (const auto& [replica, gradients] : held_) {
    for (size_t i = 0; i < gradients.ids.size(); ++i) {
      const float* gradient = gradients.values.data() + i * width_;
      ++touched[sums.Add(gradients.ids[i],
                         reinterpret_cast<const std::byte*>(gradient))];
    }
  }
  for (size_t place = 0; place < rows && touched[place] > 0; ++place) {
    DivideBy(sums.Row(place), static_cast<float>(touched[place]));
  }
  Clear();
  return std::move(sums).Take();
}

}  // namespace parasol
