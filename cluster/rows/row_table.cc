#include "cluster/rows/row_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cluster/rows/distinct_rows.h"
#include "cluster/rows/row_hash.h"

namespace parasol {
namespace {

constexpr size_t kMaxWidth = 65536;

// Positions are 32 bits wide.
constexpr size_t kMaxIds = UINT32_MAX;

// An index grows somewhere between these loads, each stripe's at another one:
// if all grew together, one request would pay for it.
constexpr double kMinIndexLoad = .5;
constexpr double kMaxIndexLoad = .75;

// What a request needs beside its rows; a thread keeps it from one request to
// the next, but not that of an uncommonly large one.
struct Scratch {
  StripedIds ids;
  DistinctRows distinct;
};
constexpr size_t kKeptIds = 65536;

class ScratchLease {
 public:
  explicit ScratchLease(size_t ids) : keep_(ids <= kKeptIds) {}
  ~ScratchLease() {
    if (!keep_) scratch_ = Scratch();
  }
  Scratch& operator*() { return scratch_; }
  Scratch* operator->() { return &scratch_; }

 private:
  static thread_local Scratch scratch_;
  const bool keep_;
};
thread_local Scratch ScratchLease::scratch_;

}  // namespace

absl::StatusOr<std::unique_ptr<RowTable>> RowTable::Create(
    Options options, std::unique_ptr<const Optimizer> optimizer) {
  if (options.width < 1 || options.width > kMaxWidth) {
    return absl::InvalidArgumentError(
        absl::StrCat("table ", options.name, ": its width is ", options.width,
                     ", not 1 to ", kMaxWidth));
  }
  ASSIGN_OR_RETURN(RowInitializer initializer,
                   RowInitializer::Create(options.initializer, options.seed,
                                          options.name, options.width));
  const RowLayout layout(options.width, optimizer->slot_names().size());
  if (options.memory == nullptr) options.memory = std::make_shared<RowMemory>();
  const std::shared_ptr<RowMemory> memory = options.memory;
  return std::unique_ptr<RowTable>(
      new RowTable(std::move(options), {.layout = layout,
                                        .initializer = initializer,
                                        .optimizer = std::move(optimizer),
                                        .memory = memory}));
}

RowTable::RowTable(Options options, RowRules rules)
    : options_(std::move(options)),
      rules_(std::move(rules)),
      arena_(std::make_shared<RowArena>()) {
  for (size_t s = 0; s < kRowStripes; ++s) {
    const double load =
        kMinIndexLoad + (kMaxIndexLoad - kMinIndexLoad) * s / kRowStripes;
    stripes_.push_back(std::make_unique<RowStripe>(rules_, *arena_, load));
  }
}

absl::Status RowTable::Pull(const std::byte* ids, size_t count, float* out) {
  ScratchLease scratch(count);
  RETURN_IF_ERROR(Sort(ids, count, scratch->ids));
  const size_t first = FirstStripe();
  for (size_t i = 0; i < kRowStripes; ++i) {
    const size_t stripe = (first + i) % kRowStripes;
    const StripedIds::Run run = scratch->ids.run(stripe);
    if (run.size() > 0) stripes_[stripe]->Pull(run, ids, out);
  }
  return absl::OkStatus();
}

absl::Status RowTable::Push(const std::byte* ids, const std::byte* gradients,
                            size_t count) {
  ScratchLease scratch(count);
  RETURN_IF_ERROR(Sort(ids, count, scratch->ids));
  const bool all_stripes =
      optimizer().other_rows() != Optimizer::OtherRows::kUntouched;
  absl::ReaderMutexLock lock(&snapshot_mu_);
  const int64_t iterations = updates_.fetch_add(1);
  const size_t first = FirstStripe();
  for (size_t i = 0; i < kRowStripes; ++i) {
    const size_t stripe = (first + i) % kRowStripes;
    DistinctRows& distinct = scratch->distinct;
    distinct.Assign(scratch->ids.run(stripe));
    if (distinct.rows().size() == 0 && !all_stripes) continue;
    stripes_[stripe]->Push(iterations, distinct.rows(), ids,
                           distinct.Sum(gradients, options_.width));
  }
  return absl::OkStatus();
}

absl::Status RowTable::Insert(const RowBatch& batch) {
  const size_t floats = rules_.layout.floats;
  if (batch.rows.size() != batch.ids.size() * floats) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table ", name(), ": ", batch.ids.size(), " rows of ", floats,
        " float32 can't be in an array of ", batch.rows.size()));
  }
  const auto* const ids = reinterpret_cast<const std::byte*>(batch.ids.data());
  ScratchLease scratch(batch.ids.size());
  RETURN_IF_ERROR(Sort(ids, batch.ids.size(), scratch->ids));
  for (size_t s = 0; s < kRowStripes; ++s) {
    RETURN_IF_ERROR(
        stripes_[s]->Insert(scratch->ids.run(s), ids, batch.rows.data()))
        << "table " << name();
  }
  AdvanceTo(batch.updates);
  return absl::OkStatus();
}

RowSnapshot RowTable::TakeSnapshot() const {
  std::vector<RowSnapshot::Piece> pieces;
  pieces.reserve(rows() / rules_.layout.rows_per_block() + 2 * kRowStripes);
  absl::MutexLock lock(&snapshot_mu_);
  for (const auto& stripe : stripes_) stripe->AddTo(pieces);
  return RowSnapshot(name(), updates(), rules_.layout, arena_,
                     std::move(pieces));
}

void RowTable::AdvanceTo(int64_t updates) {
  int64_t now = updates_.load();
  while (now < updates && !updates_.compare_exchange_weak(now, updates)) {
  }
}

size_t RowTable::rows() const {
  size_t rows = 0;
  for (const auto& stripe : stripes_) rows += stripe->rows();
  return rows;
}

absl::Status RowTable::Sort(const std::byte* ids, size_t count,
                            StripedIds& sorted) const {
  if (count > kMaxIds) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table ", name(), ": ", count, " ids are too many for one request"));
  }
  sorted.Assign(ids, count);
  const size_t row_bytes = rules_.bytes_per_row();
  const size_t free = rules_.memory->free_bytes();
  // Ids that come twice count twice: near the limit, that is.
  if (count <= free / row_bytes) return absl::OkStatus();
  size_t missing = 0;
  for (size_t s = 0; s < kRowStripes; ++s) {
    missing += stripes_[s]->CountMissing(sorted.run(s));
  }
  if (missing <= free / row_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "table ", name(), ": ", missing, " more rows of ", row_bytes,
      " bytes don't fit: all tables have ", rules_.memory->taken_bytes(),
      " of ", rules_.memory->limit_bytes(),
      " bytes; use more ps, or raise --memory_limit_bytes"));
}

size_t RowTable::FirstStripe() const {
  constexpr size_t kStride = kRowStripes / 2 + 5;
  return requests_.fetch_add(1, std::memory_order_relaxed) * kStride;
}

}  // namespace parasol
