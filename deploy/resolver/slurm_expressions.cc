#include "deploy/resolver/slurm_expressions.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "deploy/resolver/hosts.h"

namespace parasol {
namespace {

// Nine digits fit an int, and every sum of two.
constexpr size_t kMaxDigits = 9;
// A DNS name has at most 253 characters.
constexpr size_t kMaxNameBytes = 255;

std::optional<int> ReadNumber(absl::string_view digits) {
  int number = 0;
  if (digits.empty() || digits.size() > kMaxDigits ||
      !std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit) ||
      !absl::SimpleAtoi(digits, &number)) {
    return std::nullopt;
  }
  return number;
}

absl::Status TooMany(absl::string_view part) {
  return absl::InvalidArgumentError(absl::StrCat(
      Quoted(part), " is more than the ", kMaxProcesses, " that are allowed"));
}

// The numbers of one bracket's text "01-03,7".
absl::StatusOr<std::vector<std::string>> ExpandRanges(
    absl::string_view ranges) {
  std::vector<std::string> numbers;
  for (const absl::string_view range : absl::StrSplit(ranges, ',')) {
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(range, absl::MaxSplits('-', 1));
    const std::optional<int> first = ReadNumber(ends.first);
    const std::optional<int> last =
        absl::StrContains(range, '-') ? ReadNumber(ends.second) : first;
    if (!first.has_value() || !last.has_value() || *last < *first) {
      return absl::InvalidArgumentError(absl::StrCat(
          Quoted(range),
          " is not a range as in n[1-3,07], of up to nine digits"));
    }
    if (*last - *first >= kMaxProcesses - static_cast<int>(numbers.size())) {
      return TooMany(range);
    }
    for (int number = *first; number <= *last; ++number) {
      numbers.push_back(
          absl::StrFormat("%0*d", static_cast<int>(ends.first.size()), number));
    }
  }
  return numbers;
}

// Splits at the commas that are outside of brackets.
absl::StatusOr<std::vector<absl::string_view>> SplitNodes(
    absl::string_view list) {
  std::vector<absl::string_view> nodes;
  bool in_bracket = false;
  size_t start = 0;
  for (size_t i = 0; i <= list.size(); ++i) {
    const char c = i < list.size() ? list[i] : ',';
    if ((c == '[' && in_bracket) || (c == ']' && !in_bracket) ||
        (i == list.size() && in_bracket)) {
      return absl::InvalidArgumentError(absl::StrCat(
          Quoted(list.substr(start)), " has a bracket without its other end"));
    }
    if (c == '[' || c == ']') in_bracket = c == '[';
    if (c != ',' || in_bracket) continue;
    nodes.push_back(list.substr(start, i - start));
    start = i + 1;
  }
  return nodes;
}

// Appends each of `endings` to each of `names`.
absl::Status Combine(absl::string_view node,
                     const std::vector<std::string>& endings,
                     std::vector<std::string>& names) {
  if (names.size() * endings.size() > kMaxProcesses) return TooMany(node);
  std::vector<std::string> combined;
  combined.reserve(names.size() * endings.size());
  for (const std::string& name : names) {
    for (const std::string& ending : endings) {
      if (name.size() + ending.size() > kMaxNameBytes) {
        return absl::InvalidArgumentError(absl::StrCat(
            Quoted(node), " has names of more than ", kMaxNameBytes, " bytes"));
      }
      combined.push_back(absl::StrCat(name, ending));
    }
  }
  names = std::move(combined);
  return absl::OkStatus();
}

// The names of "rack[1-2]n[01-03]", whose brackets match.
absl::StatusOr<std::vector<std::string>> ExpandNode(absl::string_view node) {
  if (node.empty()) {
    return absl::InvalidArgumentError("a name between two commas is empty");
  }
  std::vector<std::string> names = {""};
  for (absl::string_view rest = node; !rest.empty();) {
    const bool is_bracket = absl::ConsumePrefix(&rest, "[");
    const size_t end = rest.find(is_bracket ? ']' : '[');
    const absl::string_view part = rest.substr(0, end);
    rest.remove_prefix(std::min(rest.size(), part.size() + is_bracket));
    std::vector<std::string> endings = {std::string(part)};
    if (is_bracket) {
      ASSIGN_OR_RETURN(endings, ExpandRanges(part), _ << Quoted(node));
    }
    RETURN_IF_ERROR(Combine(node, endings, names));
  }
  return names;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExpandNodeList(
    absl::string_view list) {
  ASSIGN_OR_RETURN(const std::vector<absl::string_view> nodes,
                   SplitNodes(list));
  std::vector<std::string> all;
  for (const absl::string_view node : nodes) {
    ASSIGN_OR_RETURN(const std::vector<std::string> names, ExpandNode(node));
    if (all.size() + names.size() > kMaxProcesses) return TooMany(node);
    all.insert(all.end(), names.begin(), names.end());
  }
  return all;
}

absl::StatusOr<std::vector<int>> ExpandTasksPerNode(absl::string_view list) {
  std::vector<int> all;
  int64_t total = 0;
  for (const absl::string_view element : absl::StrSplit(list, ',')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(element, absl::MaxSplits('(', 1));
    absl::string_view times_text = parts.second;
    const bool is_repeated = absl::StrContains(element, '(');
    const bool is_closed = absl::ConsumePrefix(&times_text, "x") &&
                           absl::ConsumeSuffix(&times_text, ")");
    const std::optional<int> count = ReadNumber(parts.first);
    const std::optional<int> times =
        is_repeated ? ReadNumber(times_text) : std::optional<int>(1);
    if (!count.has_value() || !times.has_value() || *count < 1 || *times < 1 ||
        is_repeated != is_closed) {
      return absl::InvalidArgumentError(
          absl::StrCat(Quoted(element), " is not a number as in 2(x3),1"));
    }
    total += int64_t{*count} * *times;
    if (total > kMaxProcesses) return TooMany(element);
    all.insert(all.end(), *times, *count);
  }
  return all;
}

}  // namespace parasol
