#ifndef PARASOL_CLUSTER_PROGRESS_RECORDED_VALUES_H_
#define PARASOL_CLUSTER_PROGRESS_RECORDED_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/repeated_field.h"
#include "proto/chief.pb.h"

// The values that a program with a training loop of its own records by name.
namespace parasol {

// Number of names by which a run may record values.
inline constexpr size_t kMostRecordedNames = 100;

// Returns InvalidArgument unless a program may record values by this name: one
// that no line of training.jsonl has anyway, of 1 to 100 bytes of UTF-8 without
// control characters.
absl::Status CheckRecordedName(absl::string_view name);

// Totals of the values of a name. Both numbers and the sum only grow by what is
// added, so totals of a process may be reported again, or not at all.
struct RecordedTotal {
  double sum = 0;  // sum of the finite ones
  int64_t count = 0;
  int64_t not_finite = 0;  // part of `count`
};
using RecordedTotals = std::map<std::string, RecordedTotal, std::less<>>;

// Adds values to totals; names beyond kMostRecordedNames are left out.
void AddRecorded(const std::vector<std::pair<std::string, double>>& values,
                 RecordedTotals& totals);
void AddRecorded(const RecordedTotals& more, RecordedTotals& totals);

// Returns what `now` has more than `before`. Totals that are not newer are left
// out.
RecordedTotals RecordedSince(const RecordedTotals& before,
                             const RecordedTotals& now);

// Returns the mean of each name's values; NaN if one of them is not finite.
std::vector<std::pair<std::string, double>> MeansOf(
    const RecordedTotals& totals);

// Write and read messages. What a message can't have is left out.
using RecordedMessages =
    google::protobuf::RepeatedPtrField<wire::RecordedValues>;
void ToMessages(const RecordedTotals& totals, RecordedMessages& messages);
RecordedTotals RecordedOf(const RecordedMessages& messages);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_PROGRESS_RECORDED_VALUES_H_
