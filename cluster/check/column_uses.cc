#include "cluster/check/column_uses.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/shown_text.h"
#include "ml/input/feature/model_inputs.h"
#include "ml/loss/loss_kinds.h"
#include "ml/metric/metric_spec.h"

namespace parasol {
namespace {

void AddInput(const std::string& path, const job::ModelInput& input,
              const std::vector<std::string>& columns,
              std::vector<ColumnUse>& uses) {
  const std::string use = absl::StrCat("input ", input.name());
  const job::DenseInput& dense = input.dense();
  for (int i = 0; i < dense.column_size(); ++i) {
    uses.push_back({.path = absl::StrCat(path, ".dense.column[", i, "].name"),
                    .column = dense.column(i).name(),
                    .use = use,
                    .numeric = &dense.column(i),
                    .is_input = true});
  }
  const job::IdInput& ids = input.ids();
  const job::IdSequence* const sequence =
      ids.has_sequence() ? &ids.sequence() : nullptr;
  for (int i = 0; i < ids.column_size(); ++i) {
    for (int j = 0; j < ids.column(i).name_size(); ++j) {
      uses.push_back(
          {.path = absl::StrCat(path, ".ids.column[", i, "].name[", j, "]"),
           .column = ids.column(i).name(j),
           .use = use,
           .is_input = true,
           .is_ids = true,
           .sequence = sequence});
    }
  }
  if (!dense.column().empty() || !ids.column().empty()) return;
  if (std::find(columns.begin(), columns.end(), input.name()) !=
      columns.end()) {
    uses.push_back({.path = path,
                    .column = input.name(),
                    .use = use,
                    .is_input = true,
                    .is_ids = input.has_ids(),
                    .sequence = sequence});
  }
}

template <typename Format>
void AddFiles(const std::string& path, const Format& format,
              std::vector<FileUse>& uses) {
  for (int i = 0; i < format.file_size(); ++i) {
    uses.push_back({absl::StrCat(path, ".file[", i, "]"), format.file(i)});
  }
}

// The one label of a model without named outputs.
void AddLabel(const std::string& name, const job::Dataset& dataset,
              const RawColumns* columns, std::vector<ColumnUse>& uses) {
  const auto add = [&uses](const std::string& path, const std::string& column) {
    uses.push_back(
        {.path = path, .column = column, .use = "label", .is_label = true});
  };
  if (dataset.has_csv()) {
    add(name + ".csv.label.column", dataset.csv().label().column());
  }
  if (dataset.has_criteo()) add(name, "label");
  if (dataset.has_ratings()) add(name, "rating");
  if (dataset.has_tfrecord()) {
    add(name + ".tfrecord.label", dataset.tfrecord().label());
  }
  if (dataset.has_array()) {
    add(name + ".array.label", dataset.array().label());
  }
  if (dataset.has_parquet()) {
    add(name + ".parquet.label.column", dataset.parquet().label().column());
  }
  if (columns != nullptr && !columns->label().empty()) {
    add(name + ".custom", columns->label());
  }
}

void AddOutputLabels(const job::Model& model, std::vector<ColumnUse>& uses) {
  for (int i = 0; i < model.output_size(); ++i) {
    const job::Output& output = model.output(i);
    const std::string path = absl::StrCat("model.output[", i, "]");
    if (ReadsLabels(output.loss())) {
      uses.push_back({.path = path + ".label.column",
                      .column = output.label().column(),
                      .use = absl::StrCat("label of ", output.name()),
                      .is_label = true});
    }
    if (output.mask().empty()) continue;
    uses.push_back({.path = path + ".mask",
                    .column = output.mask(),
                    .use = absl::StrCat("mask of ", output.name())});
  }
}

// What losses and, of examples that are evaluated, metrics read beside labels.
void AddBesideLabels(const job::Model& model, const std::string& name,
                     std::vector<ColumnUse>& uses) {
  const auto add = [&uses](const std::string& path, const auto& columns) {
    for (const ExampleColumn& column : columns) {
      uses.push_back({.path = path, .column = column.name, .use = "loss"});
    }
  };
  add("model.loss", ColumnsOf(model.loss()));
  for (int i = 0; i < model.output_size(); ++i) {
    add(absl::StrCat("model.output[", i, "].loss"),
        ColumnsOf(model.output(i).loss()));
  }
  if (name == "train") return;
  std::vector<ExampleColumn> groups;
  AddMetricColumns(model, groups);
  for (const ExampleColumn& column : groups) {
    uses.push_back(
        {.path = "model.metric", .column = column.name, .use = "group"});
  }
}

void AddWeight(const std::string& name, const job::Dataset& dataset,
               const RawColumns* columns, std::vector<ColumnUse>& uses) {
  if (dataset.has_csv() && dataset.csv().has_weight_column()) {
    uses.push_back({.path = name + ".csv.weight_column",
                    .column = dataset.csv().weight_column(),
                    .use = "weight"});
  }
  if (dataset.has_tfrecord() && dataset.tfrecord().has_weight()) {
    uses.push_back({.path = name + ".tfrecord.weight",
                    .column = dataset.tfrecord().weight(),
                    .use = "weight"});
  }
  if (dataset.has_array() && dataset.array().has_weight()) {
    uses.push_back({.path = name + ".array.weight",
                    .column = dataset.array().weight(),
                    .use = "weight"});
  }
  if (dataset.has_parquet() && dataset.parquet().has_weight_column()) {
    uses.push_back({.path = name + ".parquet.weight_column",
                    .column = dataset.parquet().weight_column(),
                    .use = "weight"});
  }
  if (columns != nullptr && !columns->weight().empty()) {
    uses.push_back({.path = name + ".custom",
                    .column = columns->weight(),
                    .use = "weight"});
  }
}

// Returns the positions of columns of an input that are there before, alike.
template <typename Columns>
std::vector<int> Doubled(const Columns& columns) {
  std::vector<int> doubled;
  absl::flat_hash_set<std::string> before;
  for (int i = 0; i < columns.size(); ++i) {
    if (!before.insert(columns[i].SerializeAsString()).second) {
      doubled.push_back(i);
    }
  }
  return doubled;
}

}  // namespace

void AddUse(const std::string& use, std::string& uses) {
  const std::vector<std::string> known = absl::StrSplit(uses, ", ");
  if (std::find(known.begin(), known.end(), use) != known.end()) return;
  if (!uses.empty()) uses += ", ";
  uses += use;
}

std::vector<std::string> UseWarnings(const job::Model& model,
                                     const std::vector<ColumnUse>& uses) {
  std::vector<std::string> warnings;
  absl::flat_hash_set<std::string> labels;
  for (const ColumnUse& use : uses) {
    if (use.is_label) labels.insert(use.column);
  }
  for (const ColumnUse& use : uses) {
    // Of several outputs one may well read what is another one's label.
    if (!use.is_input || use.sequence != nullptr || labels.size() != 1)
      continue;
    if (labels.contains(use.column)) {
      warnings.push_back(absl::StrCat(
          use.path, ": column \"", ShownText(use.column),
          "\" is the label: a model that reads it learns nothing else; leave "
          "it out of the input"));
    }
  }
  const auto warn = [&warnings](const std::string& path,
                                const std::string& name) {
    warnings.push_back(absl::StrCat(path, ": column \"", ShownText(name),
                                    "\" is in this input once before, alike: "
                                    "leave one of both out"));
  };
  for (int i = 0; i < model.input_size(); ++i) {
    const std::string path = absl::StrCat("model.input[", i, "]");
    const auto& numbers = model.input(i).dense().column();
    for (const int j : Doubled(numbers)) {
      warn(absl::StrCat(path, ".dense.column[", j, "]"), numbers[j].name());
    }
    const auto& ids = model.input(i).ids().column();
    for (const int j : Doubled(ids)) {
      if (ids[j].name().empty()) continue;
      warn(absl::StrCat(path, ".ids.column[", j, "]"), ids[j].name(0));
    }
  }
  return warnings;
}

std::vector<ColumnUse> ColumnUses(const job::Job& job, const std::string& name,
                                  const job::Dataset& dataset,
                                  const RawColumns* columns) {
  std::vector<ColumnUse> uses;
  for (int i = 0; i < job.model().input_size(); ++i) {
    AddInput(absl::StrCat("model.input[", i, "]"), job.model().input(i),
             columns == nullptr ? std::vector<std::string>() : columns->names(),
             uses);
  }
  if (job.model().output().empty()) {
    if (ReadsLabels(job.model().loss())) AddLabel(name, dataset, columns, uses);
  } else {
    AddOutputLabels(job.model(), uses);
  }
  AddBesideLabels(job.model(), name, uses);
  AddWeight(name, dataset, columns, uses);
  return uses;
}

std::vector<FileUse> FileUses(const std::string& name,
                              const job::Dataset& dataset) {
  std::vector<FileUse> uses;
  if (dataset.has_idx()) {
    uses.push_back({name + ".idx.images", dataset.idx().images()});
    uses.push_back({name + ".idx.labels", dataset.idx().labels()});
  }
  AddFiles(name + ".cifar", dataset.cifar(), uses);
  AddFiles(name + ".libsvm", dataset.libsvm(), uses);
  AddFiles(name + ".csv", dataset.csv(), uses);
  AddFiles(name + ".criteo", dataset.criteo(), uses);
  AddFiles(name + ".ratings", dataset.ratings(), uses);
  AddFiles(name + ".tfrecord", dataset.tfrecord(), uses);
  AddFiles(name + ".array", dataset.array(), uses);
  for (int i = 0; i < dataset.array().array_size(); ++i) {
    uses.push_back({absl::StrCat(name, ".array.array[", i, "].file"),
                    dataset.array().array(i).file()});
  }
  AddFiles(name + ".parquet", dataset.parquet(), uses);
  AddFiles(name + ".custom", dataset.custom(), uses);
  return uses;
}

std::vector<LabelUse> LabelUses(const job::Job& job, const std::string& name,
                                const job::Dataset& dataset) {
  std::vector<LabelUse> uses;
  for (int i = 0; i < job.model().output_size(); ++i) {
    uses.push_back({.path = absl::StrCat("model.output[", i, "].label"),
                    .label = &job.model().output(i).label()});
  }
  if (uses.empty() && dataset.has_csv()) {
    uses.push_back(
        {.path = name + ".csv.label", .label = &dataset.csv().label()});
  }
  if (uses.empty() && dataset.has_parquet()) {
    uses.push_back(
        {.path = name + ".parquet.label", .label = &dataset.parquet().label()});
  }
  return uses;
}

}  // namespace parasol
