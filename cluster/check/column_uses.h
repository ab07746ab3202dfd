#ifndef PARASOL_CLUSTER_CHECK_COLUMN_USES_H_
#define PARASOL_CLUSTER_CHECK_COLUMN_USES_H_

#include <optional>
#include <string>
#include <vector>

#include "ml/input/format/raw_columns.h"
#include "proto/job.pb.h"

namespace parasol {

// A place in a job that names a column of the data.
struct ColumnUse {
  std::string path = {};  // "model.input[0].dense.column[2].name"
  std::string column = {};
  std::string use = {};  // "input numbers", "label", "weight"
  // The column of a dense input; null for others. Borrowed from the job.
  const job::NumericColumn* numeric = nullptr;
  bool is_input = false;  // true if a model's input is made of its values
  // True if its values are labels.
  bool is_label = false;
  bool is_ids = false;  // true if ids are made of its values
  // Sequence that is made of its lists; null if they are none. Borrowed from
  // the job.
  const job::IdSequence* sequence = nullptr;
};

// Returns all places that name a column of `dataset`, which is the job's `name`
// ("train") and has `columns`; null if these are not known yet. An input that
// names none counts with its own name if there is such a column.
std::vector<ColumnUse> ColumnUses(const job::Job& job, const std::string& name,
                                  const job::Dataset& dataset,
                                  const RawColumns* columns);

// Adds `use`, a ColumnUse's, to the list of a column's, unless it has it.
void AddUse(const std::string& use, std::string& uses);

// Returns what is odd about `uses`, the training data's, each as "<field path>:
// …": inputs that read the label, but for sequences, whose labels may be what
// follows; inputs of `model` that have a column twice, alike. Pure.
std::vector<std::string> UseWarnings(const job::Model& model,
                                     const std::vector<ColumnUse>& uses);

// A place in a job that names files.
struct FileUse {
  std::string path = {};  // "train.csv.file[0]"
  std::string pattern = {};
};

// Returns all places in `dataset`, the job's `name`, that name files.
std::vector<FileUse> FileUses(const std::string& name,
                              const job::Dataset& dataset);

// How labels are made of texts, and the place in a job that says so.
struct LabelUse {
  std::string path = {};  // "train.csv.label", "model.output[0].label"
  const job::CsvLabel* label = nullptr;  // borrowed from the job
};

// Returns how the labels of `dataset`, the job's `name`, are made; nothing for
// formats whose labels are numbers.
std::vector<LabelUse> LabelUses(const job::Job& job, const std::string& name,
                                const job::Dataset& dataset);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECK_COLUMN_USES_H_
