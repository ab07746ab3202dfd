#include "deploy/tool/check/column_uses.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

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
                    .numeric = &dense.column(i)});
  }
  const job::IdInput& ids = input.ids();
  for (int i = 0; i < ids.column_size(); ++i) {
    for (int j = 0; j < ids.column(i).name_size(); ++j) {
      uses.push_back(
          {.path = absl::StrCat(path, ".ids.column[", i, "].name[", j, "]"),
           .column = ids.column(i).name(j),
           .use = use});
    }
  }
  if (!dense.column().empty() || !ids.column().empty()) return;
  if (std::find(columns.begin(), columns.end(), input.name()) !=
      columns.end()) {
    uses.push_back({.path = path, .column = input.name(), .use = use});
  }
}

template <typename Format>
void AddFiles(const std::string& path, const Format& format,
              std::vector<FileUse>& uses) {
  for (int i = 0; i < format.file_size(); ++i) {
    uses.push_back({absl::StrCat(path, ".file[", i, "]"), format.file(i)});
  }
}

}  // namespace

std::vector<ColumnUse> ColumnUses(const job::Job& job, const std::string& name,
                                  const job::Dataset& dataset,
                                  const std::vector<std::string>& columns) {
  std::vector<ColumnUse> uses;
  for (int i = 0; i < job.model().input_size(); ++i) {
    AddInput(absl::StrCat("model.input[", i, "]"), job.model().input(i),
             columns, uses);
  }
  if (dataset.has_csv()) {
    uses.push_back({.path = name + ".csv.label.column",
                    .column = dataset.csv().label().column(),
                    .use = "label"});
    if (dataset.csv().has_weight_column()) {
      uses.push_back({.path = name + ".csv.weight_column",
                      .column = dataset.csv().weight_column(),
                      .use = "weight"});
    }
  }
  if (dataset.has_criteo()) {
    uses.push_back({.path = name, .column = "label", .use = "label"});
  }
  if (dataset.has_ratings()) {
    uses.push_back({.path = name, .column = "rating", .use = "label"});
  }
  if (dataset.has_tfrecord()) {
    uses.push_back({.path = name + ".tfrecord.label",
                    .column = dataset.tfrecord().label(),
                    .use = "label"});
    if (dataset.tfrecord().has_weight()) {
      uses.push_back({.path = name + ".tfrecord.weight",
                      .column = dataset.tfrecord().weight(),
                      .use = "weight"});
    }
  }
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
  return uses;
}

const job::CsvLabel* CsvLabelOf(const job::Dataset& dataset) {
  return dataset.has_csv() ? &dataset.csv().label() : nullptr;
}

}  // namespace parasol
