#include "ml/input/feature/id_feature.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/shown_text.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

// Stands for the value of a missing one; no text in UTF-8 holds it.
constexpr absl::string_view kMissingPart = "\xff";

absl::Status Fault(const job::IdColumn& column, absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat("column ", absl::StrJoin(column.name(), " x "), ": ", what));
}

absl::Status Refused(const job::IdColumn& column, const FieldValue& value,
                     absl::string_view what) {
  char buffer[FieldValue::kMaxNumberBytes];
  return Fault(column, absl::StrCat("\"", ShownText(value.AsText(buffer), 40),
                                    "\" ", what));
}

uint64_t OutOfVocabulary(const job::Vocabulary& vocabulary) {
  return vocabulary.has_out_of_vocabulary() ? vocabulary.out_of_vocabulary()
                                            : 1;
}

uint64_t ValuesOf(const job::IdColumn& column) {
  switch (column.kind_case()) {
    case job::IdColumn::kHash:
      return column.hash().buckets();
    case job::IdColumn::kVocabulary:
      return column.vocabulary().value_size() +
             OutOfVocabulary(column.vocabulary());
    case job::IdColumn::kBoundaries:
      return column.boundaries().boundary_size() + 1;
    case job::IdColumn::kIdentity:
      return column.identity().num_ids();
    case job::IdColumn::KIND_NOT_SET:
      break;
  }
  return 0;
}

}  // namespace

IdColumnReader::IdColumnReader(const job::IdColumn& column,
                               std::vector<size_t> slots, uint64_t offset)
    : spec_(column),
      columns_(std::move(slots)),
      offset_(offset),
      values_(ValuesOf(column)) {
  for (const std::string& name : column.name()) names_.AddPart(name);
  for (const std::string& value : column.vocabulary().value()) {
    vocabulary_.emplace(value, vocabulary_.size());
  }
}

uint64_t IdColumnReader::id_space() const {
  if (values_ == 0) return 0;
  return values_ + (spec_.missing() == job::IdColumn::NO_ID ? 0 : 1);
}

absl::Status IdColumnReader::Append(const ColumnValues& row,
                                    std::vector<uint64_t>& ids) const {
  if (columns_.size() > 1) return AppendCross(row, ids);
  if (row[columns_.front()].empty()) return AppendMissing(ids);
  return AppendList(row, ids);
}

absl::Status IdColumnReader::AppendList(const ColumnValues& row,
                                        std::vector<uint64_t>& ids) const {
  for (const FieldValue& value : row[columns_.front()]) {
    if (value.is_missing()) {
      RETURN_IF_ERROR(AppendMissing(ids));
      continue;
    }
    if (spec_.has_hash()) {
      ids.push_back(HashedIdOf(value));
      continue;
    }
    std::optional<uint64_t> id;
    RETURN_IF_ERROR(IdOf(value, id));
    if (id.has_value()) {
      ids.push_back(offset_ + *id);
    } else {
      RETURN_IF_ERROR(AppendMissing(ids));
    }
  }
  return absl::OkStatus();
}

absl::Status IdColumnReader::AppendMissing(std::vector<uint64_t>& ids) const {
  if (spec_.missing() == job::IdColumn::NO_ID) return absl::OkStatus();
  if (values_ == 0 && !spec_.has_hash()) return Fault(spec_, "no value");
  ids.push_back(values_ == 0 ? Fingerprint(names_).AddPart(kMissingPart).Get()
                             : offset_ + values_);
  return absl::OkStatus();
}

absl::Status IdColumnReader::AppendCross(const ColumnValues& row,
                                         std::vector<uint64_t>& ids) const {
  Fingerprint fingerprint = names_;
  for (const size_t slot : columns_) {
    if (row[slot].empty()) return AppendMissing(ids);
    if (row[slot].size() > 1) {
      return Fault(spec_, absl::StrCat(row[slot].size(),
                                       " values in one column of a cross"));
    }
    char buffer[FieldValue::kMaxNumberBytes];
    fingerprint.AddPart(row[slot].front().AsText(buffer));
  }
  ids.push_back(offset_ + Hashed(fingerprint));
  return absl::OkStatus();
}

