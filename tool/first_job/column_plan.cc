#include "tool/first_job/column_plan.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "ml/input/feature/number.h"

namespace parasol {
namespace {

constexpr size_t kMaxClasses = 1000;
constexpr int64_t kMaxIntegerClasses = 10;
constexpr int64_t kMaxVocabulary = 100;
// Up to so many values a vocabulary has all; beyond, values that were seen once
// share an id.
constexpr int64_t kSmallVocabulary = 20;
constexpr int64_t kManyValues = 50;
constexpr int64_t kFewRecords = 10;
constexpr int64_t kRareTexts = 3;
constexpr double kMostlyNumbers = .8;
constexpr double kSkewed = 2;  // deviation over mean

bool IsUsualForMissing(absl::string_view text) {
  static const auto* const usual = new std::set<std::string>{
      "",     "?",    "-",   "--", ".",       "na",  "n/a",  "#n/a",    "nan",
      "null", "none", "nil", "",   "missing", "inf", "-inf", "unknown", "<na>"};
  return usual->contains(absl::AsciiStrToLower(text));
}

bool IsIdName(const std::string& name) {
  const std::string lower = absl::AsciiStrToLower(name);
  for (const char* const whole : {"id", "ids", "index", "idx", "uuid", "guid",
                                  "key", "rowid", "row", "rownum"}) {
    if (lower == whole) return true;
  }
  for (const char* const end :
       {"_id", "-id", " id", ".id", "_index", "_key", "_uuid"}) {
    if (absl::EndsWith(lower, end)) return true;
  }
  return absl::EndsWith(name, "Id") || absl::EndsWith(name, "ID");
}

// Number of values that are neither missing nor stand for missing ones.
int64_t Present(const SurveyedColumn& column,
                const std::vector<std::string>& missing) {
  int64_t present = column.values.all();
  for (const std::string& text : missing) {
    present -= column.values.CountOf(text);
  }
  return present;
}

// True if all values that are not missing are numbers.
bool AreNumbers(const SurveyedColumn& column,
                const std::vector<std::string>& missing) {
  return column.numbers.count > 0 &&
         Present(column, missing) == column.numbers.count;
}

ColumnPlan LeftOut(const std::string& why) {
  return {.use = ColumnPlan::Use::kLeftOut, .why = why};
}

ColumnPlan Number(const SurveyedColumn& column, int64_t present,
                  int64_t records) {
  const NumberStatistics& numbers = column.numbers;
  ColumnPlan plan = {.use = ColumnPlan::Use::kNumber};
  plan.log1p = numbers.min >= 0 && numbers.mean > 0 &&
               numbers.stddev() > kSkewed * numbers.mean;
  const NumberStatistics& normal = plan.log1p ? column.logs : numbers;
  plan.mean = normal.mean;
  plan.stddev = normal.stddev();
  if (present < records) {
    plan.default_value = plan.log1p ? std::expm1(normal.mean) : normal.mean;
  }
  return plan;
}

ColumnPlan Category(const SurveyedColumn& column,
                    const std::vector<std::string>& missing) {
  ColumnPlan plan = {.use = ColumnPlan::Use::kHashed,
                     .distinct = column.values.distinct()};
  if (!column.values.is_complete() || plan.distinct > kMaxVocabulary) {
    return plan;
  }
  plan.use = ColumnPlan::Use::kCategory;
  for (const auto& [value, count] :
       column.values.MostFrequent(kMaxVocabulary)) {
    if (count < 2 && plan.distinct > kSmallVocabulary) break;
    if (std::find(missing.begin(), missing.end(), value) == missing.end()) {
      plan.vocabulary.push_back(value);
    }
  }
  if (plan.vocabulary.empty()) plan.use = ColumnPlan::Use::kHashed;
  return plan;
}

// True if nearly each record has a value of its own.
bool AreUnique(const SurveyedColumn& column, int64_t present) {
  const int64_t distinct = column.values.distinct();
  if (!column.values.is_complete()) {
    return column.values.all() > 0 && distinct * 2 > column.values.all();
  }
  return present >= kFewRecords && distinct * 2 > present &&
         (distinct > kManyValues || distinct == present);
}

// The label's different values, in the order of classes.
std::vector<std::string> LabelTexts(const SurveyedColumn& column,
                                    const std::vector<std::string>& missing) {
  std::vector<std::string> texts;
  for (const auto& [value, count] :
       column.values.MostFrequent(kMaxClasses + missing.size() + 1)) {
    if (std::find(missing.begin(), missing.end(), value) == missing.end()) {
      texts.push_back(value);
    }
  }
  std::sort(texts.begin(), texts.end(),
            [](const std::string& a, const std::string& b) {
              const auto x = ParseNumber(a);
              const auto y = ParseNumber(b);
              return x && y && *x != *y ? *x < *y : a < b;
            });
  return texts;
}

bool IsPositive(const std::string& text) {
  static const auto* const positive = new std::set<std::string>{
      "yes", "y", "true", "t", "1", "positive", "pos", "on", "ja", "oui"};
  return positive->contains(absl::AsciiStrToLower(text));
}

// True if the texts are 0, 1, … as they are written.
bool AreClassNumbers(const std::vector<std::string>& texts) {
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i] != absl::StrCat(i)) return false;
  }
  return true;
}

