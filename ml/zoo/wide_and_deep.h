#ifndef PARASOL_ML_ZOO_WIDE_AND_DEEP_H_
#define PARASOL_ML_ZOO_WIDE_AND_DEEP_H_

#include <cstdint>
#include <vector>

#include "proto/job.pb.h"

namespace parasol::zoo {

struct WideAndDeepOptions {
  // Columns of the linear part: usually all columns, and crosses of some.
  std::vector<job::IdColumn> wide = {};
  // Columns of the network, each an embedding of `embedding_width`.
  std::vector<job::IdColumn> deep = {};
  // Numeric columns that the network reads as they are.
  std::vector<job::NumericColumn> numeric = {};
  int64_t embedding_width = 8;
  std::vector<int64_t> hidden = {100, 50};
  double dropout = 0;
  // Optimizer of the wide weights' table, e.g. FTRL; if not set, the job's.
  job::Optimizer wide_optimizer = {};
};

// Wide & Deep (Cheng et al. 2016): the logit is the sum of a linear model of
// sparse features and of a network of embeddings and numbers.
job::Model WideAndDeep(const WideAndDeepOptions& options);

}  // namespace parasol::zoo

#endif  // PARASOL_ML_ZOO_WIDE_AND_DEEP_H_
