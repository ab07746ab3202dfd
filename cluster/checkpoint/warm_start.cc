#include "cluster/checkpoint/warm_start.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/checkpoint/warm_match.h"
#include "cluster/checkpoint/warm_source.h"
#include "ml/initializer/initializer.h"
#include "ml/optimizer/assigned/optimizer_of.h"
#include "ml/optimizer/optimizer.h"
#include "storage/shard_entry.h"
#include "storage/shard_writer.h"

namespace parasol {
namespace {

// Number of elements that are in memory at a time.
constexpr int64_t kPieceElements = 1 << 18;
// Bytes of a table's rows in one entry, as a ps writes them.
constexpr size_t kRowEntryBytes = 16 << 10;
// As many names stand in a line of the log.
constexpr size_t kMaxNamed = 20;

// Indices of the entries in ascending order of their names.
template <typename Entry>
std::vector<size_t> ByName(const std::vector<Entry>& entries) {
  std::vector<size_t> order(entries.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return entries[a].name() < entries[b].name();
  });
  return order;
}

std::string Named(const std::vector<std::string>& names) {
  if (names.empty()) return "nothing";
  const size_t shown = std::min(names.size(), kMaxNamed);
  return absl::StrCat(absl::StrJoin(names.begin(), names.begin() + shown, ", "),
                      shown < names.size()
                          ? absl::StrCat(" and ", names.size() - shown, " more")
                          : "");
}

// Writes the only file of the checkpoint.
class WarmShard {
 public:
  WarmShard(const WarmRun& run, const WarmMatch& match, WarmSource& source,
            ShardWriter& writer)
      : run_(run), match_(match), source_(source), writer_(writer) {}

  absl::Status Write() {
    for (const size_t i : ByName(run_.contents.variables)) {
      RETURN_IF_ERROR(WriteVariable(i));
    }
    for (const size_t i : ByName(run_.contents.tables)) {
      RETURN_IF_ERROR(WriteTable(i));
    }
    return absl::OkStatus();
  }

  int64_t rows() const { return rows_; }

 private:
  absl::Status WriteVariable(size_t index) {
    const VariableSpec& spec = run_.variables[index];
    ASSIGN_OR_RETURN(const std::unique_ptr<const Optimizer> optimizer,
                     MakeOptimizerOf(spec, run_.job));
    const int slots = static_cast<int>(optimizer->slot_names().size());
    for (int array = 0; array <= slots; ++array) {
      for (int64_t first = 0; first < spec.elements();
           first += kPieceElements) {
        piece_.resize(std::min(kPieceElements, spec.elements() - first));
        if (array == kValueArray) {
          RETURN_IF_ERROR(FillValues(index, first));
        } else {
          std::fill(piece_.begin(), piece_.end(),
                    optimizer->InitialSlotValue(array - 1));
        }
        RETURN_IF_ERROR(writer_.AddElements(spec.name, array, first,
                                            /*updates=*/0, piece_));
      }
    }
    return absl::OkStatus();
  }

  absl::Status FillValues(size_t index, int64_t first) {
    const VariableSpec& spec = run_.variables[index];
    const std::optional<size_t> from = match_.variables[index];
    if (from) return source_.Read(*from, first, absl::MakeSpan(piece_));
    return Initialize(spec.initializer, run_.job.seed(), spec.name, spec.shape,
                      first, absl::MakeSpan(piece_));
  }

  absl::Status WriteTable(size_t index) {
    const job::SparseTable& table = run_.job.model().sparse_table(index);
    ASSIGN_OR_RETURN(const std::unique_ptr<const Optimizer> optimizer,
                     MakeOptimizer(RowOptimizerOf(table, run_.job)));
    // A table without rows keeps its number of updates.
    RETURN_IF_ERROR(writer_.AddRows(table.name(), {.updates = 0}));
    if (!match_.tables[index]) return absl::OkStatus();
    return source_.VisitRows(
        *match_.tables[index],
        [&](absl::Span<const uint64_t> ids, absl::Span<const float> rows) {
          return WriteRows(table, *optimizer, ids, rows);
        });
  }

