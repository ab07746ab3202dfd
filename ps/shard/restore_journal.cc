#include "ps/shard/restore_journal.h"

#include <unistd.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/random/random.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "ps/journal/push_journal.h"
#include "ps/shard/dedup_window.h"
#include "storage/durable_file.h"
#include "storage/journal/journal_fence.h"
#include "storage/journal/journal_format.h"
#include "storage/journal/journal_reader.h"
#include "storage/journal/journal_writer.h"

namespace parasol {
namespace {

JournalOwner OwnerOf(const wire::LoadRequest& order) {
  return {.run_id = order.run_id(),
          .layout = order.order().layout(),
          .shard = order.shard(),
          .num_shards = order.num_shards()};
}

Kept KeptBy(const wire::LoadRequest& order) {
  return order.journal() == wire::LoadRequest::ON_DISK ? Kept::kOnDisk
                                                       : Kept::kWritten;
}

// What the shard refused before, it refuses again.
absl::Status Replay(absl::string_view record, ParameterShard& shard) {
  const absl::Status applied = ApplyRecord(record, shard);
  return absl::IsResourceExhausted(applied) || absl::IsDataLoss(applied)
             ? applied
             : absl::OkStatus();
}

// A disk without room may have some later, as for pushes.
absl::Status LaterIfFull(const absl::Status& status) {
  return absl::IsResourceExhausted(status)
             ? absl::UnavailableError(status.message())
             : status;
}

// Removes the segments of journals that nothing leads to any more, or, with
// `keeps`, gives them names that no reader looks at.
absl::Status RemoveOthers(const std::string& directory, bool keeps) {
  const auto names = ListDirectory(directory);
  if (absl::IsNotFound(names.status())) return absl::OkStatus();
  RETURN_IF_ERROR(names.status());
  for (const std::string& name : *names) {
    if (!SegmentOfName(name).has_value()) continue;
    const std::string path = absl::StrCat(directory, "/", name);
    if (keeps) {
      RETURN_IF_ERROR(
          Rename(path, absl::StrCat(directory, "/", UnreadName(name))));
    } else if (unlink(path.c_str()) != 0) {
      return FileError(errno, "remove", path);
    }
  }
  return absl::OkStatus();
}

std::string NotOfStandby(const std::string& path, uint64_t last,
                         uint64_t journal, const JournalEnd& standby) {
  return absl::StrFormat(
      "the journal in %s ends at record %d of journal %016x, and the standby "
      "had record %d of journal %016x",
      path, last, journal, standby.record, standby.journal);
}

// A journal that begins with the shard's state. Only one that follows initial
// values has a segment 1: nothing else leads to that.
absl::StatusOr<SegmentHeader> NewJournal(const wire::LoadRequest& order,
                                         const std::string& directory,
                                         int64_t progress, bool is_first,
                                         bool keeps_others) {
  RETURN_IF_ERROR(RemoveOthers(directory, keeps_others));
  SegmentHeader header;
  header.owner = OwnerOf(order);
  absl::BitGen random;
  header.journal =
      absl::Uniform<uint64_t>(absl::IntervalClosed, random, 1, UINT64_MAX);
  header.segment = is_first ? 1 : 2;
  header.progress = progress;
  return header;
}

}  // namespace

absl::Status ApplyRecord(absl::string_view record, ParameterShard& shard) {
  ASSIGN_OR_RETURN(RecordedPush push, ParsePushRecord(record));
  return ApplyAgain(std::move(push), shard);
}

absl::Status ApplyAgain(RecordedPush push, ParameterShard& shard) {
  // Nobody takes the values.
  if (push.operation.has_push()) {
    push.operation.mutable_push()->clear_with_values();
  } else if (push.operation.has_row_push()) {
    push.operation.mutable_row_push()->clear_with_values();
  }
  // A synchronous gradient is answered when its step is complete, if ever.
  const auto answer = std::make_shared<absl::Status>();
  shard.Execute(
      push.worker_incarnation, push.operation, push.payloads,
      [answer](const absl::StatusOr<OperationResult>& result) {
        *answer = result.status();
      },
      push.acknowledged | DedupIndex::kReplayed);
  return *answer;
}

absl::StatusOr<RestoredJournal> RestoreJournal(
    const wire::LoadRequest& order, const std::string& directory,
    const std::optional<JournalPlace>& place,
    const std::optional<JournalEnd>& of_standby, ParameterShard& shard) {
  if (directory.empty()) {
    return absl::InvalidArgumentError(
        "a journal needs a checkpoint directory, or --journal_dir");
  }
  const std::string path =
      JournalPath(directory, order.shard(), order.num_shards());
  const Kept kept = KeptBy(order);
  RestoredJournal restored;
  // From here on a predecessor that was only stopped acknowledges nothing.
  absl::StatusOr<std::unique_ptr<const JournalFence>> fence =
      JournalFence::Take(path);
  if (!fence.ok()) return LaterIfFull(fence.status());
  std::optional<JournalReader> reader;
  if (place.has_value() || order.checkpoint().empty()) {
    absl::StatusOr<JournalReader> opened =
        JournalReader::Open(path, OwnerOf(order), place);
    if (opened.ok()) {
      reader = *std::move(opened);
    } else if (!absl::IsNotFound(opened.status()) &&
               !absl::IsDataLoss(opened.status())) {
      return opened.status();
    } else if (place.has_value() || absl::IsDataLoss(opened.status())) {
      restored.lost = std::string(opened.status().message());
      restored.is_missing = absl::IsNotFound(opened.status());
    }
  }
  std::vector<PushJournal::Segment> segments;
  absl::StatusOr<SegmentHeader> next;
  const int64_t progress = shard.progress() + 1;
  if (reader.has_value()) {
    const SegmentHeader header = reader->Headers().front();
    uint64_t last = header.first_record - 1;
    if (!of_standby.has_value() || of_standby->journal == header.journal) {
      const absl::Status read = reader->Read(
          kept,
          [&shard](absl::string_view record) { return Replay(record, shard); });
      if (!read.ok() && !absl::IsDataLoss(read)) return read;
      restored.lost = std::string(read.message());
      restored.pushes = reader->records();
      last += reader->records();
    }
    if (of_standby.has_value()) {
      // What was acknowledged the standby had: damage behind that loses
      // nothing.
      restored.lost.clear();
      if (of_standby->journal != header.journal || last < of_standby->record) {
        restored.lost = NotOfStandby(path, last, header.journal, *of_standby);
        reader.reset();
      }
    }
  } else if (of_standby.has_value() && of_standby->journal != 0) {
    restored.lost =
        absl::StrCat("the journal in ", path, " is gone: ", restored.lost);
  }
  if (reader.has_value()) {
    next = reader->GoOn(shard.progress() + 1);
    if (!next.ok()) return LaterIfFull(next.status());
    for (const SegmentHeader& header : reader->Headers()) {
      if (header.segment >= next->segment) break;
      segments.push_back(
          {.number = header.segment, .progress = header.progress});
    }
  } else {
    next = NewJournal(
        order, path, progress,
        /*is_first=*/order.checkpoint().empty() && !of_standby.has_value(),
        !restored.lost.empty());
    if (!next.ok()) return LaterIfFull(next.status());
  }
  segments.push_back({.number = next->segment, .progress = next->progress});
  absl::StatusOr<std::unique_ptr<JournalWriter>> writer =
      JournalWriter::Create(path, *next, kept, *std::move(fence));
  if (!writer.ok()) return LaterIfFull(writer.status());
  shard.KeepJournal(
      std::make_unique<PushJournal>(*std::move(writer), std::move(segments)));
  return restored;
}

}  // namespace parasol
