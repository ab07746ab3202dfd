#ifndef PARASOL_ML_BUILDER_INITIALIZERS_H_
#define PARASOL_ML_BUILDER_INITIALIZERS_H_

#include "proto/job.pb.h"

// Initializers for the options of layers and tables.
namespace parasol {

inline job::Initializer Zeros() {
  job::Initializer initializer;
  initializer.mutable_zeros();
  return initializer;
}

inline job::Initializer Constant(float value) {
  job::Initializer initializer;
  initializer.mutable_constant()->set_value(value);
  return initializer;
}

inline job::Initializer GlorotUniform() {
  job::Initializer initializer;
  initializer.mutable_glorot_uniform();
  return initializer;
}

inline job::Initializer HeNormal() {
  job::Initializer initializer;
  initializer.mutable_he_normal();
  return initializer;
}

inline job::Initializer Orthogonal() {
  job::Initializer initializer;
  initializer.mutable_orthogonal();
  return initializer;
}

inline job::Initializer RandomNormal(float stddev) {
  job::Initializer initializer;
  initializer.mutable_random_normal()->set_stddev(stddev);
  return initializer;
}

}  // namespace parasol

#endif  // PARASOL_ML_BUILDER_INITIALIZERS_H_
