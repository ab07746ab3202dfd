#ifndef PARASOL_ML_ZOO_DEEPFM_H_
#define PARASOL_ML_ZOO_DEEPFM_H_

#include <cstdint>
#include <vector>

#include "proto/job.pb.h"

namespace parasol::zoo {

struct DeepFmOptions {
  // Columns that give one id each; a missing value has an id of its own.
  std::vector<job::IdColumn> fields = {};
  int64_t embedding_width = 10;
  std::vector<int64_t> hidden = {400, 400, 400};
  double dropout = 0;
  // l2 of the rows that a batch reads.
  double embedding_l2 = 0;
};

// DeepFM (Guo et al. 2017): the logit is the sum of a linear model, of the dot
// products of all pairs of the fields' embeddings, and of a network of the same
// embeddings.
job::Model DeepFm(const DeepFmOptions& options);

}  // namespace parasol::zoo

#endif  // PARASOL_ML_ZOO_DEEPFM_H_
