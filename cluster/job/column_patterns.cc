#include "cluster/job/column_patterns.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/did_you_mean.h"
#include "base/field_checks.h"
#include "base/shown_text.h"
#include "ml/input/feature/column_wildcards.h"
#include "ml/input/format/dataset_columns.h"

namespace parasol {
namespace {

// Largest job that patterns may make; a column's vocabulary is copied for each
// match.
constexpr size_t kMaxResolvedBytes = 16 << 20;
const job::Dataset& DataOf(const job::Job& job) {
  return job.has_train() || !job.has_eval() ? job.train() : job.eval();
}

std::vector<std::string> NamesOf(const job::NumericColumn& column) {
  return {column.name()};
}

std::vector<std::string> NamesOf(const job::IdColumn& column) {
  return {column.name().begin(), column.name().end()};
}

void SetName(const std::string& name, job::NumericColumn& column) {
  column.set_name(name);
}

void SetName(const std::string& name, job::IdColumn& column) {
  column.clear_name();
  column.add_name(name);
}

template <typename Column>
bool HasPattern(const Column& column) {
  const std::vector<std::string> names = NamesOf(column);
  return std::any_of(names.begin(), names.end(), HasWildcards);
}

bool HasPattern(const job::ModelInput& input) {
  const auto is_pattern = [](const auto& column) { return HasPattern(column); };
  return std::any_of(input.dense().column().begin(),
                     input.dense().column().end(), is_pattern) ||
         std::any_of(input.ids().column().begin(), input.ids().column().end(),
                     is_pattern);
}

// Returns true if a name can be resolved only by the data's columns.
bool NeedsColumns(const job::ModelInput& input) {
  std::string literal;
  const auto needs = [&literal](const auto& column) {
    for (const std::string& name : NamesOf(column)) {
      if (HasWildcards(name) && !IsEscapedName(name, literal)) return true;
    }
    return false;
  };
  return std::any_of(input.dense().column().begin(),
                     input.dense().column().end(), needs) ||
         std::any_of(input.ids().column().begin(), input.ids().column().end(),
                     needs);
}

bool Has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Adds the columns of labels, masks and weights that the job names.
void AddLabels(const job::Job& job, Columns& columns) {
  const auto add = [&columns](const std::string& name) {
    if (!name.empty()) columns.labels_and_weights.push_back(name);
  };
  for (const job::Dataset* data : {&job.train(), &job.eval()}) {
    add(data->csv().label().column());
    add(data->csv().weight_column());
    add(data->tfrecord().label());
    add(data->tfrecord().weight());
    add(data->array().label());
    add(data->array().weight());
    add(data->parquet().label().column());
    add(data->parquet().weight_column());
  }
  for (const job::Output& output : job.model().output()) {
    add(output.label().column());
    add(output.mask());
  }
}

// The end of an error about a pattern that matches nothing.
std::string NearMisses(const std::string& pattern, const Columns& columns) {
  std::vector<std::string> other_case;
  const std::string lower = absl::AsciiStrToLower(pattern);
  for (const std::string& name : columns.names) {
    if (name.empty()) continue;
    if (MatchesWildcards(pattern, name)) {
      return absl::StrCat("; \"", name,
                          "\" matches, but has labels, masks or weights, or "
                          "the input names it elsewhere");
    }
    if (MatchesWildcards(lower, absl::AsciiStrToLower(name))) {
      other_case.push_back(name);
    }
  }
  if (!other_case.empty()) {
    return absl::StrCat("; did you mean ", ShownList(other_case),
                        "? Upper and lower case differ");
  }
  std::string letters = pattern;
  std::erase_if(letters, [](char c) { return c == '*' || c == '?'; });
  const std::string meant = DidYouMean(letters, columns.names);
  if (!meant.empty()) return meant;
  return absl::StrCat(", but ", ShownList(columns.names));
}

// What the name of one column in a job file stands for.
struct Meaning {
  std::string literal;  // a column's name, unless it is a pattern
  bool is_pattern = false;
};

Meaning MeaningOf(const std::string& name, const Columns& columns) {
  Meaning meaning = {.literal = name};
  if (!HasWildcards(name) || Has(columns.names, name)) return meaning;
  meaning.is_pattern = !IsEscapedName(name, meaning.literal);
  return meaning;
}

// Resolves the patterns of one input's list of columns.
template <typename Column>
class ListResolver {
 public:
  using List = google::protobuf::RepeatedPtrField<Column>;

