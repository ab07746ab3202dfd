#include "ml/metric/auc.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/log.h"

namespace parasol {
namespace {

// Floats compare like their bits, but for the sign: negative ones in the
// opposite order and below the others.
uint32_t OrderOf(float score) {
  constexpr uint32_t kSign = uint32_t{1} << 31;
  const uint32_t bits = std::bit_cast<uint32_t>(score == 0 ? 0.0f : score);
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

}  // namespace

Auc::Auc(size_t max_scores) : max_scores_(max_scores) {
  // Two are always left: the signs.
  CHECK_GE(max_scores, 4u);
}

void Auc::Add(float score, bool positive, double weight) {
  if (std::isnan(score)) has_nan_ = true;
  if (scores_.size() >= max_scores_) Shrink();
  const uint32_t order = OrderOf(score) >> dropped_bits_ << dropped_bits_;
  scores_.push_back({order, positive ? weight : 0, positive ? 0 : weight});
}

void Auc::Merge(const Auc& other) {
  has_nan_ = has_nan_ || other.has_nan_;
  scores_.insert(scores_.end(), other.scores_.begin(), other.scores_.end());
  DropBits(std::max(dropped_bits_, other.dropped_bits_));
  if (scores_.size() > max_scores_) Shrink();
}

// Sorted, each `order` once.
void Auc::Combine(std::vector<Score>& scores) {
  std::sort(scores.begin(), scores.end(),
            [](const Score& a, const Score& b) { return a.order < b.order; });
  size_t last = 0;
  for (size_t i = 1; i < scores.size(); ++i) {
    if (scores[i].order != scores[last].order) {
      scores[++last] = scores[i];
      continue;
    }
    scores[last].positive += scores[i].positive;
    scores[last].negative += scores[i].negative;
  }
  if (!scores.empty()) scores.resize(last + 1);
}

void Auc::DropBits(int bits) {
  dropped_bits_ = bits;
  for (Score& score : scores_) score.order = score.order >> bits << bits;
}

void Auc::Shrink() {
  Combine(scores_);
  while (scores_.size() > max_scores_ / 2) {
    DropBits(dropped_bits_ + 1);
    Combine(scores_);
  }
}

double Auc::Value() const {
  std::vector<Score> scores = scores_;
  Combine(scores);
  double positives = 0;
  double negatives = 0;
  double pairs = 0;  // pairs in the right order
  for (const Score& score : scores) {
    pairs += score.positive * (negatives + score.negative / 2);
    positives += score.positive;
    negatives += score.negative;
  }
  if (has_nan_ || !(positives > 0 && negatives > 0)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return pairs / (positives * negatives);
}

double Auc::AveragePrecision() const {
  std::vector<Score> scores = scores_;
  Combine(scores);
  double positives = 0;
  double all = 0;
  double precisions = 0;
  for (auto score = scores.rbegin(); score != scores.rend(); ++score) {
    positives += score->positive;
    all += score->positive + score->negative;
    if (score->positive > 0) precisions += score->positive * positives / all;
  }
  if (has_nan_ || !(positives > 0)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return precisions / positives;
}

}  // namespace parasol
