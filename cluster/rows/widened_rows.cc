#include "cluster/rows/widened_rows.h"

#include <algorithm>

#include "ml/initializer/variable_key.h"

namespace parasol {

uint64_t RoundingKeyOf(uint64_t seed, absl::string_view table) {
  const PhiloxKey key = VariableKey(seed, table);
  return uint64_t{key[1]} << 32 | key[0];
}

uint64_t RoundingKeyOf(uint64_t table_key, int64_t iterations, uint64_t hash) {
  return SplitMix(hash ^
                  SplitMix(table_key + static_cast<uint64_t>(iterations)));
}

void LoadRows(absl::Span<const float* const> rows, size_t words) {
  constexpr size_t kWordsOfLine = 64 / sizeof(float);
  // A wide row's own loads are under way together.
  const size_t first = std::min(words, 16 * kWordsOfLine);
  for (const float* const row : rows) {
    if (row == nullptr) continue;
    const volatile float* const words_of_row = row;
    for (size_t i = 0; i < first; i += kWordsOfLine) (void)words_of_row[i];
    (void)words_of_row[first - 1];
  }
}

WidenedRows::WidenedRows(const RowLayout& layout, const Optimizer& optimizer,
                         uint64_t table_key, int64_t iterations)
    : layout_(layout),
      optimizer_(optimizer),
      table_key_(table_key),
      iterations_(iterations),
      most_(std::clamp<size_t>(kElements / layout.floats, 1, kRows)) {
  if (layout.floats <= kElements) return;
  large_row_ = std::make_unique_for_overwrite<float[]>(layout.floats);
}

void WidenedRows::Add(uint64_t hash, float* row, const std::byte* gradient) {
  hashes_[count_] = hash;
  rows_[count_] = row;
  gradients_[count_] = gradient;
  if (++count_ == most_) Apply();
}

void WidenedRows::Apply() {
  if (count_ == 0) return;
  LoadRows({rows_.data(), count_}, layout_.words);
  float* next = large_row_ == nullptr ? elements_.data() : large_row_.get();
  for (size_t i = 0; i < count_; ++i, next += layout_.floats) {
    layout_.Read(rows_[i], next);
    widened_[i] = next;
  }
  RowUpdate update = {
      .count = count_, .width = layout_.width, .rows = widened_.data()};
  if (gradients_[0] == nullptr) {
    optimizer_.ApplyOtherRows(iterations_, update);
  } else {
    update.gradient_of = gradients_.data();
    optimizer_.ApplyRows(iterations_, update);
  }
  for (size_t i = 0; i < count_; ++i) {
    const uint64_t key = RoundingKeyOf(table_key_, iterations_, hashes_[i]);
    layout_.WriteAtRandom(widened_[i], key, rows_[i]);
  }
  count_ = 0;
}

}  // namespace parasol
