#ifndef PARASOL_ML_LAYER_LAYER_KIND_H_
#define PARASOL_ML_LAYER_LAYER_KIND_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "proto/job.pb.h"

namespace parasol {

// One kind of layer: all that differs between job::Layer's kinds. A kind is a
// constant of its own file (kDenseKind in ml/layer/dense.h), and has one line
// in the list of ml/layer/layer_kinds.cc. Each function gets a layer of this
// kind.
struct LayerKind {
  // The kind's field in job::Layer.
  job::Layer::KindCase field = job::Layer::KIND_NOT_SET;

  // Sets the unset fields of the kind's message to the defaults of
  // tf.keras.layers. May be applied twice. Null: no field has a default.
  void (*fill_defaults)(job::Layer& layer) = nullptr;

  // Checks that the fields that have no default are set, and that each field is
  // in its range. `path` is the path of the kind's message in the job. Null:
  // there is nothing to check.
  //   InvalidArgument  "<path>.<field>: …", with the value.
  absl::Status (*check)(const std::string& path,
                        const job::Layer& layer) = nullptr;

  // Returns the name of the sparse table that the layer reads. Null: a layer of
  // this kind reads none.
  const std::string& (*table)(const job::Layer& layer) = nullptr;

  // Returns the layer for these inputs, with its defaults for unset fields.
  // `table_width` is the width of table(), 0 without one.
  //   InvalidArgument  the layer does not fit the inputs: says why.
  absl::StatusOr<std::unique_ptr<const Layer>> (*make)(
      const job::Layer& layer, absl::Span<const LayerInput> inputs,
      int64_t table_width) = nullptr;
};

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_LAYER_KIND_H_
