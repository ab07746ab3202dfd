#ifndef PARASOL_ML_MODEL_RESOLVED_MODEL_H_
#define PARASOL_ML_MODEL_RESOLVED_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ml/model/variable_spec.h"
#include "proto/job.pb.h"

namespace parasol {

// A layer with every default filled in and every shape known. Of Keras's layers
// these are left when shapes are: flattening moves no bytes.
struct ResolvedLayer {
  enum class Kind { kDense, kActivation, kFlatten };

  std::string name;
  Kind kind = Kind::kFlatten;
  int64_t inputs = 0;   // elements of one example going in
  int64_t outputs = 0;  // and coming out
  job::Activation activation = job::ACTIVATION_UNSPECIFIED;
  // Its place in ResolvedModel::variables: kernel, then bias if it has one.
  size_t first_variable = 0;
  bool has_bias = false;
};

// What a job's model says, checked. The last layer's outputs are the logits of
// the sparse categorical cross-entropy, one for each class.
struct ResolvedModel {
  std::vector<int64_t> example_shape;
  std::vector<ResolvedLayer> layers;
  std::vector<VariableSpec> variables;

  int64_t inputs() const { return layers.front().inputs; }
  int64_t classes() const { return layers.back().outputs; }
};

//   InvalidArgument  the spec is not a model: names the layer.
absl::StatusOr<ResolvedModel> ResolveModel(const job::Model& spec);

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_RESOLVED_MODEL_H_
