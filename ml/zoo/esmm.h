#ifndef PARASOL_ML_ZOO_ESMM_H_
#define PARASOL_ML_ZOO_ESMM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/job.pb.h"

namespace parasol::zoo {

struct EsmmOptions {
  // Columns that give one id each; a missing value has an id of its own.
  std::vector<job::IdColumn> fields = {};
  int64_t embedding_width = 18;
  // Widths of the dense layers of each of the two towers, before its
  // probability.
  std::vector<int64_t> hidden = {360, 200, 80};
  // Columns that are 1 for an impression that was clicked, and for one that was
  // clicked and led to a conversion, and 0 otherwise.
  std::string click = "click";
  std::string conversion = "conversion";
};

// Entire space multi-task model (Ma et al., 2018). Two towers on shared
// embeddings give the probabilities of a click and of a conversion behind a
// click. Only the first, "ctr", and the product of both, "ctcvr", which are
// known of every impression, have losses; "cvr" is evaluated on clicked ones,
// and not trained by itself.
job::Model Esmm(const EsmmOptions& options);

}  // namespace parasol::zoo

#endif  // PARASOL_ML_ZOO_ESMM_H_