absl::Status IdColumnReader::IdOf(const FieldValue& value,
                                  std::optional<uint64_t>& id) const {
  switch (spec_.kind_case()) {
    case job::IdColumn::kVocabulary: {
      char buffer[FieldValue::kMaxNumberBytes];
      const absl::string_view text = value.AsText(buffer);
      const auto known = vocabulary_.find(text);
      if (known != vocabulary_.end()) {
        id = known->second;
      } else if (OutOfVocabulary(spec_.vocabulary()) == 0) {
        id = std::nullopt;
      } else {
        id = vocabulary_.size() + Fingerprint(names_).AddPart(text).Get() %
                                      OutOfVocabulary(spec_.vocabulary());
      }
      return absl::OkStatus();
    }
    case job::IdColumn::kBoundaries:
      return BucketOf(value, id);
    case job::IdColumn::kHash:
    case job::IdColumn::kIdentity:
    case job::IdColumn::KIND_NOT_SET:
      break;
  }
  return NumberOf(value, id);
}

absl::Status IdColumnReader::BucketOf(const FieldValue& value,
                                      std::optional<uint64_t>& id) const {
  const std::optional<double> number = value.AsNumber();
  if (!number.has_value()) {
    return Refused(spec_, value, "is not a finite number");
  }
  const auto& boundaries = spec_.boundaries().boundary();
  id = std::upper_bound(boundaries.begin(), boundaries.end(), *number) -
       boundaries.begin();
  return absl::OkStatus();
}

absl::Status IdColumnReader::NumberOf(const FieldValue& value,
                                      std::optional<uint64_t>& id) const {
  id = value.AsId();
  if (!id.has_value()) {
    char buffer[FieldValue::kMaxNumberBytes];
    return Refused(spec_, value,
                   IsInteger(value.AsText(buffer))
                       ? "is beyond the 64 bits of an id; hash takes any text"
                       : "is not the number of an id");
  }
  if (values_ == 0) return absl::OkStatus();
  if (value.IsNegativeInteger()) {
    return Refused(spec_, value,
                   absl::StrCat("is not from 0 to ", values_ - 1));
  }
  if (*id < values_) return absl::OkStatus();
  return Refused(spec_, value, absl::StrCat("is not below ", values_));
}

uint64_t IdColumnReader::HashedIdOf(const FieldValue& value) const {
  char buffer[FieldValue::kMaxNumberBytes];
  return offset_ + Hashed(Fingerprint(names_).AddPart(value.AsText(buffer)));
}

uint64_t IdColumnReader::Hashed(const Fingerprint& fingerprint) const {
  return values_ == 0 ? fingerprint.Get() : fingerprint.Get() % values_;
}

IdFeatureReader::IdFeatureReader(const job::IdInput& input,
                                 const std::vector<std::vector<size_t>>& slots)
    : sequence_(input.has_sequence() ? std::make_optional(input.sequence())
                                     : std::nullopt) {
  uint64_t offset = 0;
  columns_.reserve(slots.size());
  for (size_t i = 0; i < slots.size(); ++i) {
    const job::IdColumn& column = input.column(static_cast<int>(i));
    // Fingerprints are spread over all 64 bits: an offset would do nothing.
    const bool is_fingerprint =
        column.has_hash() && column.hash().buckets() == 0;
    columns_.emplace_back(column, slots[i], is_fingerprint ? 0 : offset);
    offset += columns_.back().id_space();
  }
}

absl::Status IdFeatureReader::Append(const ColumnValues& row,
                                     IdFeature& feature) const {
  if (sequence_.has_value()) {
    RETURN_IF_ERROR(AppendSequence(row, feature.ids));
  } else {
    for (const IdColumnReader& column : columns_) {
      RETURN_IF_ERROR(column.Append(row, feature.ids));
    }
  }
  if (feature.ids.size() > std::numeric_limits<int32_t>::max()) {
    return absl::DataLossError("more than 2^31 - 1 ids in a batch");
  }
  feature.offsets.push_back(static_cast<int32_t>(feature.ids.size()));
  return absl::OkStatus();
}

absl::Status IdFeatureReader::AppendSequence(const ColumnValues& row,
                                             std::vector<uint64_t>& ids) const {
  const auto first = static_cast<std::ptrdiff_t>(ids.size());
  RETURN_IF_ERROR(columns_.front().AppendList(row, ids));
  const std::ptrdiff_t too_many =
      static_cast<std::ptrdiff_t>(ids.size()) - first - sequence_->length();
  if (too_many <= 0) return absl::OkStatus();
  const bool keeps_first = sequence_->keep() == job::IdSequence::FIRST;
  const auto cut = keeps_first ? ids.end() - too_many : ids.begin() + first;
  ids.erase(cut, cut + too_many);
  return absl::OkStatus();
}

}  // namespace parasol
