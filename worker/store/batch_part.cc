#include "worker/store/batch_part.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace parasol {
namespace {

// Copies the elements [first, first + count) of `from`, which has `width` for
// each example.
template <typename T>
void Slice(const std::vector<T>& from, int64_t first, int64_t count,
           int64_t width, std::vector<T>& to) {
  const auto begin = from.begin() + first * width;
  to.assign(begin, begin + count * width);
}

void Slice(const IdFeature& from, int64_t first, int64_t count, IdFeature& to) {
  const int32_t begin = from.offsets[first];
  const int32_t end = from.offsets[first + count];
  to.offsets.clear();
  for (int64_t i = first; i <= first + count; ++i) {
    to.offsets.push_back(from.offsets[i] - begin);
  }
  to.ids.assign(from.ids.begin() + begin, from.ids.begin() + end);
  to.weights.clear();
  if (from.weights.empty()) return;
  to.weights.assign(from.weights.begin() + begin, from.weights.begin() + end);
}

void Slice(const ExampleValues& from, int64_t first, int64_t count,
           ExampleValues& to) {
  to.keys.clear();
  to.numbers.clear();
  if (!from.keys.empty()) Slice(from.keys, first, count, /*width=*/1, to.keys);
  if (!from.numbers.empty()) {
    Slice(from.numbers, first, count, /*width=*/1, to.numbers);
  }
}

}  // namespace

void CopyPart(const Batch& from, int64_t first, int64_t count, Batch& to) {
  to.size = count;
  to.dense.resize(from.dense.size());
  for (size_t i = 0; i < from.dense.size(); ++i) {
    const std::vector<float>& values = from.dense[i].values;
    to.dense[i].shape = from.dense[i].shape;
    Slice(values, first, count, static_cast<int64_t>(values.size()) / from.size,
          to.dense[i].values);
  }
  to.ids.resize(from.ids.size());
  for (size_t i = 0; i < from.ids.size(); ++i) {
    Slice(from.ids[i], first, count, to.ids[i]);
  }
  Slice(from.labels, first, count,
        static_cast<int64_t>(from.labels.size()) / from.size, to.labels);
  to.targets.resize(from.targets.size());
  for (size_t i = 0; i < from.targets.size(); ++i) {
    const Target& target = from.targets[i];
    Slice(target.labels, first, count,
          static_cast<int64_t>(target.labels.size()) / from.size,
          to.targets[i].labels);
    Slice(target.weights, first, count, /*width=*/1, to.targets[i].weights);
    to.targets[i].scale = target.scale;
  }
  to.weights.clear();
  if (!from.weights.empty()) {
    Slice(from.weights, first, count, /*width=*/1, to.weights);
  }
  to.columns.resize(from.columns.size());
  for (size_t i = 0; i < from.columns.size(); ++i) {
    Slice(from.columns[i], first, count, to.columns[i]);
  }
  to.kept.clear();
}

}  // namespace parasol
