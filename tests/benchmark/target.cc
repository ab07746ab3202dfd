#include "tests/benchmark/target.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace parasol {

std::optional<bool> IsMet(const FigureTarget& target, double figure,
                          const FigureOf& figure_of) {
  if (target.kind == FigureTarget::Kind::kNone) return std::nullopt;
  size_t reached = 0;
  for (const Bound& bound : target.bounds) {
    const std::optional<double> other =
        bound.contender.empty() ? 1 : figure_of(bound.contender);
    if (!other.has_value()) return std::nullopt;
    const double limit = bound.factor * *other;
    reached += target.kind == FigureTarget::Kind::kAtMost ? figure <= limit
                                                          : figure >= limit;
  }
  return target.kind == FigureTarget::Kind::kAny
             ? reached > 0
             : reached == target.bounds.size();
}

std::string Describe(const FigureTarget& target, double scale) {
  const auto describe = [scale](std::string* out, const Bound& bound) {
    if (bound.contender.empty()) {
      absl::StrAppend(out, bound.factor * scale);
    } else {
      absl::StrAppend(out, bound.factor, " x ", bound.contender);
    }
  };
  return absl::StrCat(
      target.kind == FigureTarget::Kind::kAtMost ? "at most " : "",
      absl::StrJoin(target.bounds,
                    target.kind == FigureTarget::Kind::kAny ? " or " : " and ",
                    describe));
}

}  // namespace parasol
