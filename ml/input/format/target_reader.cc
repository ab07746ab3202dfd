#include "ml/input/format/target_reader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/input/feature/meaningless_label.h"

namespace parasol {
namespace {

size_t PlaceOf(const std::string& column, std::vector<std::string>& columns) {
  const auto known = std::find(columns.begin(), columns.end(), column);
  const size_t place = known - columns.begin();
  if (known == columns.end()) columns.push_back(column);
  return place;
}

}  // namespace

TargetReader::TargetReader(const std::vector<TargetInput>& targets,
                           std::vector<std::string>& columns) {
  for (const TargetInput& target : targets) {
    Entry& entry = entries_.emplace_back(
        Entry{.spec = target,
              .rule = LabelRule(target.label),
              .label = PlaceOf(target.label.column(), columns)});
    if (!target.mask.empty()) entry.mask = PlaceOf(target.mask, columns);
  }
}

absl::Status TargetReader::Append(const ColumnValues& row, Batch& batch) const {
  for (size_t i = 0; i < entries_.size(); ++i) {
    RETURN_IF_ERROR(AppendOne(entries_[i], row, batch.targets[i]))
        << "output \"" << entries_[i].spec.output << "\"";
  }
  return absl::OkStatus();
}

absl::Status TargetReader::AppendOne(const Entry& entry,
                                     const ColumnValues& row, Target& target) {
  const std::vector<FieldValue>& label = row[entry.label];
  bool counts = !label.empty();
  if (entry.mask.has_value()) {
    const std::vector<FieldValue>& values = row[*entry.mask];
    double mask = 0;
    if (!values.empty()) {
      ASSIGN_OR_RETURN(
          mask, OnlyNumber(values, absl::StrCat("mask ", entry.spec.mask)));
    }
    counts = counts && mask != 0;
  }
  if (counts) {
    RETURN_IF_ERROR(entry.rule.Append(entry.spec.form, label, target.labels));
  } else {
    AppendMeaninglessLabel(entry.spec.form, target.labels);
  }
  target.weights.push_back(counts ? 1.0f : 0.0f);
  return absl::OkStatus();
}

}  // namespace parasol
