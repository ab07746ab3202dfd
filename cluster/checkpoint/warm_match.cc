#include "cluster/checkpoint/warm_match.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/did_you_mean.h"
#include "base/shown_text.h"
#include "cluster/job/name_pattern.h"

namespace parasol {
namespace {

// As many faults, and names like one, stand in an error.
constexpr size_t kMaxFaults = 8;
constexpr size_t kMaxLike = 3;

std::string NamesLike(absl::string_view name,
                      const std::vector<std::string>& names) {
  if (names.empty()) return "it has none";
  std::vector<std::pair<size_t, absl::string_view>> by_distance;
  for (const std::string& other : names) {
    by_distance.emplace_back(EditDistance(name, other), other);
  }
  std::sort(by_distance.begin(), by_distance.end());
  by_distance.resize(std::min(by_distance.size(), kMaxLike));
  return absl::StrCat(
      "it has ",
      absl::StrJoin(by_distance, ", ", [](std::string* out, const auto& one) {
        absl::StrAppend(out, "\"", one.second, "\"");
      }));
}

// Looks up what a job wants by the names that its warm start gives the source,
// and notes what does not fit.
class WarmNames {
 public:
  explicit WarmNames(const job::WarmStart& warm_start)
      : warm_start_(warm_start),
        is_map_used_(warm_start.map_size()),
        is_exclude_used_(warm_start.exclude_size()) {}

  // Finds each of `wanted` in `there`; `misfit` says how two differ, or "".
  template <typename Wanted, typename There, typename Misfit>
  std::vector<std::optional<size_t>> Find(absl::string_view kind,
                                          const std::vector<Wanted>& wanted,
                                          const std::vector<There>& there,
                                          Misfit misfit) {
    std::vector<std::string> names;
    for (const There& one : there) names.push_back(one.name);
    std::vector<std::optional<size_t>> found;
    for (const Wanted& one : wanted) {
      found.emplace_back();
      if (IsExcluded(one.name())) continue;
      const std::string name = SourceNameOf(one.name());
      const auto place = std::find(names.begin(), names.end(), name);
      if (place == names.end()) {
        faults_.push_back(absl::StrCat("has no ", kind, " \"", name, "\" (",
                                       NamesLike(name, names), ")"));
        continue;
      }
      const size_t index = place - names.begin();
      const std::string how = misfit(one, there[index]);
      if (!how.empty()) {
        faults_.push_back(absl::StrCat("\"", name, "\" is ", how));
      }
      found.back() = index;
    }
    return found;
  }

  // Returns all faults as one, unless there are none.
  absl::Status Verdict() const {
    std::vector<std::string> faults = faults_;
    for (int i = 0; i < warm_start_.map_size(); ++i) {
      if (is_map_used_[i]) continue;
      faults.push_back(absl::StrCat("map[", i, "].to \"",
                                    warm_start_.map(i).to(),
                                    "\" is nothing of the job"));
    }
    for (int i = 0; i < warm_start_.exclude_size(); ++i) {
      if (is_exclude_used_[i]) continue;
      faults.push_back(absl::StrCat("exclude \"", warm_start_.exclude(i),
                                    "\" is nothing of the job"));
    }
    if (faults.empty()) return absl::OkStatus();
    const size_t shown = std::min(faults.size(), kMaxFaults);
    return absl::InvalidArgumentError(absl::StrCat(
        absl::StrJoin(faults.begin(), faults.begin() + shown, "; "),
        shown < faults.size()
            ? absl::StrCat("; and ", faults.size() - shown, " more")
            : "",
        ": use warm_start.map for other names and warm_start.exclude for what "
        "begins anew"));
  }

 private:
  bool IsExcluded(absl::string_view name) {
    bool is_excluded = false;
    for (int i = 0; i < warm_start_.exclude_size(); ++i) {
      if (!PatternCovers(warm_start_.exclude(i), name)) continue;
      is_exclude_used_[i] = true;
      is_excluded = true;
    }
    return is_excluded;
  }

  std::string SourceNameOf(const std::string& name) {
    for (int i = 0; i < warm_start_.map_size(); ++i) {
      const job::NameMap& map = warm_start_.map(i);
      if (!PatternCovers(map.to(), name)) continue;
      is_map_used_[i] = true;
      return absl::StrCat(map.from(),
                          absl::string_view(name).substr(map.to().size()));
    }
    return name;
  }

  const job::WarmStart& warm_start_;
  std::vector<bool> is_map_used_, is_exclude_used_;
  std::vector<std::string> faults_;
};

// What is taken neither as a variable nor as a table, each once.
std::vector<std::string> NamesLeft(const WarmMatch& match,
                                   const WarmSource& source) {
  const std::set<std::optional<size_t>> tables(match.tables.begin(),
                                               match.tables.end());
  std::set<std::optional<size_t>> variables(match.variables.begin(),
                                            match.variables.end());
  std::vector<std::string> left_tables;
  for (size_t i = 0; i < source.tables().size(); ++i) {
    const WarmSource::Table& table = source.tables()[i];
    if (tables.contains(i)) {
      variables.insert(table.variable);
    } else if (!table.variable) {
      left_tables.push_back(table.name);
    }
  }
  std::vector<std::string> left;
  for (size_t i = 0; i < source.variables().size(); ++i) {
    if (!variables.contains(i)) left.push_back(source.variables()[i].name);
  }
  left.insert(left.end(), left_tables.begin(), left_tables.end());
  return left;
}

}  // namespace

absl::StatusOr<WarmMatch> MatchWarmStart(const job::WarmStart& warm_start,
                                         const CheckpointContents& contents,
                                         const WarmSource& source) {
  WarmNames names(warm_start);
  WarmMatch match;
  match.variables = names.Find(
      "variable", contents.variables, source.variables(),
      [](const durable::CheckpointVariable& wanted,
         const WarmSource::Variable& there) -> std::string {
        if (std::equal(wanted.shape().begin(), wanted.shape().end(),
                       there.shape.begin(), there.shape.end())) {
          return "";
        }
        return absl::StrCat(ShapeText(there.shape), " there, ",
                            ShapeText(wanted.shape()), " in the job");
      });
  match.tables =
      names.Find("table", contents.tables, source.tables(),
                 [](const durable::CheckpointTable& wanted,
                    const WarmSource::Table& there) -> std::string {
                   if (wanted.width() == there.width) return "";
                   return absl::StrCat("of width ", there.width, " there, ",
                                       wanted.width(), " in the job");
                 });
  match.left = NamesLeft(match, source);
  const absl::Status verdict = names.Verdict();
  if (!verdict.ok()) return verdict;
  return match;
}

}  // namespace parasol
