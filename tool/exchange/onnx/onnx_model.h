#ifndef PARASOL_TOOL_EXCHANGE_ONNX_ONNX_MODEL_H_
#define PARASOL_TOOL_EXCHANGE_ONNX_ONNX_MODEL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ml/model/graph.h"
#include "proto/job.pb.h"
#include "proto/onnx.pb.h"

namespace parasol {

// Names of the outputs of a model that does not name them, as in `parasol
// serve`. The others are "ctr" and "ctr/probabilities".
inline constexpr char kOnnxOutputs[] = "outputs";
inline constexpr char kOnnxProbabilities[] = "probabilities";

// Returns the name of the input that has the weights of the ids of `input`.
std::string OnnxWeightsName(const std::string& input);
// Returns the name of the initializer that has the rows of `table`: first the
// rows of the table's ids in their order, then the row of any other id.
std::string OnnxRowsName(const std::string& table);

// The ids of the sparse tables, by the tables' names.
using OnnxTableIds = std::map<std::string, std::vector<int64_t>>;

// Returns a model's graph with all layers as evaluation computes them. Its
// inputs are the inputs of the job's model, a data set's columns after their
// transformations: float32 [examples, shape...], or int64 ids [examples, ids]
// and, if an embedding_bag reads them, the weight of each id, which is 0 for an
// id that does not count. Its outputs are kOnnxOutputs and, if the loss has
// probabilities, kOnnxProbabilities; for a named output they are its name and
// "<name>/probabilities". The initializers of variables, which have their
// names, and of rows have no elements yet.
//   InvalidArgument  an input of the model has the name of an output.
//   Unimplemented    a layer has no ONNX operator; the message names it.
absl::StatusOr<onnx::GraphProto> MakeOnnxGraph(const job::Model& model,
                                               const Graph& graph,
                                               const OnnxTableIds& ids);

}  // namespace parasol

#endif  // PARASOL_TOOL_EXCHANGE_ONNX_ONNX_MODEL_H_