  // `path`: the list's. Replaces the contents of `columns`.
  ListResolver(std::string path, const Columns& known, List& columns,
               Faults& faults)
      : path_(std::move(path)),
        known_(known),
        columns_(columns),
        faults_(faults) {
    given_.Swap(&columns_);
    for (const Column& column : given_) {
      const std::vector<std::string> names = NamesOf(column);
      if (names.size() != 1) continue;
      const Meaning meaning = MeaningOf(names[0], known_);
      if (!meaning.is_pattern) named_.insert(meaning.literal);
    }
  }

  void Resolve(std::vector<ColumnPattern>& patterns) {
    for (int i = 0; i < given_.size(); ++i) {
      const std::vector<std::string> names = NamesOf(given_[i]);
      if (names.size() != 1) {
        AddCross(i, names);
        continue;
      }
      const Meaning meaning = MeaningOf(names[0], known_);
      if (meaning.is_pattern) {
        AddMatches(i, names[0], patterns);
      } else {
        Add(i, meaning.literal);
      }
    }
  }

  // Returns the number in the file of each column of the resolved list.
  std::vector<int> TakeNumbers() { return std::move(numbers_); }

 private:
  void Fail(int number, absl::string_view what) {
    faults_.Add(Fault(absl::StrCat(path_, "[", number, "].name"), what));
  }

  void AddAsItIs(int number) {
    numbers_.push_back(number);
    *columns_.Add() = given_[number];
  }

  void Add(int number, const std::string& name) {
    AddAsItIs(number);
    SetName(name, columns_[columns_.size() - 1]);
  }

  void AddCross(int number, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      if (!MeaningOf(name, known_).is_pattern) continue;
      Fail(number, absl::StrCat("\"", name,
                                "\" is a pattern, and a cross is of columns "
                                "that it names one by one"));
    }
    AddAsItIs(number);
  }

  void AddMatches(int number, const std::string& pattern,
                  std::vector<ColumnPattern>& patterns) {
    const std::vector<std::string> matches = Match(number, pattern);
    bytes_ += given_[number].ByteSizeLong() * matches.size();
    if (bytes_ > kMaxResolvedBytes) {
      Fail(number, absl::StrCat("\"", pattern, "\" matches ", matches.size(),
                                " columns, and with a copy of its settings for "
                                "each the job has more than ",
                                kMaxResolvedBytes >> 20, " MiB"));
    }
    if (matches.empty() || bytes_ > kMaxResolvedBytes) {
      return AddAsItIs(number);
    }
    for (const std::string& name : matches) Add(number, name);
    patterns.push_back({.path = absl::StrCat(path_, "[", number, "]"),
                        .pattern = pattern,
                        .columns = matches});
  }

  // Returns the columns that the pattern stands for; none after a fault.
  std::vector<std::string> Match(int number, const std::string& pattern) {
    std::vector<std::string> matches;
    for (const std::string& name : known_.names) {
      // A column without a name, as an index that pandas writes, is none that a
      // job can mean.
      if (name.empty() || !MatchesWildcards(pattern, name) ||
          named_.contains(name) || Has(known_.labels_and_weights, name)) {
        continue;
      }
      const auto [other, is_new] = taken_.emplace(name, pattern);
      if (!is_new && Has(matches, name)) {
        Fail(number,
             absl::StrCat("\"", pattern, "\" matches \"", ShownText(name),
                          "\", which several columns of the data are "
                          "called; give each another name"));
        return {};
      }
      if (!is_new) {
        Fail(number, absl::StrCat("\"", pattern, "\" and \"", other->second,
                                  "\" both match \"", name,
                                  "\"; make the patterns differ, or name it"));
        return {};
      }
      matches.push_back(name);
    }
    if (matches.empty()) {
      Fail(number, absl::StrCat("\"", pattern, "\" matches no column of the ",
                                "data", NearMisses(pattern, known_)));
    }
    return matches;
  }

