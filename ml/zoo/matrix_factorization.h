#ifndef PARASOL_ML_ZOO_MATRIX_FACTORIZATION_H_
#define PARASOL_ML_ZOO_MATRIX_FACTORIZATION_H_

#include <cstdint>
#include <string>

#include "proto/job.pb.h"

namespace parasol::zoo {

struct MatrixFactorizationOptions {
  // The data set's columns.
  std::string user = "user";
  std::string item = "item";
  int64_t factors = 16;
  // What a rating is at first: about the mean, so that biases need not move
  // there.
  double mean_rating = 0;
  // Of the rows that a batch reads.
  double bias_l2 = 0;
  double factor_l2 = 0;
  // Of the two tables. FTRL shrinks a row that few ratings have moved, which
  // Adam moves by its whole rate at once. Not set: the job's.
  job::Optimizer bias_optimizer = {};
  job::Optimizer factor_optimizer = {};
};

// rating = mean + scale · (bias[user] + bias[item] + factors[user] ·
// factors[item]) (Koren et al. 2009, with a scale that starts at 1), to the
// least squared error. Users and items are rows of the same two tables: the dot
// product of a pair is a factorization machine of two fields.
job::Model MatrixFactorization(const MatrixFactorizationOptions& options = {});

}  // namespace parasol::zoo

#endif  // PARASOL_ML_ZOO_MATRIX_FACTORIZATION_H_
