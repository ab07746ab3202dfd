#include "worker/group/state/state_transfer.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/rows/row_snapshot.h"
#include "storage/checkpoint_manifest.h"
#include "worker/group/state/wait_intervals.h"
#include "worker/store/parameter_store.h"

namespace parasol {
namespace {

using Version = GroupState::Version;

// Rows of a table that travel at a time.
constexpr int64_t kRowsAtOnce = 16384;
// Elements that travel at a time, and pieces between two meetings of all ranks.
// Those that only watch would be far ahead otherwise.
constexpr int64_t kElementsAtOnce = 1 << 20;
constexpr int kPiecesAhead = 16;
constexpr absl::Duration kTransferPollInterval = absl::Milliseconds(50);

template <typename T>
absl::Span<std::byte> BytesOf(absl::Span<T> values) {
  return absl::MakeSpan(reinterpret_cast<std::byte*>(values.data()),
                        values.size() * sizeof(T));
}

// One operation after the other. All ranks take part in each.
class Copy {
 public:
  Copy(Collective& collective, int source, std::vector<int> receivers,
       const std::function<bool()>& may_go_on)
      : collective_(collective),
        source_(source),
        receivers_(std::move(receivers)),
        may_go_on_(may_go_on) {}

  bool is_source() const { return collective_.group().own_rank == source_; }
  bool is_receiver() const {
    return std::count(receivers_.begin(), receivers_.end(),
                      collective_.group().own_rank) > 0;
  }

