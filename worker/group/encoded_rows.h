#ifndef PARASOL_WORKER_GROUP_ENCODED_ROWS_H_
#define PARASOL_WORKER_GROUP_ENCODED_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cluster/replica_sum/row_accumulator.h"

// The gradients of rows as workers send them to each other: for each replica
// its number and its number of rows (two int64), the ids (uint64), the elements
// (float32), and, if bit 62 of the number of rows is set, how often each id
// occurs (uint32), all little-endian.
namespace parasol {

// Returns the bytes of one replica's gradients.
std::string EncodeRows(int replica, absl::Span<const uint64_t> ids,
                       absl::Span<const float> gradients,
                       absl::Span<const uint32_t> counts = {});

// Returns InvalidArgument, and says why, unless `encoded` are the gradients of
// all workers, by their ranks, of a table whose rows have `width` elements: of
// the replicas 0 to replicas - 1, each once.
absl::Status CheckRows(const std::vector<std::string>& encoded, size_t width,
                       int replicas);

// Adds the gradients of all workers, `encoded`, in ascending order of their
// replicas, and returns the means of the rows: of each row over the replicas
// that touch it. Returns errors of CheckRows(); `sums` is empty then, too.
absl::StatusOr<RowGradients> MeansOfRows(
    const std::vector<std::string>& encoded, size_t width, int replicas,
    RowAccumulator& sums);

}  // namespace parasol

#endif  // PARASOL_WORKER_GROUP_ENCODED_ROWS_H_
