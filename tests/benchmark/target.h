#ifndef PARASOL_TESTS_BENCHMARK_TARGET_H_
#define PARASOL_TESTS_BENCHMARK_TARGET_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace parasol {

// A figure to reach: `factor` times the figure of `contender` in the same
// comparison or, without a contender, `factor` itself.
struct Bound {
  double factor = 0;
  std::string contender = {};
};

// Bounds that a contender's figure must reach.
struct FigureTarget {
  enum class Kind { kNone, kAll, kAny, kAtMost };
  Kind kind = Kind::kNone;
  std::vector<Bound> bounds = {};

  static FigureTarget All(std::vector<Bound> bounds) {
    return {Kind::kAll, std::move(bounds)};
  }
  // Reaching one of `bounds` is enough.
  static FigureTarget Any(std::vector<Bound> bounds) {
    return {Kind::kAny, std::move(bounds)};
  }
  // The figure must be at most `figure`: less is better.
  static FigureTarget AtMost(double figure) {
    return {Kind::kAtMost, {{figure}}};
  }
};

// Returns the figure that a contender reached, if it took part.
using FigureOf =
    std::function<std::optional<double>(const std::string& contender)>;

// Returns true if `figure` meets `target`; nullopt if there is no target, or a
// contender that the target names did not take part.
std::optional<bool> IsMet(const FigureTarget& target, double figure,
                          const FigureOf& figure_of);

// Returns a text like "0.65 x raw TCP and 2.2 x plain gRPC". A figure without a
// contender is shown times `scale`.
std::string Describe(const FigureTarget& target, double scale);

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_TARGET_H_
