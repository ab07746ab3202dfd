#ifndef PARASOL_ML_OPTIMIZER_TESTING_UPDATE_CASES_H_
#define PARASOL_ML_OPTIMIZER_TESTING_UPDATE_CASES_H_

#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"

namespace parasol {

// Returns a text of job::Optimizer for each rule whose updates have the same
// bits on a CPU and on a CUDA device: all but ftrl with another power.
inline const std::vector<std::string>& OptimizersWithBitsOfTheCpu() {
  static const auto* const all = new std::vector<std::string>{
      "sgd {}",
      "sgd { momentum: .9 }",
      "sgd { momentum: .9 nesterov: true }",
      "sgd { momentum: .9 nesterov: true delay: 2 }",
      "adagrad {}",
      "adam {}",
      "adam { amsgrad: true }",
      "lazy_adam {}",
      "lazy_adam { amsgrad: true }",
      "rmsprop {}",
      "rmsprop { momentum: .9 }",
      "rmsprop { centered: true }",
      "rmsprop { momentum: .9 centered: true }",
      "adadelta {}",
      "adamax {}",
      "nadam {}",
      "adamw {}",
      "adamw { amsgrad: true weight_decay: .1 }",
      "lion { weight_decay: .1 }",
      "ftrl {}",
      "ftrl { l1_regularization_strength: .1 beta: .1 }",
      "ftrl { l2_regularization_strength: .1 "
      "l2_shrinkage_regularization_strength: .2 }"};
  return *all;
}

// Does the same for tables, which have others, too.
inline const std::vector<std::string>& RowOptimizersWithBitsOfTheCpu() {
  static const auto* const all = [] {
    auto* const of_tables =
        new std::vector<std::string>(OptimizersWithBitsOfTheCpu());
    of_tables->push_back("rowwise_adagrad {}");
    of_tables->push_back(
        "rowwise_adagrad { initial_accumulator_value: .1 epsilon: .01 }");
    return of_tables;
  }();
  return *all;
}

inline job::Optimizer ParseOptimizer(const std::string& text) {
  job::Optimizer spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &spec));
  return spec;
}

// Returns `size` numbers in [-.5, .6), the same for the same seed.
inline std::vector<float> DrawValues(size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(size);
  for (float& value : values) value = static_cast<float>(random()) / 4e9f - .5f;
  return values;
}

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_TESTING_UPDATE_CASES_H_
