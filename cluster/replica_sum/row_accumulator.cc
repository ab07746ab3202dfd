#include "cluster/replica_sum/row_accumulator.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "cluster/replica_sum/vector_sum.h"

namespace parasol {
namespace {

void AddCount(uint32_t count, uint32_t& sum) {
  sum += std::min(count, UINT32_MAX - sum);
}

// Rows of one replica by id, in the order of their first addition.
class RowSums {
 public:
  RowSums(size_t width, size_t rows) : width_(width) {
    places_.reserve(rows);
    sums_.ids.reserve(rows);
    sums_.counts.reserve(rows);
    sums_.values.reserve(rows * width);
  }

  void Add(uint64_t id, const std::byte* gradient, uint32_t count) {
    const auto [place, is_first] = places_.try_emplace(id, sums_.ids.size());
    if (is_first) {
      sums_.ids.push_back(id);
      sums_.counts.push_back(0);
      sums_.values.resize(sums_.values.size() + width_);
      std::memcpy(Row(place->second).data(), gradient, width_ * sizeof(float));
    } else {
      AddTo(Row(place->second), gradient);
    }
    AddCount(count, sums_.counts[place->second]);
  }

  RowGradients Take() && { return std::move(sums_); }

 private:
  absl::Span<float> Row(size_t place) {
    return {sums_.values.data() + place * width_, width_};
  }

  const size_t width_;
  absl::flat_hash_map<uint64_t, size_t> places_;
  RowGradients sums_;
};

}  // namespace

RowAccumulator::RowAccumulator(size_t width, std::shared_ptr<RowMemory> memory)
    : width_(width), memory_(std::move(memory)) {}

bool RowAccumulator::HasRoom(int replica, size_t count) const {
  return replica == next_replica_ || memory_ == nullptr ||
         BytesOf(count) <= memory_->free_bytes();
}

void RowAccumulator::Add(int replica, const std::byte* ids,
                         const std::byte* gradients, size_t count,
                         const std::byte* counts) {
  RowSums sums(width_, count);
  for (size_t i = 0; i < count; ++i) {
    uint64_t id;
    std::memcpy(&id, ids + i * sizeof(id), sizeof(id));
    uint32_t occurrences = 1;
    if (counts != nullptr) {
      std::memcpy(&occurrences, counts + i * sizeof(occurrences),
                  sizeof(occurrences));
    }
    sums.Add(id, gradients + i * width_ * sizeof(float), occurrences);
  }
  RowGradients distinct = std::move(sums).Take();
  if (replica != next_replica_) {
    const size_t bytes = BytesOf(distinct.ids.size());
    held_[replica] = {.gradients = std::move(distinct),
                      .memory = HeldMemory(memory_, bytes)};
    return;
  }
  AddToSums(distinct);
  ++next_replica_;
  while (!held_.empty() && held_.begin()->first == next_replica_) {
    AddToSums(held_.begin()->second.gradients);
    held_.erase(held_.begin());
    ++next_replica_;
  }
}

size_t RowAccumulator::AddRow(uint64_t id, const float* gradient,
                              uint32_t count) {
  const auto [found, is_first] = places_.try_emplace(id, sums_.ids.size());
  const size_t place = found->second;
  if (is_first) {
    sums_.ids.push_back(id);
    sums_.counts.push_back(0);
    sums_.values.insert(sums_.values.end(), gradient, gradient + width_);
    touched_.push_back(0);
  } else {
    AddTo(absl::MakeSpan(sums_.values.data() + place * width_, width_),
          reinterpret_cast<const std::byte*>(gradient));
  }
  AddCount(count, sums_.counts[place]);
  return place;
}

void RowAccumulator::AddToSums(const RowGradients& gradients) {
  for (size_t i = 0; i < gradients.ids.size(); ++i) {
    ++touched_[AddRow(gradients.ids[i], gradients.values.data() + i * width_,
                      gradients.counts[i])];
  }
  sums_memory_ = HeldMemory();
  sums_memory_ = HeldMemory(memory_, BytesOf(sums_.ids.size()));
}

RowGradients RowAccumulator::TakeMeans() {
  for (const auto& [replica, held] : held_) AddToSums(held.gradients);
  for (size_t place = 0; place < touched_.size(); ++place) {
    DivideBy(absl::MakeSpan(sums_.values.data() + place * width_, width_),
             static_cast<float>(touched_[place]));
  }
  RowGradients means = std::move(sums_);
  Clear();
  return means;
}

void RowAccumulator::Clear() {
  sums_ = RowGradients();
  places_.clear();
  touched_.clear();
  sums_memory_ = HeldMemory();
  next_replica_ = 0;
  held_.clear();
}

}  // namespace parasol