  absl::Status WriteRows(const job::SparseTable& table,
                         const Optimizer& optimizer,
                         absl::Span<const uint64_t> ids,
                         absl::Span<const float> rows) {
    const size_t width = table.width();
    const size_t floats = optimizer.FloatsOfRow(width);
    const size_t most = std::max<size_t>(
        1, kRowEntryBytes / (floats * sizeof(float) + sizeof(uint64_t)));
    rows_ += static_cast<int64_t>(ids.size());
    for (size_t first = 0; first < ids.size(); first += most) {
      const size_t count = std::min(most, ids.size() - first);
      piece_.resize(count * floats);
      for (size_t i = 0; i < count; ++i) {
        float* const row = piece_.data() + i * floats;
        std::copy_n(rows.data() + (first + i) * width, width, row);
        optimizer.FillSlots(width, row);
      }
      RETURN_IF_ERROR(writer_.AddRows(
          table.name(),
          {.updates = 0, .ids = ids.subspan(first, count), .rows = piece_}));
    }
    return absl::OkStatus();
  }

  const WarmRun& run_;
  const WarmMatch& match_;
  WarmSource& source_;
  ShardWriter& writer_;
  std::vector<float> piece_;
  int64_t rows_ = 0;
};

// An open source, and what it gives.
struct MatchedSource {
  std::unique_ptr<WarmSource> source;
  WarmMatch match;
};

absl::StatusOr<MatchedSource> OpenMatched(const job::WarmStart& warm_start,
                                          const CheckpointContents& contents) {
  MatchedSource opened;
  ASSIGN_OR_RETURN(opened.source, WarmSource::Open(warm_start.checkpoint()),
                   _ << "warm_start");
  ASSIGN_OR_RETURN(opened.match,
                   MatchWarmStart(warm_start, contents, *opened.source),
                   _ << "warm_start: " << opened.source->description());
  return opened;
}

void Log(const WarmRun& run, const WarmMatch& match, const WarmSource& source,
         int64_t rows) {
  std::vector<std::string> taken, anew;
  for (size_t i = 0; i < match.variables.size(); ++i) {
    (match.variables[i] ? taken : anew)
        .push_back(run.contents.variables[i].name());
  }
  for (size_t i = 0; i < match.tables.size(); ++i) {
    (match.tables[i] ? taken : anew).push_back(run.contents.tables[i].name());
  }
  LOG(INFO) << "warm start from " << source.description() << ": took "
            << Named(taken) << " (" << rows << " rows of tables)";
  LOG(INFO) << "warm start: " << Named(anew) << " begins anew, and "
            << Named(match.left) << " of " << source.description()
            << " is not taken";
}

}  // namespace

absl::Status CheckWarmStart(const job::WarmStart& warm_start,
                            const CheckpointContents& contents) {
  return OpenMatched(warm_start, contents).status();
}

absl::Status WriteWarmStart(const WarmRun& run, CheckpointStore& store,
                            CheckOwner check_owner) {
  ASSIGN_OR_RETURN(const MatchedSource matched,
                   OpenMatched(run.job.warm_start(), run.contents));
  int64_t rows = 0;
  const auto write = [&](ShardWriter& writer) -> absl::Status {
    WarmShard shard(run, matched.match, *matched.source, writer);
    absl::Status status = shard.Write();
    if (status.ok()) status = matched.source->Verify();
    // Another try would find the same damage.
    if (absl::IsDataLoss(status)) {
      status = absl::InvalidArgumentError(status.message());
    }
    rows = shard.rows();
    return status;
  };
  RETURN_IF_ERROR(WriteFirstCheckpoint({.run_id = run.run_id,
                                        .job = run.job,
                                        .contents = run.contents,
                                        .now = run.now},
                                       store, check_owner, write))
      << "warm_start";
  Log(run, matched.match, *matched.source, rows);
  return absl::OkStatus();
}

}  // namespace parasol
