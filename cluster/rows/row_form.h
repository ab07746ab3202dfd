#ifndef PARASOL_CLUSTER_ROWS_ROW_FORM_H_
#define PARASOL_CLUSTER_ROWS_ROW_FORM_H_

#include <cstddef>
#include <string>

#include "ml/optimizer/optimizer.h"
#include "proto/checkpoint.pb.h"

namespace parasol {

// Returns what a manifest says of a table whose rows `optimizer` updates: its
// name, its width, the slots' names, and their widths if one has another width
// than the values.
durable::CheckpointTable RowForm(const std::string& name, size_t width,
                                 const Optimizer& optimizer);

// Returns a table's slots for people: "[m, v]", with their widths if they
// differ from the values'.
std::string SlotsText(const durable::CheckpointTable& table);

// Returns true if rows of both tables have the same elements.
bool HasSameRows(const durable::CheckpointTable& a,
                 const durable::CheckpointTable& b);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_ROWS_ROW_FORM_H_
