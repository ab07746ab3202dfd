#ifndef PARASOL_ML_ZOO_DIN_H_
#define PARASOL_ML_ZOO_DIN_H_

#include <cstdint>
#include <vector>

#include "proto/job.pb.h"

namespace parasol::zoo {

struct DinOptions {
  // Columns of an item that a user may take, and of the list of items before
  // it. Equal values have equal ids: both are `identity`, or have one
  // vocabulary.
  job::IdColumn candidate = {};
  job::IdColumn history = {};
  int64_t steps = 20;  // number of steps of the history
  int64_t embedding_width = 16;
  // Widths of the layers that compute a step's weight, and of the dense layers
  // behind the weighted sum.
  std::vector<int64_t> attention = {36};
  std::vector<int64_t> hidden = {80, 40};
};

// Deep interest network (Zhou et al., 2018). A user's interest in a candidate
// is a sum over the history whose weights a small network computes of each item
// and the candidate. Weights are not normalized: they say how strong an
// interest is. The output is the logit that the candidate is taken.
job::Model Din(const DinOptions& options);

}  // namespace parasol::zoo

#endif  // PARASOL_ML_ZOO_DIN_H_
