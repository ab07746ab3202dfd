#include "tests/benchmark/click_log/click_log.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace parasol::bench {
namespace {

// Bits that depend on all bits of both (MurmurHash3's finalizer).
uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9e3779b97f4a7c15 + b;
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccd;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53;
  return x ^ (x >> 33);
}

// In (0, 1).
double Uniform(uint64_t bits) {
  return (static_cast<double>(bits >> 11) + .5) / 9007199254740992.0;
}

// Of the standard normal distribution (Box and Muller).
double Normal(uint64_t key, uint64_t number) {
  const double radius = std::sqrt(-2 * std::log(Uniform(Mix(key, 2 * number))));
  return radius *
         std::cos(2 * std::numbers::pi * Uniform(Mix(key, 2 * number + 1)));
}

// Draws a rank from 0 to count - 1 by Zipf's law, with the integral of
// x^-exponent in place of its sum.
int64_t Rank(double uniform, int64_t count, double exponent) {
  const double power = 1 - exponent;
  const double last = std::pow(static_cast<double>(count) + .5, power);
  const double first = std::pow(.5, power);
  const double x = std::pow(first + uniform * (last - first), 1 / power);
  return std::clamp<int64_t>(std::llround(x) - 1, 0, count - 1);
}

}  // namespace

double ClickLog::Probability(const std::array<uint64_t, kFields>& ids, int hour,
                             uint64_t seed) {
  constexpr int kFactors = 4;
  const uint64_t user = Mix(ids[0], seed);
  const uint64_t item = Mix(ids[1], seed + 1);
  const uint64_t site = Mix(ids[2], seed + 2);
  double fit = 0;
  for (int i = 1; i <= kFactors; ++i) fit += Normal(user, i) * Normal(item, i);
  const double logit = -1.5 + .6 * Normal(user, 0) + .9 * Normal(item, 0) +
                       .5 * Normal(site, 0) + .5 * fit +
                       .2 * std::sin(2 * std::numbers::pi * hour / 24);
  return 1 / (1 + std::exp(-logit));
}

ClickLog::Line ClickLog::At(int day, int64_t number) const {
  const uint64_t key = Mix(Mix(options_.seed, day), number);
  Line line;
  for (int field = 0; field < kFields; ++field) {
    const uint64_t draw = 4 * static_cast<uint64_t>(field);
    // The day whose ids it has one of: this one, or any before.
    int of = 0;
    if (day > 0) {
      of = Uniform(Mix(key, draw)) < options_.new_share
               ? day
               : static_cast<int>(Mix(key, draw + 1) % day);
    }
    const int64_t rank =
        Rank(Uniform(Mix(key, draw + 2)),
             of == 0 ? kFirst[field] : kEachDay[field], options_.exponent);
    line.ids[field] = Mix(Mix(options_.seed + field, of), rank);
  }
  line.hour = static_cast<int>(Mix(key, 100) % 24);
  line.probability = Probability(line.ids, line.hour, options_.seed);
  line.clicked = Uniform(Mix(key, 101)) < line.probability;
  return line;
}

double BestAuc(const std::vector<ClickLog::Line>& lines) {
  std::vector<const ClickLog::Line*> sorted;
  sorted.reserve(lines.size());
  for (const ClickLog::Line& line : lines) sorted.push_back(&line);
  std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
    return a->probability < b->probability;
  });
  // Pairs of a click and a line without one that are in the right order.
  double right = 0;
  double clicks = 0;
  double others = 0;
  for (size_t i = 0; i < sorted.size();) {
    double alike_clicks = 0;
    double alike_others = 0;
    const double probability = sorted[i]->probability;
    for (; i < sorted.size() && sorted[i]->probability == probability; ++i) {
      (sorted[i]->clicked ? alike_clicks : alike_others) += 1;
    }
    right += alike_clicks * (others + alike_others / 2);
    clicks += alike_clicks;
    others += alike_others;
  }
  if (clicks == 0 || others == 0) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return right / (clicks * others);
}

}  // namespace parasol::bench