FirstTask GuessTask(const SurveyedColumn& column, bool are_numbers,
                    size_t distinct) {
  if (distinct == 2) return FirstTask::kBinary;
  if (!are_numbers) return FirstTask::kClasses;
  return column.are_integers &&
                 static_cast<int64_t>(distinct) <= kMaxIntegerClasses &&
                 column.numbers.count >= 5 * static_cast<int64_t>(distinct)
             ? FirstTask::kClasses
             : FirstTask::kRegression;
}

}  // namespace

std::vector<std::string> MissingTexts(const TableSurvey& survey) {
  std::set<std::string> missing;
  for (const SurveyedColumn& column : survey.columns) {
    if (column.numbers.count == 0 || column.texts.distinct() > kRareTexts ||
        !column.texts.is_complete()) {
      continue;
    }
    const bool mostly =
        static_cast<double>(column.numbers.count) >=
        kMostlyNumbers * static_cast<double>(column.values.all());
    const auto texts = column.texts.MostFrequent(kRareTexts);
    const bool usual = std::all_of(
        texts.begin(), texts.end(),
        [](const auto& text) { return IsUsualForMissing(text.first); });
    if (!mostly && !usual) continue;
    for (const auto& [text, count] : texts) missing.insert(text);
  }
  return {missing.begin(), missing.end()};
}

ColumnPlan PlanColumn(const SurveyedColumn& column, int64_t records,
                      const std::vector<std::string>& missing) {
  const int64_t present = Present(column, missing);
  const int64_t distinct = column.values.distinct();
  if (column.name.empty()) {
    return LeftOut("has no name, as a table's index");
  }
  if (present == 0) return LeftOut("has no values");
  const bool are_numbers = AreNumbers(column, missing);
  if (distinct == 1 && (present == records || are_numbers)) {
    return LeftOut("has one value only");
  }
  if (are_numbers) {
    const bool is_exact = column.numbers.is_exact();
    const bool counts = is_exact && column.counts_up && distinct == present &&
                        present == records && present >= kFewRecords;
    if (counts) return LeftOut("counts the lines");
    if (column.are_integers && (!is_exact || IsIdName(column.name))) {
      return AreUnique(column, present)
                 ? LeftOut("names the lines: each has another value")
                 : Category(column, missing);
    }
    if (column.numbers.stddev() == 0) return LeftOut("has one value only");
    return Number(column, present, records);
  }
  if (column.dates * 2 > present) {
    return LeftOut(
        "has dates: make columns of numbers of them (year, month, weekday) to "
        "use them");
  }
  if (column.decimal_commas * 2 > present) {
    return LeftOut("has numbers with a decimal comma: write a point");
  }
  if (AreUnique(column, present)) {
    return LeftOut("has another text in nearly every line");
  }
  return Category(column, missing);
}

absl::StatusOr<LabelPlan> PlanLabel(const SurveyedColumn& column,
                                    const std::vector<std::string>& missing,
                                    FirstTask task) {
  const std::string name =
      absl::StrCat("--label=", ShownText(column.name), ": the column ");
  const bool are_numbers = AreNumbers(column, missing);
  const std::vector<std::string> texts = LabelTexts(column, missing);
  if (texts.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(name, "has no values"));
  }
  if (texts.size() == 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, "has one value only, \"", ShownText(texts[0]),
                     "\": there is nothing to learn"));
  }
  if (task == FirstTask::kGuess) {
    task = GuessTask(column, are_numbers, texts.size());
  }
  LabelPlan plan = {.task = task};
  if (task == FirstTask::kRegression) {
    if (!are_numbers) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, "has texts, as \"",
                       ShownText(column.texts.MostFrequent(1)[0].first),
                       "\"; --learn=regression needs numbers"));
    }
    plan.mean = column.numbers.mean;
    plan.stddev = column.numbers.stddev();
    if (plan.stddev == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, column.numbers.is_exact()
                                 ? "has one number alone, in several texts: "
                                   "there is nothing to learn"
                                 : "has numbers that float64 does not tell "
                                   "apart, as integers beyond 2^53: make "
                                   "smaller ones of them"));
    }
    return plan;
  }
  if (task == FirstTask::kBinary && texts.size() != 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, "has more than two values; --learn=binary needs two"));
  }
  const auto present = Present(column, missing);
  if (texts.size() > kMaxClasses || !column.values.is_complete() ||
      (texts.size() > 2 && static_cast<int64_t>(texts.size()) * 2 > present)) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, "has ", texts.size(),
        texts.size() > kMaxClasses ? " or more" : "", " different values in ",
        present, " lines: too many for classes",
        are_numbers ? "; --learn=regression predicts numbers" : ""));
  }
  plan.num_classes = static_cast<int64_t>(texts.size());
  if (!AreClassNumbers(texts)) plan.classes = texts;
  if (plan.classes.size() == 2 && IsPositive(plan.classes[0]) &&
      !IsPositive(plan.classes[1])) {
    std::swap(plan.classes[0], plan.classes[1]);
  }
  return plan;
}

}  // namespace parasol