  // Brings the source's values to the receivers.
  template <typename T>
  absl::Status Pass(absl::Span<T> values) {
    for (size_t first = 0; first < values.size(); first += kElementsAtOnce) {
      const auto piece = values.subspan(first, kElementsAtOnce);
      RETURN_IF_ERROR(Broadcast(receivers_, BytesOf(piece), piece.size()));
    }
    return absl::OkStatus();
  }
  // Brings the source's values to all ranks.
  template <typename T>
  absl::Status PassToAll(absl::Span<T> values) {
    return values.empty() ? absl::OkStatus()
                          : Broadcast({}, BytesOf(values), values.size());
  }
  // Ends the group on all ranks, unless it has ended, as the source gives what
  // is no state. Returns why it has ended.
  absl::Status Refuse(const absl::Status& why) {
    const CollectiveGroup& group = collective_.group();
    collective_.Abort(RankLostError(
        group, source_,
        absl::StrCat("it gives what is no copy of the variables (",
                     why.message(), ")")));
    return collective_.status();
  }
  // Takes part in Pass() of `count` values without having them.
  absl::Status Watch(int64_t count) {
    for (; count > 0; count -= kElementsAtOnce) {
      RETURN_IF_ERROR(
          Broadcast(receivers_, {}, std::min(count, kElementsAtOnce)));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Broadcast(const std::vector<int>& receivers,
                         absl::Span<std::byte> bytes, int64_t elements) {
    if (!may_go_on_()) {
      return absl::CancelledError("the copy of variables is wanted no more");
    }
    collective_.Broadcast(source_, receivers, bytes,
                          [](const absl::Status&) {});
    RETURN_IF_ERROR(collective_.Await());
    elements_ += elements;
    return ++pieces_ % kPiecesAhead == 0 ? Meet() : absl::OkStatus();
  }

  absl::Status Meet() {
    LOG_EVERY(INFO, kLogInterval)
        << collective_.group().NameOf(source_) << " gives its variables to "
        << receivers_.size() << " others: " << elements_ << " elements so far";
    std::vector<std::string> nothing;
    collective_.AllGather("", &nothing, [](const absl::Status&) {});
    return collective_.Await();
  }

  Collective& collective_;
  const int source_;
  const std::vector<int> receivers_;
  const std::function<bool()>& may_go_on_;
  int64_t elements_ = 0;
  int64_t pieces_ = 0;
};

// The numbers that come before a state's elements and rows.
struct Counts {
  explicit Counts(ParameterStore& parameters)
      : updates(parameters.num_variables()),
        table_updates(parameters.num_tables()),
        rows(2 * parameters.num_tables()) {}

  std::vector<int64_t> updates;        // of each variable
  std::vector<int64_t> table_updates;  // of each table
  // Rows of each table, then of each its ids that have a count and no row.
  std::vector<int64_t> rows;

  int64_t& counted_ids(size_t table) { return rows[rows.size() / 2 + table]; }
};

absl::Status CopyCounts(Copy& copy, Counts& counts) {
  RETURN_IF_ERROR(copy.PassToAll(absl::MakeSpan(counts.updates)));
  RETURN_IF_ERROR(copy.PassToAll(absl::MakeSpan(counts.table_updates)));
  return copy.PassToAll(absl::MakeSpan(counts.rows));
}

// Rows on their way, at most kRowsAtOnce of them.
struct RowBuffer {
  std::vector<uint64_t> ids;
  std::vector<float> rows;
  std::vector<int64_t> touched;  // empty if the table does not have that

  absl::Status Pass(Copy& copy) {
    RETURN_IF_ERROR(copy.Pass(absl::MakeSpan(ids)));
    RETURN_IF_ERROR(copy.Pass(absl::MakeSpan(rows)));
    if (touched.empty()) return absl::OkStatus();
    return copy.Pass(absl::MakeSpan(touched));
  }
};

absl::Status SendRows(RowBuffer& buffer, Copy& copy) {
  RETURN_IF_ERROR(buffer.Pass(copy));
  buffer.ids.clear();
  buffer.rows.clear();
  buffer.touched.clear();
  return absl::OkStatus();
}

// Ids that have counts and no row, on their way.
struct CountBuffer {
  std::vector<uint64_t> ids;
  std::vector<int64_t> counts;
  std::vector<int64_t> touched;  // empty if counts don't age

  absl::Status Pass(Copy& copy) {
    RETURN_IF_ERROR(copy.Pass(absl::MakeSpan(ids)));
    RETURN_IF_ERROR(copy.Pass(absl::MakeSpan(counts)));
    if (touched.empty()) return absl::OkStatus();
    return copy.Pass(absl::MakeSpan(touched));
  }
};

absl::Status SendCounts(const RowSnapshot& snapshot, Copy& copy) {
  return snapshot.VisitCounts([&copy](const CountBatch& batch) {
    CountBuffer buffer = {
        .ids = {batch.ids.begin(), batch.ids.end()},
        .counts = {batch.counts.begin(), batch.counts.end()},
        .touched = {batch.touched.begin(), batch.touched.end()}};
    return buffer.Pass(copy);
  });
}

absl::Status SendTable(RowSnapshot snapshot, Copy& copy) {
  RowBuffer buffer;
  const auto send = [&](const RowBatch& batch) -> absl::Status {
    const size_t floats =
        batch.ids.empty() ? 0 : batch.rows.size() / batch.ids.size();
    for (size_t i = 0; i < batch.ids.size(); ++i) {
      buffer.ids.push_back(batch.ids[i]);
      const auto row = batch.rows.subspan(i * floats, floats);
      buffer.rows.insert(buffer.rows.end(), row.begin(), row.end());
      if (!batch.touched.empty()) buffer.touched.push_back(batch.touched[i]);
      if (std::ssize(buffer.ids) < kRowsAtOnce) continue;
      RETURN_IF_ERROR(SendRows(buffer, copy));
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(snapshot.Drain(send));
  RETURN_IF_ERROR(SendRows(buffer, copy));
  return SendCounts(snapshot, copy);
}

absl::Status SendState(ParameterStore& parameters, Copy& copy) {
  StoredVariables& variables = parameters.variables();
  Counts counts(parameters);
  std::copy(variables.updates().begin(), variables.updates().end(),
            counts.updates.begin());
  std::vector<RowSnapshot> tables;
  for (size_t i = 0; i < parameters.num_tables(); ++i) {
    tables.push_back(parameters.table(i).TakeSnapshot());
    counts.table_updates[i] = tables[i].updates();
    counts.rows[i] = tables[i].rows();
    counts.counted_ids(i) = tables[i].counted_ids();
  }
  RETURN_IF_ERROR(CopyCounts(copy, counts));
  for (size_t i = 0; i < parameters.num_variables(); ++i) {
    for (int array = 0; array < variables.num_arrays(i); ++array) {
      ASSIGN_OR_RETURN(const absl::Span<const float> read,
                       variables.Read(i, array));
      std::vector<float> elements(read.begin(), read.end());
      RETURN_IF_ERROR(copy.Pass(absl::MakeSpan(elements)));
    }
  }
  for (RowSnapshot& table : tables) {
    RETURN_IF_ERROR(SendTable(std::move(table), copy));
  }
  return absl::OkStatus();
}

RowBounds BoundsOfTable(const ParameterStore& parameters, size_t table) {
  return BoundsOf(
      parameters.job().model().sparse_table(static_cast<int>(table)));
}

absl::Status ReceiveCounts(int64_t ids, const RowBounds& bounds, Copy& copy,
                           RowTable& table) {
  CountBuffer buffer;
  for (; ids > 0; ids -= std::ssize(buffer.ids)) {
    const int64_t count = std::min<int64_t>(ids, RowSnapshot::kCountsAtOnce);
    buffer.ids.resize(count);
    buffer.counts.resize(count);
    buffer.touched.resize(bounds.idle_steps > 0 ? count : 0);
    RETURN_IF_ERROR(buffer.Pass(copy));
    const std::vector<uint32_t> counts(buffer.counts.begin(),
                                       buffer.counts.end());
    table.InsertCounts(
        {.ids = buffer.ids, .counts = counts, .touched = buffer.touched});
  }
  return absl::OkStatus();
}

absl::Status ReceiveTable(int64_t rows, int64_t updates,
                          const RowBounds& bounds, Copy& copy,
                          RowTable& table) {
  const auto floats = static_cast<int64_t>(FloatsOfRow(table.form()));
  table.AdvanceTo(updates);
  RowBuffer buffer;
  while (rows > 0) {
    const int64_t count = std::min(rows, kRowsAtOnce);
    buffer.ids.resize(count);
    buffer.rows.resize(count * floats);
    buffer.touched.resize(bounds.times() ? count : 0);
    RETURN_IF_ERROR(buffer.Pass(copy));
    RETURN_IF_ERROR(table.Insert({.updates = updates,
                                  .ids = buffer.ids,
                                  .rows = buffer.rows,
                                  .touched = buffer.touched}));
    rows -= count;
  }
  return absl::OkStatus();
}

absl::Status ReceiveState(Copy& copy, ParameterStore& parameters) {
  StoredVariables& variables = parameters.variables();
  Counts counts(parameters);
  RETURN_IF_ERROR(CopyCounts(copy, counts));
  for (size_t i = 0; i < parameters.num_variables(); ++i) {
    variables.SetUpdates(i, counts.updates[i]);
    std::vector<float> elements(variables.specs()[i].elements());
    for (int array = 0; array < variables.num_arrays(i); ++array) {
      RETURN_IF_ERROR(copy.Pass(absl::MakeSpan(elements)));
      RETURN_IF_ERROR(variables.Write(i, array, elements));
    }
  }
  for (size_t i = 0; i < parameters.num_tables(); ++i) {
    RowTable& table = parameters.table(i);
    const RowBounds bounds = BoundsOfTable(parameters, i);
    RETURN_IF_ERROR(ReceiveTable(counts.rows[i], counts.table_updates[i],
                                 bounds, copy, table))
        << "table " << table.name();
    RETURN_IF_ERROR(ReceiveCounts(counts.counted_ids(i), bounds, copy, table));
    table.EndInsertions();
  }
  return absl::OkStatus();
}

// A rank that has the state is there when others take it.
absl::Status WatchCopy(ParameterStore& parameters, Copy& copy) {
  StoredVariables& variables = parameters.variables();
  Counts counts(parameters);
  RETURN_IF_ERROR(CopyCounts(copy, counts));
  for (size_t i = 0; i < parameters.num_variables(); ++i) {
    for (int array = 0; array < variables.num_arrays(i); ++array) {
      RETURN_IF_ERROR(copy.Watch(variables.specs()[i].elements()));
    }
  }
  for (size_t i = 0; i < parameters.num_tables(); ++i) {
    const auto floats =
        static_cast<int64_t>(FloatsOfRow(parameters.table(i).form()));
    const RowBounds bounds = BoundsOfTable(parameters, i);
    for (int64_t rows = counts.rows[i]; rows > 0; rows -= kRowsAtOnce) {
      const int64_t count = std::min(rows, kRowsAtOnce);
      RETURN_IF_ERROR(copy.Watch(count));  // ids
      RETURN_IF_ERROR(copy.Watch(count * floats));
      // When they were touched.
      RETURN_IF_ERROR(copy.Watch(bounds.times() ? count : 0));
    }
    for (int64_t ids = counts.counted_ids(i); ids > 0;
         ids -= RowSnapshot::kCountsAtOnce) {
      const int64_t count = std::min<int64_t>(ids, RowSnapshot::kCountsAtOnce);
      RETURN_IF_ERROR(copy.Watch(count));  // ids
      RETURN_IF_ERROR(copy.Watch(count));  // counts
      RETURN_IF_ERROR(copy.Watch(bounds.idle_steps > 0 ? count : 0));
    }
  }
  return absl::OkStatus();
}

absl::Status CopyState(Copy& copy, const Version& version, GroupState& state) {
  if (copy.is_receiver()) {
    ASSIGN_OR_RETURN(std::unique_ptr<ParameterStore> parameters,
                     state.MakeParameters());
    const absl::Status received = ReceiveState(copy, *parameters);
    if (absl::IsCancelled(received)) return received;
    if (!received.ok()) return copy.Refuse(received);
    state.Replace(std::move(parameters), version);
    return absl::OkStatus();
  }
  return state.Read([&copy](ParameterStore& parameters) {
    return copy.is_source() ? SendState(parameters, copy)
                            : WatchCopy(parameters, copy);
  });
}

// A rank's state, and the step at which it goes on if it is a loaded one.
struct Found {
  Version version;
  int64_t goes_on_at = 0;
};

absl::StatusOr<std::vector<Found>> GatherVersions(Collective& collective,
                                                  const GroupState& state) {
  const Version own = state.version();
  int64_t numbers[] = {own.step, own.epoch, state.goes_on_at()};
  std::vector<std::string> gathered;
  collective.AllGather(absl::string_view(reinterpret_cast<const char*>(numbers),
                                         sizeof(numbers)),
                       &gathered, [](const absl::Status&) {});
  RETURN_IF_ERROR(collective.Await());
  std::vector<Found> found;
  for (size_t rank = 0; rank < gathered.size(); ++rank) {
    if (gathered[rank].size() != sizeof(numbers)) {
      collective.Abort(
          RankLostError(collective.group(), static_cast<int>(rank),
                        absl::StrCat("it says its step in ",
                                     gathered[rank].size(), " bytes")));
      return collective.status();
    }
    std::memcpy(numbers, gathered[rank].data(), sizeof(numbers));
    found.push_back({.version = {.step = numbers[0], .epoch = numbers[1]},
                     .goes_on_at = numbers[2]});
  }
  return found;
}

// Returns the step of the cluster's tables that the rank which has loaded the
// variables was told.
int64_t GoesOnAt(const std::vector<Found>& found) {
  int64_t step = 0;
  for (const Found& rank : found) step = std::max(step, rank.goes_on_at);
  return step;
}

// Returns true if nobody has the variables of the steps until `goes_on_at` any
// more. Workers that make steps together are one step apart at most: a state of
// an earlier step was loaded, or belongs to a worker which stood still while
// the others made steps and were lost.
bool IsBehind(const Version& newest, int64_t goes_on_at) {
  return newest.step + (newest.epoch == 0 ? 0 : 1) < goes_on_at;
}

// Brings the newest state that was found to the ranks that lack it.
absl::Status CopyNewest(const std::vector<Found>& found, size_t newest,
                        Collective& collective, GroupState& state,
                        const std::function<bool()>& may_go_on) {
  const Version& version = found[newest].version;
  std::vector<int> receivers;
  for (size_t rank = 0; rank < found.size(); ++rank) {
    if (found[rank].version != version) receivers.push_back(rank);
  }
  if (!receivers.empty()) {
    Copy copy(collective, static_cast<int>(newest), std::move(receivers),
              may_go_on);
    RETURN_IF_ERROR(CopyState(copy, version, state));
  }
  // A rank that had none may have loaded one meanwhile, later than this.
  if (state.version() != version) {
    return absl::CancelledError(
        "this worker has loaded other variables: the group agrees again");
  }
  const int64_t goes_on_at = GoesOnAt(found);
  if (IsBehind(version, goes_on_at)) state.GoOnAt(goes_on_at);
  return absl::OkStatus();
}

}  // namespace

absl::Status AgreeOnState(Collective& collective, GroupState& state,
                          const std::function<bool()>& may_go_on,
                          Clock& clock) {
  while (true) {
    ASSIGN_OR_RETURN(const std::vector<Found> found,
                     GatherVersions(collective, state));
    const auto newest = std::max_element(
        found.begin(), found.end(), [](const Found& a, const Found& b) {
          return std::tie(a.version, a.goes_on_at) <
                 std::tie(b.version, b.goes_on_at);
        });
    if (newest->version.is_there()) {
      return CopyNewest(found, newest - found.begin(), collective, state,
                        may_go_on);
    }
    if (!may_go_on()) return absl::CancelledError("waits for no variables");
    LOG_EVERY(INFO, kLogInterval)
        << "no worker has the variables: waiting for worker/0 to load them";
    clock.Pause(kTransferPollInterval);
  }
}

}  // namespace parasol
