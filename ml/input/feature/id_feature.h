#ifndef PARASOL_ML_INPUT_FEATURE_ID_FEATURE_H_
#define PARASOL_ML_INPUT_FEATURE_ID_FEATURE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ml/input/feature/batch.h"
#include "ml/input/feature/fingerprint.h"
#include "ml/input/feature/value.h"
#include "proto/job.pb.h"

namespace parasol {

// Makes the ids of one column of an id input, or of a cross of several.
//
// The column's ids are `offset` to offset + id_space() - 1. The last one is the
// id of a missing value, unless a missing value gives no id. The ids of `hash`
// without buckets are the 64-bit fingerprints themselves. Thread-safe.
class IdColumnReader {
 public:
  // Makes a reader in which part i of the cross is row[slots[i]].
  IdColumnReader(const job::IdColumn& column, std::vector<size_t> slots,
                 uint64_t offset);

  // Number of ids; 0 for 64-bit fingerprints.
  uint64_t id_space() const;

  // Appends one id for each value of the column in the row.
  //   DataLoss  a number is not valid, or out of range; several values in a
  //             cross.
  absl::Status Append(const ColumnValues& row,
                      std::vector<uint64_t>& ids) const;
  // Appends one id for each value of a list, for one that is missing, too; none
  // if there are no values. Not for a cross. Errors as above.
  absl::Status AppendList(const ColumnValues& row,
                          std::vector<uint64_t>& ids) const;

 private:
  absl::Status AppendMissing(std::vector<uint64_t>& ids) const;
  absl::Status AppendCross(const ColumnValues& row,
                           std::vector<uint64_t>& ids) const;
  // Returns the value's id in a column of `hash`.
  uint64_t HashedIdOf(const FieldValue& value) const;
  // Sets `id` to the value's id, from 0, or to nullopt if it counts as missing;
  // not for `hash`.
  absl::Status IdOf(const FieldValue& value, std::optional<uint64_t>& id) const;
  absl::Status BucketOf(const FieldValue& value,
                        std::optional<uint64_t>& id) const;
  absl::Status NumberOf(const FieldValue& value,
                        std::optional<uint64_t>& id) const;
  uint64_t Hashed(const Fingerprint& fingerprint) const;

  const job::IdColumn spec_;
  const std::vector<size_t> columns_;
  const uint64_t offset_;
  Fingerprint names_;  // the columns' names
  // Number of ids without the missing value's; 0: fingerprints.
  uint64_t values_;
  absl::flat_hash_map<std::string, uint64_t> vocabulary_;
};

// All columns of an id input; of a sequence its only column, whose values are
// the steps: of more than there are steps the last or first ones are kept.
// Thread-safe.
class IdFeatureReader {
 public:
  // Makes a reader in which part j of column i is row[slots[i][j]]. A sequence
  // has one column with one part.
  IdFeatureReader(const job::IdInput& input,
                  const std::vector<std::vector<size_t>>& slots);

  // Appends an example.
  //   DataLoss  as for IdColumnReader::Append(); or the batch has more than
  //             2^31 - 1 ids.
  absl::Status Append(const ColumnValues& row, IdFeature& feature) const;

 private:
  absl::Status AppendSequence(const ColumnValues& row,
                              std::vector<uint64_t>& ids) const;

  std::vector<IdColumnReader> columns_;
  const std::optional<job::IdSequence> sequence_;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FEATURE_ID_FEATURE_H_
