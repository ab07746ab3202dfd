#include "ml/metric/ranked_groups.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <tuple>

namespace parasol {
namespace {

// A mean that is NaN without terms.
struct GroupMean {
  double sum = 0;
  double weight = 0;

  void Add(double value, double of) {
    sum += value * of;
    weight += of;
  }
  double Value() const {
    return weight > 0 ? sum / weight : std::numeric_limits<double>::quiet_NaN();
  }
};

bool IsPositive(float label) { return label > .5f; }

// Calls visit(first, last, place) for each run of equal scores; `place` is
// where its first example is, from 0.
template <typename Iterator, typename Visit>
void ForEachTie(Iterator begin, Iterator end, Visit visit) {
  for (Iterator first = begin; first != end;) {
    Iterator last = first;
    while (last != end && last->score == first->score) ++last;
    visit(first, last, int64_t{first - begin});
    first = last;
  }
}

double DiscountAt(int64_t place) {
  return 1 / std::log2(static_cast<double>(place) + 2);
}

// The sum of the discounts of places [first, last) that are below k.
double DiscountOf(int64_t first, int64_t last, int64_t k) {
  double sum = 0;
  for (int64_t i = first; i < std::min(last, k); ++i) sum += DiscountAt(i);
  return sum;
}

// Returns the gain over 2^scale: of large labels it would be infinite.
template <typename Example>
double GainOf(const Example& example, double scale) {
  return example.weight *
         (std::exp2(double{example.label} - scale) - std::exp2(-scale));
}

}  // namespace

void RankedGroups::Add(uint64_t group, float score, float label,
                       double weight) {
  if (weight == 0) return;
  has_nan_ |= std::isnan(score);
  examples_.push_back(
      {.group = group, .score = score, .label = label, .weight = weight});
}

void RankedGroups::Merge(const RankedGroups& other) {
  has_nan_ |= other.has_nan_;
  examples_.insert(examples_.end(), other.examples_.begin(),
                   other.examples_.end());
}

template <typename Visit>
void RankedGroups::ForEachGroup(Visit visit) const {
  // Without an order NaN can't be sorted.
  if (has_nan_) return;
  std::vector<Example> sorted = examples_;
  std::sort(sorted.begin(), sorted.end(),
            [](const Example& a, const Example& b) {
              return std::tie(a.group, b.score, a.label, a.weight) <
                     std::tie(b.group, a.score, b.label, b.weight);
            });
  for (auto begin = sorted.cbegin(); begin != sorted.cend();) {
    const auto end = std::find_if(begin, sorted.cend(), [&](const Example& e) {
      return e.group != begin->group;
    });
    visit(begin, end);
    begin = end;
  }
}

double RankedGroups::MeanAuc() const {
  GroupMean mean;
  ForEachGroup([&mean](auto begin, auto end) {
    double positive = 0;
    double negative = 0;
    double right = 0;
    ForEachTie(begin, end, [&](auto first, auto last, int64_t) {
      double positive_here = 0;
      double negative_here = 0;
      for (; first != last; ++first) {
        (IsPositive(first->label) ? positive_here : negative_here) +=
            first->weight;
      }
      right += negative_here * (positive + positive_here / 2);
      positive += positive_here;
      negative += negative_here;
    });
    if (!(positive > 0) || !(negative > 0)) return;
    mean.Add(right / (positive * negative), positive + negative);
  });
  return mean.Value();
}

double RankedGroups::MeanNdcg(int64_t k) const {
  GroupMean mean;
  std::vector<double> gains;
  ForEachGroup([&](auto begin, auto end) {
    gains.clear();
    double gain = 0;
    double scale = 0;
    for (auto i = begin; i != end; ++i) {
      scale = std::max(scale, double{i->label});
    }
    ForEachTie(begin, end, [&](auto first, auto last, int64_t place) {
      const auto size = int64_t{last - first};
      double here = 0;
      for (; first != last; ++first) {
        gains.push_back(GainOf(*first, scale));
        here += gains.back();
      }
      gain +=
          here / static_cast<double>(size) * DiscountOf(place, place + size, k);
    });
    std::sort(gains.begin(), gains.end(), std::greater<>());
    double largest = 0;
    const auto size = static_cast<int64_t>(gains.size());
    for (int64_t i = 0; i < std::min(k, size); ++i) {
      largest += gains[i] * DiscountAt(i);
    }
    if (largest > 0) mean.Add(gain / largest, 1);
  });
  return mean.Value();
}

double RankedGroups::MeanRecall(int64_t k) const {
  GroupMean mean;
  ForEachGroup([&](auto begin, auto end) {
    double positive = 0;
    double found = 0;
    ForEachTie(begin, end, [&](auto first, auto last, int64_t place) {
      const auto size = int64_t{last - first};
      const int64_t among = std::clamp<int64_t>(k - place, 0, size);
      double here = 0;
      for (; first != last; ++first) {
        if (IsPositive(first->label)) here += first->weight;
      }
      positive += here;
      found += here * static_cast<double>(among) / static_cast<double>(size);
    });
    if (positive > 0) mean.Add(found / positive, 1);
  });
  return mean.Value();
}

}  // namespace parasol
