#ifndef PARASOL_ML_LAYER_SEQUENCE_LSTM_H_
#define PARASOL_ML_LAYER_SEQUENCE_LSTM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "ml/layer/layer_kind.h"
#include "proto/job.pb.h"

namespace parasol {

// The layer tf.keras.layers.LSTM, or two of them as
// tf.keras.layers.Bidirectional has them: [steps, channels], and perhaps a mask
// [steps], to [steps, units] or [units]. Variables are kernel [channels, 4 ·
// units], recurrent_kernel [units, 4 · units] and bias [4 · units]; with two
// directions each has them with "forward/" and "backward/" in front.
//   InvalidArgument  the inputs have other shapes.
absl::StatusOr<std::unique_ptr<const Layer>> MakeLstm(
    const job::Lstm& spec, absl::Span<const LayerInput> inputs);

// The kind "lstm" of a job's layers.
extern const LayerKind kLstmKind;

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_SEQUENCE_LSTM_H_
