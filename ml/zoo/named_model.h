#ifndef PARASOL_ML_ZOO_NAMED_MODEL_H_
#define PARASOL_ML_ZOO_NAMED_MODEL_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/job.pb.h"

namespace parasol::zoo {

// Options of the zoo's models that are numbers. An option that is not set has
// the model's default.
struct NamedModelOptions {
  std::optional<int64_t> blocks_per_stage = {};
  std::optional<int64_t> image_size = {};
  std::optional<int64_t> classes = {};
  std::optional<double> dropout = {};
  std::optional<double> l2 = {};
};

// Returns the zoo's model `name`: "lenet", "mlp", "resnet_cifar" or
// "softmax_regression".
//   InvalidArgument  there is no such model, it does not have an option that is
//                    set, or a number of blocks, pixels or classes is below 1.
absl::StatusOr<job::Model> NamedModel(absl::string_view name,
                                      NamedModelOptions options);

}  // namespace parasol::zoo

#endif  // PARASOL_ML_ZOO_NAMED_MODEL_H_
