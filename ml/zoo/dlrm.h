#ifndef PARASOL_ML_ZOO_DLRM_H_
#define PARASOL_ML_ZOO_DLRM_H_

#include <cstdint>
#include <vector>

#include "proto/job.pb.h"

namespace parasol::zoo {

struct DlrmOptions {
  // Columns that give one id each; a missing value has an id of its own.
  std::vector<job::IdColumn> fields = {};
  // Columns that are numbers; at least one.
  std::vector<job::NumericColumn> numeric = {};
  int64_t embedding_width = 16;
  // Widths of the dense layers that the numbers go through, without the last
  // one, which is as wide as the embeddings.
  std::vector<int64_t> bottom = {512, 256};
  // Widths of the dense layers behind the dot products.
  std::vector<int64_t> top = {512, 256};
};

// DLRM (Naumov et al., 2019): the numbers become one more embedding; the dot
// products of all pairs of embeddings, and the numbers' embedding beside them,
// go through dense layers to the logit.
job::Model Dlrm(const DlrmOptions& options);

}  // namespace parasol::zoo

#endif  // PARASOL_ML_ZOO_DLRM_H_
