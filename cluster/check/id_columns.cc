#include "cluster/check/id_columns.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/did_you_mean.h"
#include "base/shown_text.h"

namespace parasol {
namespace {

constexpr size_t kMaxHashedValues = 1000;
constexpr size_t kMaxVocabulary = 10'000;
constexpr size_t kNamed = 5;
constexpr size_t kFrequent = 5;       // values of a column that are shown
constexpr size_t kCandidates = 1000;  // for what may be meant
constexpr int64_t kEnoughValues = 100;
constexpr double kManyOutside = .01;
constexpr double kManyOnce = .5;

// A column of ids that is no cross, with its place in the job.
struct IdColumnPlace {
  std::string path = {};
  const job::IdColumn* column = nullptr;
  const ValueCounts* counts = nullptr;
};

std::vector<IdColumnPlace> Places(const job::Model& model,
                                  const CountsByColumn& counts) {
  std::vector<IdColumnPlace> places;
  for (int i = 0; i < model.input_size(); ++i) {
    const job::IdInput& ids = model.input(i).ids();
    for (int j = 0; j < ids.column_size(); ++j) {
      if (ids.column(j).name_size() != 1) continue;
      const auto found = counts.find(ids.column(j).name(0));
      if (found == counts.end() || found->second.all() == 0) continue;
      places.push_back(
          {.path = absl::StrCat("model.input[", i, "].ids.column[", j, "]"),
           .column = &ids.column(j),
           .counts = &found->second});
    }
  }
  return places;
}

std::set<std::string> Listed(const job::Vocabulary& vocabulary) {
  std::set<std::string> values(vocabulary.value().begin(),
                               vocabulary.value().end());
  for (const std::string& value : vocabulary.value()) {
    values.emplace(absl::StripAsciiWhitespace(value));
  }
  return values;
}

std::string Share(int64_t part, int64_t whole) {
  return absl::StrFormat("%.3g %%", 100.0 * static_cast<double>(part) /
                                        static_cast<double>(whole));
}

// "\"a\", \"b\", …" of the first few of `all` values.
std::string Some(const std::vector<std::string>& values, size_t all) {
  std::vector<std::string> shown;
  for (const std::string& value : values) {
    if (shown.size() == kNamed) break;
    shown.push_back(absl::StrCat("\"", ShownText(value), "\""));
  }
  return absl::StrCat(absl::StrJoin(shown, ", "),
                      all > shown.size() ? ", …" : "");
}

void WarnOfVocabulary(const IdColumnPlace& place,
                      std::vector<std::string>& warnings) {
  const job::Vocabulary& vocabulary = place.column->vocabulary();
  const std::string column =
      absl::StrCat("column \"", ShownText(place.column->name(0)), "\"");
  const std::set<std::string> listed = Listed(vocabulary);
  std::vector<std::string> seen;
  std::vector<std::string> outside;
  int64_t examples_outside = 0;
  for (const auto& [value, count] : place.counts->MostFrequent(SIZE_MAX)) {
    if (seen.size() < kCandidates) seen.push_back(value);
    if (listed.contains(value)) continue;
    outside.push_back(value);
    examples_outside += count;
  }
  std::vector<std::string> unseen;
  for (const std::string& value : vocabulary.value()) {
    if (place.counts->CountOf(value) == 0 &&
        place.counts->CountOf(absl::StripAsciiWhitespace(value)) == 0) {
      unseen.push_back(value);
    }
  }
  if (!unseen.empty() && place.counts->is_complete()) {
    warnings.push_back(absl::StrCat(
        place.path, ".vocabulary: ", unseen.size(), " of ",
        vocabulary.value_size(), " values are never seen in ", column, ": ",
        Some(unseen, unseen.size()), DidYouMean(unseen[0], seen)));
  }
  if (static_cast<double>(examples_outside) <
      kManyOutside * static_cast<double>(place.counts->all())) {
    return;
  }
  warnings.push_back(absl::StrCat(
      place.path, ".vocabulary: ", Share(examples_outside, place.counts->all()),
      " of the values of ", column, " are not in it, as ",
      Some(outside, outside.size()),
      vocabulary.out_of_vocabulary() == 0
          ? ": they count as missing"
          : absl::StrCat(
                ": they share ", vocabulary.out_of_vocabulary(),
                vocabulary.out_of_vocabulary() == 1 ? " id" : " ids")));
}

}  // namespace

void AddValues(const std::vector<FieldValue>& values, bool counts_numbers,
               ColumnReport& column, ValueCounts& counts) {
  char buffer[FieldValue::kMaxNumberBytes];
  ++column.records;
  if (values.empty()) ++column.missing;
  for (const FieldValue& value : values) {
    if (value.is_missing()) continue;
    const std::optional<double> number = value.AsNumber();
    if (number.has_value()) {
      column.numbers.Add(*number);
      constexpr double kMostExact = int64_t{1} << 53;
      if (std::abs(*number) > kMostExact) {
        column.has_large_reals |= value.AsText(buffer).find_first_of(".eE") !=
                                  absl::string_view::npos;
      }
    } else {
      ++column.texts;
    }
    if (counts_numbers || !number.has_value()) {
      counts.Add(value.AsText(buffer));
    }
  }
}

void DescribeValues(const ValueCounts& counts, ColumnReport& column) {
  column.distinct = counts.distinct();
  column.distinct_is_least = !counts.is_complete();
  for (const auto& [value, count] : counts.MostFrequent(kFrequent)) {
    column.frequent.push_back({.name = value, .examples = count});
  }
}

std::vector<std::string> IdColumnWarnings(const job::Model& model,
                                          const CountsByColumn& counts) {
  std::vector<std::string> warnings;
  for (const IdColumnPlace& place : Places(model, counts)) {
    const ValueCounts& values = *place.counts;
    const std::string column =
        absl::StrCat("column \"", ShownText(place.column->name(0)), "\"");
    if (place.column->has_vocabulary()) WarnOfVocabulary(place, warnings);
    const int64_t buckets = place.column->hash().buckets();
    if (buckets > 0 && values.distinct() > buckets) {
      warnings.push_back(absl::StrCat(
          place.path, ".hash.buckets: ", values.distinct(),
          values.is_complete() ? "" : " or more", " different values of ",
          column, " share ", buckets, buckets == 1 ? " id" : " ids"));
    }
    const bool learns_each =
        place.column->has_hash() || place.column->has_identity();
    const int64_t once = values.SeenOnce();
    if (learns_each && values.is_complete() && values.all() >= kEnoughValues &&
        static_cast<double>(once) >
            kManyOnce * static_cast<double>(values.all())) {
      warnings.push_back(absl::StrCat(
          place.path, ": ", Share(once, values.all()), " of the values of ",
          column,
          " are seen once: a model learns these examples by heart, and "
          "nothing for others"));
    }
  }
  return warnings;
}

std::vector<VocabularyChange> VocabularyChanges(const job::Model& model,
                                                const CountsByColumn& counts) {
  std::vector<VocabularyChange> changes;
  for (const IdColumnPlace& place : Places(model, counts)) {
    const bool is_hash = place.column->has_hash();
    if (!place.counts->is_complete() ||
        (!is_hash && !place.column->has_vocabulary())) {
      continue;
    }
    const size_t most = is_hash ? kMaxHashedValues : kMaxVocabulary;
    if (static_cast<size_t>(place.counts->distinct()) > most) continue;
    const std::set<std::string> listed = Listed(place.column->vocabulary());
    VocabularyChange change = {.path = place.path,
                               .column = place.column->name(0),
                               .replaces_hash = is_hash};
    for (const auto& [value, count] : place.counts->MostFrequent(most)) {
      if (!listed.contains(value)) change.values.push_back(value);
    }
    if (!change.values.empty()) changes.push_back(std::move(change));
  }
  return changes;
}

}  // namespace parasol
