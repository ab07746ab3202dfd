#ifndef PARASOL_SERVING_MODEL_SIGNATURE_H_
#define PARASOL_SERVING_MODEL_SIGNATURE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ml/input/format/given_examples.h"
#include "proto/tensorflow_serving.pb.h"

namespace parasol {

// An output of a signature: its name, and the number of its elements for an
// example.
struct SignatureOutput {
  std::string name = {};
  int64_t width = 0;
};

// The inputs and outputs of a model.
struct ModelSignature {
  std::string model = {};
  int64_t version = 0;
  std::vector<GivenColumn> columns = {};
  // The signatures' names and outputs.
  std::vector<std::pair<std::string, std::vector<SignatureOutput>>> signatures =
      {};
};

// Returns the signatures in TensorFlow Serving's words. The first axis of each
// tensor counts examples; an axis of size -1 has any size.
tensorflow::serving::SignatureDefMap SignatureDefsOf(
    const ModelSignature& model);

}  // namespace parasol

#endif  // PARASOL_SERVING_MODEL_SIGNATURE_H_
