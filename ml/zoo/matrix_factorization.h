#ifndef PARASOL_ML_ZOO_MATRIX_FACTORIZATION_H_
#define PARASOL_ML_ZOO_MATRIX_FACTORIZATION_H_

#include <cstdint>
#include <string>

#include "proto/job.pb.h"

namespace parasol::zoo {

struct MatrixFactorizationOptions {
  // Names of the data set's columns.
  std::string user = "user";
  std::string item = "item";
  int64_t factors = 16;
  // The rating that the untrained model predicts. It should be about the mean
  // rating, so that biases need not move there.
  double mean_rating = 0;
  // l2 of the rows that a batch reads.
  double bias_l2 = 0;
  double factor_l2 = 0;
  // Optimizers of the two tables; if not set, the job's. FTRL shrinks a row
  // that few ratings have moved, while Adam moves such a row by its whole rate
  // at once.
  job::Optimizer bias_optimizer = {};
  job::Optimizer factor_optimizer = {};
};

// The model rating = mean + scale · (bias[user] + bias[item] + factors[user] ·
// factors[item]) (Koren et al. 2009, with a scale that starts at 1), trained
// for the least squared error. Users and items are rows of the same two tables:
// the dot product of a pair is a factorization machine of two fields.
job::Model MatrixFactorization(const MatrixFactorizationOptions& options = {});

}  // namespace parasol::zoo

#endif  // PARASOL_ML_ZOO_MATRIX_FACTORIZATION_H_
