#ifndef PARASOL_CLUSTER_CHECK_EXAMPLE_TEXT_H_
#define PARASOL_CLUSTER_CHECK_EXAMPLE_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "ml/input/feature/batch.h"
#include "ml/model/graph.h"

namespace parasol {

// Returns an example of `batch` as the model `graph` sees it, for people: the
// first values of each input, then the labels and the weight.
std::string ExampleText(const Graph& graph, const Batch& batch,
                        int64_t example);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECK_EXAMPLE_TEXT_H_
