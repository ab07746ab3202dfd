#ifndef PARASOL_ML_ZOO_MMOE_H_
#define PARASOL_ML_ZOO_MMOE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ml/builder/model_builder.h"
#include "proto/job.pb.h"

namespace parasol::zoo {

// A task of a multi-task model: an output that is one logit.
struct Task {
  std::string name = {};
  job::CsvLabel label = {};
  std::string mask = {};  // a column; empty: none
  double weight = 1;
};

struct MmoeOptions {
  // Columns that give one id each; a missing value has an id of its own.
  std::vector<job::IdColumn> fields = {};
  // Columns that are numbers; may be empty.
  std::vector<job::NumericColumn> numeric = {};
  int64_t embedding_width = 8;
  int64_t experts = 8;
  int64_t expert_units = 16;
  // Widths of the dense layers of each task, before its logit.
  std::vector<int64_t> tower = {8};
  std::vector<Task> tasks = {};
};

// Multi-gate mixture of experts (Ma et al., 2018): experts of one dense layer,
// which all tasks share, and for each task a softmax gate that weighs them, and
// a tower. The experts are one dense layer, [experts · units], seen as
// [experts, units].
job::Model Mmoe(const MmoeOptions& options);

}  // namespace parasol::zoo

#endif  // PARASOL_ML_ZOO_MMOE_H_
