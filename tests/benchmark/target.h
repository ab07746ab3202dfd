#ifndef PARASOL_TESTS_BENCHMARK_TARGET_H_
#define PARASOL_TESTS_BENCHMARK_TARGET_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace parasol {

// `factor` times what a contender reached in the same comparison; without a
// contender, the figure itself.
struct Bound {
  double factor = 0;
  std::string contender = {};
};

// What a contender's figure should reach.
struct Target {
  enum class Kind { kNone, kAll, kAny, kAtMost };
  Kind kind = Kind::kNone;
  std::vector<Bound> bounds = {};

  static Target All(std::vector<Bound> bounds) {
    return {Kind::kAll, std::move(bounds)};
  }
  // One of them is enough.
  static Target Any(std::vector<Bound> bounds) {
    return {Kind::kAny, std::move(bounds)};
  }
  // Less is better.
  static Target AtMost(double figure) { return {Kind::kAtMost, {{figure}}}; }
};

// The figure that a contender reached, if it took part.
using FigureOf =
    std::function<std::optional<double>(const std::string& contender)>;

// Whether `figure` meets `target`; nothing when there is no target, or a
// contender that it names did not take part.
std::optional<bool> IsMet(const Target& target, double figure,
                          const FigureOf& figure_of);

// "0.65 x raw TCP and 2.2 x plain gRPC". A bare figure is shown times `scale`.
std::string Describe(const Target& target, double scale);

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_TARGET_H_
