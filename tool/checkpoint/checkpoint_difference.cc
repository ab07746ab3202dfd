#include "tool/checkpoint/checkpoint_difference.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "tool/checkpoint/checkpoint_values.h"
#include "tool/checkpoint/table_difference.h"

namespace parasol {
namespace {

std::string FormOf(const durable::CheckpointVariable& variable) {
  return absl::StrCat("the shape [", absl::StrJoin(variable.shape(), ","), "]");
}

std::string FormOf(const durable::CheckpointTable& table) {
  return absl::StrCat("width ", table.width());
}

template <typename Entry>
std::string SlotsOf(const Entry& entry) {
  return entry.slot().empty()
             ? "no slots"
             : absl::StrCat("slots ", absl::StrJoin(entry.slot(), ", "));
}

template <typename Entries>
auto Find(const Entries& entries, const std::string& name) {
  return std::find_if(entries.begin(), entries.end(),
                      [&](const auto& entry) { return entry.name() == name; });
}

// Notes what tells the entries apart; returns the names of those that can be
// compared element by element.
template <typename Entries>
std::vector<std::string> Comparable(const std::string& kind, const Entries& a,
                                    const Entries& b,
                                    std::vector<std::string>& structure) {
  std::vector<std::string> names;
  for (const auto& entry : a) {
    const std::string name = absl::StrCat(kind, " ", entry.name());
    const auto other = Find(b, entry.name());
    if (other == b.end()) {
      structure.push_back(absl::StrCat(name, " is only in A"));
    } else if (FormOf(entry) != FormOf(*other)) {
      structure.push_back(absl::StrCat(name, " has ", FormOf(entry),
                                       " in A and ", FormOf(*other), " in B"));
    } else if (SlotsOf(entry) != SlotsOf(*other)) {
      structure.push_back(absl::StrCat(name, " has ", SlotsOf(entry),
                                       " in A and ", SlotsOf(*other), " in B"));
    } else {
      names.push_back(entry.name());
    }
  }
  for (const auto& entry : b) {
    if (Find(a, entry.name()) != a.end()) continue;
    structure.push_back(absl::StrCat(kind, " ", entry.name(), " is only in B"));
  }
  return names;
}

absl::StatusOr<ArrayDifference> CompareArray(
    const CheckpointReader& a, const CheckpointReader& b,
    const durable::CheckpointVariable& variable, int array) {
  ArrayDifference difference;
  difference.name = variable.name();
  if (array != kValueArray) {
    absl::StrAppend(&difference.name, ", slot ", variable.slot(array - 1));
  }
  ASSIGN_OR_RETURN(difference.elements, ElementsOf(variable));
  std::vector<float> other;
  RETURN_IF_ERROR(
      VisitElements(
          a, variable, array,
          [&](int64_t first, absl::Span<const float> values) -> absl::Status {
            other.resize(values.size());
            RETURN_IF_ERROR(b.ReadElements(variable.name(), array, first,
                                           absl::MakeSpan(other))
                                .status());
            for (size_t i = 0; i < values.size(); ++i) {
              const double distance = DifferenceOf(values[i], other[i]);
              if (distance > 0) ++difference.differing;
              difference.largest = std::max(difference.largest, distance);
            }
            return absl::OkStatus();
          })
          .status());
  return difference;
}

}  // namespace

bool CheckpointDifference::IsSame(double tolerance) const {
  return structure.empty() &&
         std::all_of(arrays.begin(), arrays.end(),
                     [&](const ArrayDifference& array) {
                       return array.largest <= tolerance;
                     }) &&
         std::all_of(tables.begin(), tables.end(),
                     [&](const TableDifference& table) {
                       return table.only_in_a + table.only_in_b == 0 &&
                              table.largest <= tolerance;
                     });
}

absl::StatusOr<CheckpointDifference> Compare(const CheckpointReader& a,
                                             const CheckpointReader& b,
                                             size_t row_bytes) {
  CheckpointDifference difference;
  difference.a = a.manifest();
  difference.b = b.manifest();
  for (const std::string& name :
       Comparable("variable", difference.a.variable(), difference.b.variable(),
                  difference.structure)) {
    const auto& variable = *Find(difference.a.variable(), name);
    for (int array = 0; array <= variable.slot_size(); ++array) {
      ASSIGN_OR_RETURN(ArrayDifference compared,
                       CompareArray(a, b, variable, array));
      difference.arrays.push_back(std::move(compared));
    }
  }
  for (const std::string& name :
       Comparable("table", difference.a.table(), difference.b.table(),
                  difference.structure)) {
    ASSIGN_OR_RETURN(TableDifference compared,
                     CompareTable(a, b, name, row_bytes));
    difference.tables.push_back(std::move(compared));
  }
  RETURN_IF_ERROR(a.Verify());
  RETURN_IF_ERROR(b.Verify());
  return difference;
}

}  // namespace parasol
