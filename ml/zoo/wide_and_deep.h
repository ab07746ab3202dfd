#ifndef PARASOL_ML_ZOO_WIDE_AND_DEEP_H_
#define PARASOL_ML_ZOO_WIDE_AND_DEEP_H_

#include <cstdint>
#include <vector>

#include "proto/job.pb.h"

namespace parasol::zoo {

struct WideAndDeepOptions {
  // Of the linear part: usually all columns, and crosses of some.
  std::vector<job::IdColumn> wide = {};
  // Of the network: each an embedding of `embedding_width`.
  std::vector<job::IdColumn> deep = {};
  // Of the network, as they are.
  std::vector<job::NumericColumn> numeric = {};
  int64_t embedding_width = 8;
  std::vector<int64_t> hidden = {100, 50};
  double dropout = 0;
  // Of the wide weights' table, e.g. FTRL; the job's where none is chosen.
  job::Optimizer wide_optimizer = {};
};

// Wide & Deep (Cheng et al. 2016): the logit is the sum of a linear model of
// sparse features and of a network of embeddings and numbers.
job::Model WideAndDeep(const WideAndDeepOptions& options);

}  // namespace parasol::zoo

#endif  // PARASOL_ML_ZOO_WIDE_AND_DEEP_H_