  const std::string path_;
  const Columns& known_;
  List& columns_;
  Faults& faults_;
  List given_;
  std::set<std::string> named_;  // columns that are named without wildcards
  std::map<std::string, std::string> taken_;  // columns, by which pattern
  std::vector<int> numbers_;
  size_t bytes_ = 0;  // bytes of all that patterns have made
};

// The parts of "model.input[0].dense.column[12].name: …".
struct ColumnPath {
  absl::string_view list;  // "model.input[0].dense.column"
  int number = 0;
  absl::string_view rest;  // ".name: …"
};

// Returns nullopt if the path names no column of an input.
std::optional<ColumnPath> SplitPath(absl::string_view path) {
  constexpr absl::string_view kColumn = ".column[";
  const size_t found = path.find(kColumn);
  const size_t colon = path.find(':');
  if (!absl::StartsWith(path, "model.input[") ||
      found == absl::string_view::npos || found > colon) {
    return std::nullopt;
  }
  const size_t begin = found + kColumn.size();
  const size_t end = path.find(']', begin);
  ColumnPath split;
  if (end == absl::string_view::npos ||
      !absl::SimpleAtoi(path.substr(begin, end - begin), &split.number)) {
    return std::nullopt;
  }
  split.list = path.substr(0, begin - 1);
  split.rest = path.substr(end + 1);
  return split;
}

}  // namespace

bool ColumnPatterns::AreIn(const job::Job& job) {
  return std::any_of(
      job.model().input().begin(), job.model().input().end(),
      [](const job::ModelInput& input) { return HasPattern(input); });
}

ColumnPatterns ColumnPatterns::Resolve(const std::string& data_dir,
                                       job::Job& job, Faults& faults) {
  ColumnPatterns patterns;
  if (!AreIn(job)) return patterns;
  absl::StatusOr<Columns> columns = ReadColumns(DataOf(job), data_dir);
  for (int i = 0; i < job.model().input_size(); ++i) {
    const std::string path = absl::StrCat("model.input[", i, "]");
    job::ModelInput& input = *job.mutable_model()->mutable_input(i);
    if (!HasPattern(input)) continue;
    if (!columns.ok() && NeedsColumns(input)) {
      faults.Add(Fault(
          path, absl::StrCat("has a pattern of columns, and which columns the "
                             "data have is not known: ",
                             columns.status().message(),
                             "; give this program the data with --data_dir, or "
                             "list the columns")));
      continue;
    }
    Columns known = columns.ok() ? *columns : Columns();
    AddLabels(job, known);
    const auto resolve = [&](const std::string& list, auto& list_columns) {
      ListResolver resolver(list, known, list_columns, faults);
      resolver.Resolve(patterns.all_);
      patterns.numbers_[list] = resolver.TakeNumbers();
    };
    if (input.has_dense()) {
      resolve(path + ".dense.column", *input.mutable_dense()->mutable_column());
    } else {
      resolve(path + ".ids.column", *input.mutable_ids()->mutable_column());
    }
  }
  return patterns;
}

std::string ColumnPatterns::InFile(absl::string_view path) const {
  const std::optional<ColumnPath> split = SplitPath(path);
  if (!split) return std::string(path);
  const auto numbers = numbers_.find(split->list);
  if (numbers == numbers_.end() || split->number < 0 ||
      split->number >= static_cast<int>(numbers->second.size())) {
    return std::string(path);
  }
  return absl::StrCat(split->list, "[", numbers->second[split->number], "]",
                      split->rest);
}

const ColumnPattern* ColumnPatterns::Of(absl::string_view path) const {
  const std::string in_file = InFile(path);
  for (const ColumnPattern& pattern : all_) {
    if (absl::StartsWith(in_file, pattern.path)) return &pattern;
  }
  return nullptr;
}

}  // namespace parasol
