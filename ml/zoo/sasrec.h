#ifndef PARASOL_ML_ZOO_SASREC_H_
#define PARASOL_ML_ZOO_SASREC_H_

#include <cstdint>
#include <string>

#include "proto/job.pb.h"

namespace parasol::zoo {

struct SasRecOptions {
  // Columns of the item that was taken next, and of the list of items before
  // it, the newest one first. Equal values have equal ids: both are `identity`,
  // or have one vocabulary.
  job::IdColumn item = {};
  job::IdColumn history = {};
  int64_t steps = 20;  // number of steps of the history
  int64_t width = 32;
  int64_t blocks = 2;
  int64_t heads = 1;
  double dropout = 0;
  double temperature = .5;
  // Columns: 1 for an item that was taken, and what evaluated items are ranked
  // within.
  std::string taken = "taken";
  std::string group = "group";
  int64_t k = 10;  // number of items that recall and NDCG look at
};

// Self-attentive sequential recommendation (Kang and McAuley, 2018): blocks of
// attention and of a network at each step on a history, whose newest step's
// state is the vector of what comes next. The items taken next in a batch's
// other examples are the wrong ones. An example predicts one item, so nothing
// later is in its history, and attention needs no causal mask.
//
// Output "towers" is trained on items that were taken; "score" is evaluated on
// any.
job::Model SasRec(const SasRecOptions& options);

}  // namespace parasol::zoo

#endif  // PARASOL_ML_ZOO_SASREC_H_
