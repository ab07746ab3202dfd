#ifndef PARASOL_TOOL_EXCHANGE_KERAS_CHECKPOINT_H_
#define PARASOL_TOOL_EXCHANGE_KERAS_CHECKPOINT_H_

#include <map>
#include <string>
#include <vector>

#include "proto/checkpoint.pb.h"
#include "proto/tensorflow_checkpoint.pb.h"
#include "storage/tensor_files/tensor.h"

namespace parasol {

// A checkpoint as `tf.train.Checkpoint(model=…, optimizer=…).write()` saves a
// Keras model with an optimizer of optimizer_v2.
struct KerasCheckpoint {
  // Objects and their variables, so that restore() finds them.
  tensor_bundle::TrackableObjectGraph graph = {};
  // Keys in the checkpoint, by the names of tensor_names.h:
  // "model/layer_with_weights-0/kernel/.ATTRIBUTES/VARIABLE_VALUE".
  std::map<std::string, std::string> keys = {};
};

// Returns the keys of the step, the number of updates, and all variables with
// their slots, of layers in the manifest's order. Sparse tables, which Keras
// lacks, keep their names.
KerasCheckpoint KerasCheckpointOf(const durable::CheckpointManifest& manifest);

}  // namespace parasol

#endif  // PARASOL_TOOL_EXCHANGE_KERAS_CHECKPOINT_H_
