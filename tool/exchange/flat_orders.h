#ifndef PARASOL_TOOL_EXCHANGE_FLAT_ORDERS_H_
#define PARASOL_TOOL_EXCHANGE_FLAT_ORDERS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ml/model/graph.h"
#include "proto/job.pb.h"

namespace parasol {

// The rows of a variable, by the order in which another program has them: row i
// here is row order[i] there. Empty: there is no such order, as the variable
// stands behind a layer whose order there can't be told.
using RowOrder = std::vector<int64_t>;

// Returns the variables whose rows are in another order in a program that
// flattens images as [channels, height, width]: dense layers and normalizations
// have them behind a flattened image of several channels, also behind
// activations, dropout, sums and concatenations of such. `graph` is made from
// `model`. Pure.
std::map<std::string, RowOrder> ChannelsFirstOrders(const job::Model& model,
                                                    const Graph& graph);

}  // namespace parasol

#endif  // PARASOL_TOOL_EXCHANGE_FLAT_ORDERS_H_
