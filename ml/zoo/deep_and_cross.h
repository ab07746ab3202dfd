#ifndef PARASOL_ML_ZOO_DEEP_AND_CROSS_H_
#define PARASOL_ML_ZOO_DEEP_AND_CROSS_H_

#include <cstdint>
#include <vector>

#include "proto/job.pb.h"

namespace parasol::zoo {

struct DeepAndCrossOptions {
  // Columns that give one id each; a missing value has an id of its own.
  std::vector<job::IdColumn> fields = {};
  // Columns that are numbers.
  std::vector<job::NumericColumn> numeric = {};
  int64_t embedding_width = 16;
  int64_t cross_layers = 3;
  // Rank of the cross layers' kernels; 0: full.
  int64_t projection_dim = 0;
  std::vector<int64_t> hidden = {256, 128};
};

// DCN-v2 (Wang et al., 2020) in its parallel form: cross layers and dense
// layers read the embeddings and numbers side by side, and a dense layer reads
// both.
job::Model DeepAndCross(const DeepAndCrossOptions& options);

}  // namespace parasol::zoo

#endif  // PARASOL_ML_ZOO_DEEP_AND_CROSS_H_
