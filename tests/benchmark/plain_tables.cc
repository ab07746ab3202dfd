#include "tests/benchmark/plain_tables.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "base/log.h"

namespace parasol {
namespace {

constexpr float kLearningRate = .01f;

template <size_t kWidth>
struct SgdRow {
  static constexpr size_t kFloats = kWidth;
  static void Apply(const float* gradient, float* row) {
    for (size_t i = 0; i < kWidth; ++i) row[i] -= kLearningRate * gradient[i];
  }
};

// The sums of squares behind the values.
template <size_t kWidth>
struct AdagradRow {
  static constexpr size_t kFloats = 2 * kWidth;
  static void Apply(const float* gradient, float* row) {
    for (size_t i = 0; i < kWidth; ++i) {
      row[kWidth + i] += gradient[i] * gradient[i];
      row[i] -=
          kLearningRate * gradient[i] / (std::sqrt(row[kWidth + i]) + 1e-7f);
    }
  }
};

template <size_t kWidth, typename Row>
class UnorderedMapRows : public PlainRows {
 public:
  void Push(absl::Span<const uint64_t> ids, const float* gradients) override {
    for (uint64_t id : ids) {
      Row::Apply(gradients, RowOf(id));
      gradients += kWidth;
    }
  }
  void Pull(absl::Span<const uint64_t> ids, float* values) override {
    for (uint64_t id : ids) values = std::copy_n(RowOf(id), kWidth, values);
  }

 private:
  float* RowOf(uint64_t id) {
    std::vector<float>& row = rows_[id];
    if (row.empty()) row.resize(Row::kFloats);
    return row.data();
  }

  std::unordered_map<uint64_t, std::vector<float>> rows_;
};

template <size_t kWidth, typename Row>
class OpenAddressingRows : public PlainRows {
 public:
  OpenAddressingRows() { Resize(1 << 16); }

  void Push(absl::Span<const uint64_t> ids, const float* gradients) override {
    ForEachRow(ids, [&](float* row) {
      Row::Apply(gradients, row);
      gradients += kWidth;
    });
  }
  void Pull(absl::Span<const uint64_t> ids, float* values) override {
    ForEachRow(ids, [&](const float* row) {
      values = std::copy_n(row, kWidth, values);
    });
  }

 private:
  static constexpr uint64_t kNone = 0;
  static constexpr size_t kAhead = 12;

  // The benchmark's ids are random already.
  size_t Home(uint64_t id) const { return id & (keys_.size() - 1); }

  void Prefetch(uint64_t id) const {
    const size_t home = Home(id);
    __builtin_prefetch(&keys_[home]);
    const char* row =
        reinterpret_cast<const char*>(&floats_[home * Row::kFloats]);
    for (size_t i = 0; i < Row::kFloats * sizeof(float); i += 64) {
      __builtin_prefetch(row + i, /*rw=*/1);
    }
  }

  template <typename Function>
  void ForEachRow(absl::Span<const uint64_t> ids, Function function) {
    if (2 * (rows_ + ids.size()) > keys_.size()) Resize(2 * keys_.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      if (i + kAhead < ids.size()) Prefetch(ids[i + kAhead]);
      function(RowOf(ids[i]));
    }
  }

  float* RowOf(uint64_t id) {
    size_t at = Home(id);
    while (keys_[at] != id && keys_[at] != kNone) {
      at = (at + 1) & (keys_.size() - 1);
    }
    if (keys_[at] == kNone) ++rows_;
    keys_[at] = id;
    return &floats_[at * Row::kFloats];
  }

  void Resize(size_t size) {
    const std::vector<uint64_t> keys =
        std::exchange(keys_, std::vector<uint64_t>(size, kNone));
    const std::vector<float> floats =
        std::exchange(floats_, std::vector<float>(size * Row::kFloats));
    rows_ = 0;
    for (size_t i = 0; i < keys.size(); ++i) {
      if (keys[i] == kNone) continue;
      std::copy_n(&floats[i * Row::kFloats], Row::kFloats, RowOf(keys[i]));
    }
  }

  size_t rows_ = 0;
  std::vector<uint64_t> keys_;
  std::vector<float> floats_;
};

template <size_t kWidth, typename Row>
std::unique_ptr<PlainRows> MakeRows(RowStore store) {
  if (store == RowStore::kUnorderedMap) {
    return std::make_unique<UnorderedMapRows<kWidth, Row>>();
  }
  return std::make_unique<OpenAddressingRows<kWidth, Row>>();
}

template <size_t kWidth>
std::unique_ptr<PlainRows> MakeRows(const Contents& contents, RowStore store) {
  return OptimizerOf(contents).has_adagrad()
             ? MakeRows<kWidth, AdagradRow<kWidth>>(store)
             : MakeRows<kWidth, SgdRow<kWidth>>(store);
}

}  // namespace

PlainVariables::PlainVariables(const Contents& contents)
    : values_(contents.variables, std::vector<float>(contents.elements)) {
  auto optimizer = MakeOptimizer(OptimizerOf(contents));
  CHECK(optimizer.ok()) << optimizer.status();
  optimizer_ = *std::move(optimizer);
}

void PlainVariables::Apply(size_t variable, size_t first, size_t count,
                           const void* gradient) {
  float* value = values_[variable].data() + first;
  optimizer_->Apply(0, {.count = count,
                        .gradient = static_cast<const std::byte*>(gradient),
                        .value = value,
                        .new_value = value,
                        .slots = {}});
}

std::unique_ptr<PlainRows> MakePlainRows(const Contents& contents,
                                         RowStore store) {
  if (contents.row_width == 16) return MakeRows<16>(contents, store);
  CHECK_EQ(contents.row_width, 64);
  return MakeRows<64>(contents, store);
}

}  // namespace parasol
