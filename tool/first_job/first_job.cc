#include "tool/first_job/first_job.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/did_you_mean.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "ml/input/feature/column_wildcards.h"

namespace parasol {
namespace {

constexpr double kTrainShare = .8;
constexpr int kPatience = 10;
// Of fewer lines none are left out of training: a fifth by random numbers may
// be nothing.
constexpr int64_t kFewLines = 50;

// Sizes by the number of lines.
struct Sizes {
  int64_t batch = 0;
  int64_t hidden_1 = 0;
  int64_t hidden_2 = 0;
  int64_t epochs = 0;
  int64_t steps_between_evaluations = 0;
  bool splits = true;  // false: all lines train, and are evaluated
};

Sizes SizesFor(int64_t records) {
  Sizes sizes = {.batch = 16, .hidden_1 = 32, .hidden_2 = 16, .epochs = 100};
  sizes.splits = records >= kFewLines;
  const int64_t train =
      sizes.splits
          ? static_cast<int64_t>(kTrainShare * static_cast<double>(records))
          : records;
  while (sizes.batch > 1 && sizes.batch * 2 > train) sizes.batch /= 2;
  while (sizes.batch < 1024 && train / sizes.batch > 100) sizes.batch *= 2;
  if (records > 2000) {
    sizes.hidden_1 = 64;
    sizes.hidden_2 = 32;
  }
  if (records > 50'000) {
    sizes.hidden_1 = 128;
    sizes.hidden_2 = 64;
    sizes.epochs = 40;
  }
  if (records > 500'000) sizes.epochs = 20;
  const int64_t steps = (train + sizes.batch - 1) / sizes.batch;
  sizes.steps_between_evaluations = std::max<int64_t>(steps, 20);
  return sizes;
}

std::string Text(const std::string& text) {
  return absl::StrCat("\"", absl::Utf8SafeCEscape(text), "\"");
}

std::string TextList(const std::vector<std::string>& texts) {
  std::vector<std::string> quoted;
  for (const std::string& text : texts) quoted.push_back(Text(text));
  return absl::StrCat("[", absl::StrJoin(quoted, ", "), "]");
}

// A number as it is read back, with as many digits as it takes people.
std::string Rounded(double number) { return absl::StrFormat("%.6g", number); }

std::string NumberColumn(const SurveyedColumn& column, const ColumnPlan& plan) {
  std::string text =
      absl::StrCat("column { name: ", Text(EscapedName(column.name)));
  if (plan.log1p) absl::StrAppend(&text, " log1p: true");
  if (plan.default_value.has_value()) {
    absl::StrAppend(&text, " default_value: ", Rounded(*plan.default_value));
  }
  absl::StrAppend(&text, " mean: ", Rounded(plan.mean),
                  " stddev: ", absl::StrFormat("%.9g", plan.stddev), " }");
  return text;
}

std::string CategoryColumn(const SurveyedColumn& column,
                           const ColumnPlan& plan) {
  const std::string how =
      plan.use == ColumnPlan::Use::kHashed
          ? "hash {}"
          : absl::StrCat("vocabulary { value: ", TextList(plan.vocabulary),
                         " }");
  return absl::StrCat("column { name: ", Text(EscapedName(column.name)), " ",
                      how, " }");
}

// What the parts of the file are made of.
struct Plan {
  const TableSurvey& survey;
  const FirstJobOptions& options;
  LabelPlan label;
  bool label_is_missing = false;  // of some lines
  Sizes sizes;
  std::vector<std::string> missing = {};
  std::vector<std::string> numbers = {};     // columns as text
  std::vector<std::string> categories = {};  // the same
  int64_t most_values = 0;                   // of a category
  bool has_hash = false;
  std::vector<std::string> left_out = {};  // for comments
};

std::string InputText(const char* name, const char* kind,
                      const std::vector<std::string>& columns) {
  if (columns.empty()) return "";
  return absl::StrCat("  input {\n    name: \"", name, "\"\n    ", kind,
                      " {\n      ", absl::StrJoin(columns, "\n      "),
                      "\n    }\n  }\n");
}

int64_t WidthFor(int64_t values) {
  return values <= 10 ? 4 : values <= 100 ? 8 : 16;
}

// Returns the layers before the hidden ones, and in `input` the name of what
// the first hidden one reads.
std::string FirstLayers(const Plan& plan, std::string& input) {
  input = "numbers";
  if (plan.categories.empty()) return "";
  input = plan.numbers.empty() ? "embedded" : "all";
  return absl::StrCat(
      "  sparse_table { name: \"embeddings\" width: ",
      WidthFor(plan.most_values),
      " }\n"
      "  layer { name: \"embedding\" input: \"categories\" embedding { table: "
      "\"embeddings\" } }\n"
      "  layer { name: \"embedded\" flatten {} }\n",
      plan.numbers.empty() ? ""
                           : "  layer { name: \"all\" input: [\"embedded\", "
                             "\"numbers\"] concatenate {} }\n");
}

// The last layer, loss and metrics. A regression's layer begins with the mean
// of the labels and learns in their unit, as if they were normalized.
std::string OutputText(const Plan& plan) {
  if (plan.label.task == FirstTask::kRegression) {
    const double reach =
        plan.label.stddev *
        std::sqrt(6.0 / static_cast<double>(plan.sizes.hidden_2 + 1));
    return absl::StrFormat(
        "  # Begins with the mean of the labels, and learns in their unit: as "
        "if they were normalized.\n"
        "  layer {\n"
        "    name: \"prediction\"\n"
        "    dense {\n"
        "      units: 1\n"
        "      kernel_initializer { random_uniform { minval: %.6g maxval: %.6g "
        "} }\n"
        "      bias_initializer { constant { value: %.6g } }\n"
        "    }\n"
        "    learning_rate_multiplier: %.6g\n"
        "  }\n"
        "  loss { mean_squared_error {} }\n"
        "  metric { root_mean_squared_error {} }\n"
        "  metric { mean_absolute_error {} }\n"
        "  metric { r_squared {} }\n",
        -reach, reach, plan.label.mean, plan.label.stddev);
  }
  if (plan.label.task == FirstTask::kBinary) {
    return "  layer { name: \"logit\" dense { units: 1 } }\n"
           "  loss { binary_crossentropy {} }\n"
           "  metric { accuracy {} }\n"
           "  metric { auc {} }\n";
  }
  return absl::StrCat(
      "  layer { name: \"logits\" dense { units: ", plan.label.num_classes,
      " } }\n"
      "  loss { sparse_categorical_crossentropy {} }\n"
      "  metric { accuracy {} }\n");
}

std::string ModelText(const Plan& plan) {
  std::string input;
  const std::string first = FirstLayers(plan, input);
  return absl::StrCat("model {\n", InputText("numbers", "dense", plan.numbers),
                      InputText("categories", "ids", plan.categories), first,
                      "  layer { name: \"hidden_1\" input: \"", input,
                      "\" dense { units: ", plan.sizes.hidden_1,
                      " activation: RELU } }\n"
                      "  layer { name: \"hidden_2\" dense { units: ",
                      plan.sizes.hidden_2, " activation: RELU } }\n",
                      OutputText(plan), "}\n");
}

std::string DatasetText(const Plan& plan, const char* name, double from,
                        double to, bool with_fields) {
  std::string csv = absl::StrCat("file: ", Text(plan.options.file));
  if (with_fields) {
    if (plan.survey.delimiter != ",") {
      absl::StrAppend(&csv, "\n    delimiter: ", Text(plan.survey.delimiter));
    }
    if (!plan.survey.has_header) {
      std::vector<std::string> names;
      for (const SurveyedColumn& column : plan.survey.columns) {
        names.push_back(column.name);
      }
      absl::StrAppend(&csv, "\n    column: ", TextList(names));
    }
    if (!plan.missing.empty()) {
      absl::StrAppend(&csv, "\n    missing: ", TextList(plan.missing));
    }
    absl::StrAppend(
        &csv, "\n    label { column: ", Text(plan.options.label),
        plan.label.classes.empty()
            ? ""
            : absl::StrCat(" class: ", TextList(plan.label.classes)),
        " }");
  }
  const bool skips =
      plan.survey.corrupt > 0 || !plan.survey.is_whole || plan.label_is_missing;
  return absl::StrCat(
      name, " {\n  csv {\n    ", csv, "\n  }\n",
      plan.sizes.splits
          ? absl::StrCat("  split { from: ", from, " to: ", to, " }\n")
          : "",
      "  batch_size: ", with_fields ? plan.sizes.batch : 1000, "\n",
      with_fields && skips
          ? "  on_corrupt: SKIP  # lines without a label, or that can't be "
            "read\n"
          : "",
      "}\n");
}

// "\"Yes\" and \"yes\" …" of classes that upper and lower case alone tell
// apart; nothing if there are none.
std::string CaseNote(const LabelPlan& label) {
  std::map<std::string, std::string> by_letters;
  for (const std::string& name : label.classes) {
    const auto [other, is_new] =
        by_letters.emplace(absl::AsciiStrToLower(name), name);
    if (is_new) continue;
    return absl::StrCat("the labels \"", ShownText(other->second), "\" and \"",
                        ShownText(name),
                        "\" differ in upper and lower case alone, and are two "
                        "classes: make them one in the table if that is meant");
  }
  return "";
}

std::string EndText(const Sizes& sizes) {
  if (!sizes.splits)
    return absl::StrCat("end { epochs: ", sizes.epochs, " }\n");
  return absl::StrCat(
      "# Ends when the loss of the evaluations has not fallen ", kPatience,
      " times; the best checkpoint stays.\n", "end { epochs: ", sizes.epochs,
      " early_stopping { metric: \"loss\" patience: ", kPatience, " } }\n",
      "evaluation { every_steps: ", sizes.steps_between_evaluations, " }\n",
      "checkpoint { keep_best { metric: \"loss\" } }\n");
}

std::string FileText(const Plan& plan, const std::string& task) {
  std::string text =
      absl::StrCat("# A first job for ", ShownText(plan.options.file, 200),
                   ", ", task, ", by `parasol init`.\n");
  for (const std::string& column : plan.left_out) {
    absl::StrAppend(&text, "# Left out: ", column, ".\n");
  }
  const std::string note = CaseNote(plan.label);
  if (!note.empty()) absl::StrAppend(&text, "# Note: ", note, ".\n");
  absl::StrAppend(
      &text, "name: ", Text(plan.options.name), "\n\n", ModelText(plan), "\n",
      DatasetText(plan, "train", 0, kTrainShare, true),
      plan.sizes.splits ? "# The lines that do not train, a fifth by random "
                          "numbers.\n"
                        : "# Too few lines to leave some out: these have been "
                          "trained on.\n",
      DatasetText(plan, "eval", kTrainShare, 1, false), "\n", "optimizer { ",
      plan.has_hash ? "lazy_adam" : "adam", " { learning_rate: 0.002 } }\n",
      EndText(plan.sizes));
  return text;
}

void AddColumn(const SurveyedColumn& column, size_t place, Plan& plan) {
  const ColumnPlan planned = PlanColumn(
      column, plan.survey.records - plan.survey.corrupt, plan.missing);
  switch (planned.use) {
    case ColumnPlan::Use::kNumber:
      plan.numbers.push_back(NumberColumn(column, planned));
      return;
    case ColumnPlan::Use::kHashed:
      plan.has_hash = true;
      [[fallthrough]];
    case ColumnPlan::Use::kCategory:
      plan.most_values = std::max(plan.most_values, planned.distinct);
      plan.categories.push_back(CategoryColumn(column, planned));
      return;
    case ColumnPlan::Use::kLeftOut:
      plan.left_out.push_back(
          absl::StrCat(column.name.empty() ? absl::StrCat("column ", place + 1)
                                           : ShownText(column.name),
                       " ", planned.why));
  }
}

std::string TaskText(const LabelPlan& label) {
  if (label.task == FirstTask::kRegression) return "a regression";
  if (label.task == FirstTask::kBinary) return "a binary classification";
  return absl::StrCat("a classification of ", label.num_classes, " classes");
}

// The label's column, by its name.
absl::StatusOr<size_t> LabelPlace(const TableSurvey& survey,
                                  const std::string& label) {
  std::vector<std::string> names;
  std::vector<size_t> found;
  for (size_t i = 0; i < survey.columns.size(); ++i) {
    names.push_back(survey.columns[i].name);
    if (names.back() == label) found.push_back(i);
  }
  if (found.size() == 1 && !label.empty()) return found[0];
  if (found.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--label=", ShownText(label), ": ", found.size(),
                     " columns have this name; rename one"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      label.empty()
          ? "--label is missing: which column is predicted? There are "
          : absl::StrCat("--label=", ShownText(label),
                         ": there is no such column, but "),
      ShownList(names), DidYouMean(label, names)));
}

}  // namespace

absl::StatusOr<FirstJob> MakeFirstJob(const TableSurvey& survey,
                                      const FirstJobOptions& options) {
  ASSIGN_OR_RETURN(const size_t label, LabelPlace(survey, options.label));
  Plan plan = {.survey = survey,
               .options = options,
               .label = {},
               .sizes = SizesFor(survey.records - survey.corrupt)};
  plan.missing = MissingTexts(survey);
  ASSIGN_OR_RETURN(
      plan.label, PlanLabel(survey.columns[label], plan.missing, options.task));
  plan.label_is_missing = survey.columns[label].missing > 0;
  for (const std::string& text : plan.missing) {
    plan.label_is_missing |= survey.columns[label].values.CountOf(text) > 0;
  }
  std::set<std::string> once, twice, named;
  for (const SurveyedColumn& column : survey.columns) {
    if (!once.insert(column.name).second) twice.insert(column.name);
  }
  for (size_t i = 0; i < survey.columns.size(); ++i) {
    const SurveyedColumn& column = survey.columns[i];
    if (i == label) continue;
    if (!column.name.empty() && twice.contains(column.name)) {
      plan.left_out.push_back(absl::StrCat(ShownText(column.name),
                                           " is the name of several columns"));
      continue;
    }
    AddColumn(column, i, plan);
  }
  FirstJob job = {.task = TaskText(plan.label), .note = CaseNote(plan.label)};
  job.columns_used =
      static_cast<int>(plan.numbers.size() + plan.categories.size());
  if (job.columns_used == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.file, ": no column but the label is of use: ",
        plan.left_out.empty() ? "there is none"
                              : absl::StrJoin(plan.left_out, "; ")));
  }
  job.text = FileText(plan, job.task);
  job.left_out = std::move(plan.left_out);
  return job;
}

}  // namespace parasol
