#ifndef PARASOL_ML_ZOO_LOGISTIC_REGRESSION_H_
#define PARASOL_ML_ZOO_LOGISTIC_REGRESSION_H_

#include <string>
#include <vector>

#include "proto/job.pb.h"

namespace parasol::zoo {

struct LogisticRegressionOptions {
  // Name of the input. If `columns` is empty it is also the data set's column.
  std::string input = "features";
  std::vector<job::IdColumn> columns = {};
  // l2 of the weights that a batch reads.
  double l2 = 0;
};

// p(1 | x) = sigmoid(Σ weight[id] · x[id] + bias) of sparse features, whose
// weights are rows of the table "weights", of width 1: it grows with the ids
// that it has seen, so their number need not be known. All start at 0.
job::Model LogisticRegression(const LogisticRegressionOptions& options = {});

}  // namespace parasol::zoo

#endif  // PARASOL_ML_ZOO_LOGISTIC_REGRESSION_H_
