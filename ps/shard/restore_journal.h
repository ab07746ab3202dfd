#ifndef PARASOL_PS_SHARD_RESTORE_JOURNAL_H_
#define PARASOL_PS_SHARD_RESTORE_JOURNAL_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/parameter.pb.h"
#include "ps/journal/push_journal.h"
#include "ps/journal/push_record.h"
#include "ps/shard/parameter_shard.h"
#include "storage/shard_index.h"

namespace parasol {

// Has the shard take a push again, out of a record of PushRecord's. Returns
// what it is answered at once; OK if it waits for others, as a synchronous
// gradient does.
//   DataLoss  the record is none of a push.
absl::Status ApplyRecord(absl::string_view record, ParameterShard& shard);
// Does it with a push that was in a record.
absl::Status ApplyAgain(RecordedPush push, ParameterShard& shard);

// The yield of a journal for a shard.
struct RestoredJournal {
  uint64_t pushes = 0;
  // Line for people about acknowledged pushes that are lost; empty as a rule.
  std::string lost;
  // True if the checkpoint's journal is not there at all.
  bool is_missing = false;
};

// Has `shard`, which is as the order's checkpoint or its initial values make
// it, take the pushes of its journal in `directory` that follow, and keep a
// journal from then on. `place`: the checkpoint's; nullopt for one that was
// written without a journal, or for other shards. A journal that is damaged is
// followed up to there.
//
// A shard with `of_standby` is as its standby was, which may have the journal's
// pushes up to there, and none behind: it takes what it lacks. A journal that
// ends before, or is another one, is put aside: a new one begins, to which
// nothing leads until the next checkpoint.
//   ResourceExhausted  there is no memory for the pushes' rows.
//   InvalidArgument    there is no directory.
// and errors of durable_file.h: try again.
absl::StatusOr<RestoredJournal> RestoreJournal(
    const wire::LoadRequest& order, const std::string& directory,
    const std::optional<JournalPlace>& place,
    const std::optional<JournalEnd>& of_standby, ParameterShard& shard);

}  // namespace parasol

#endif  // PARASOL_PS_SHARD_RESTORE_JOURNAL_H_
