#include "cluster/rows/row_table.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/row_hash.h"
#include "base/status_macros.h"
#include "cluster/rows/distinct_rows.h"
#include "cluster/rows/row_form.h"
#include "cluster/rows/widened_rows.h"

namespace parasol {
namespace {

constexpr size_t kMaxWidth = 65536;

// Positions are 32 bits wide.
constexpr size_t kMaxIds = UINT32_MAX;

// An index grows somewhere between these loads, each stripe's at another one:
// if all grew together, one request would pay for it.
constexpr double kMinIndexLoad = .5;
constexpr double kMaxIndexLoad = .75;

// Stripes that one thread takes at once.
constexpr size_t kStripesPerPart = 2;
static_assert(kRowStripes % kStripesPerPart == 0);

// The bytes of a request's rows from which on helpers are asked: the work of
// about 50 µs, several times what waking a thread takes.
constexpr size_t kSharedRequestBytes = 256 << 10;

// Returns the most rows of stripe `stripe`, of `rows` of all; 0: any number.
size_t RowsOfStripe(int64_t rows, size_t stripe) {
  return rows / kRowStripes + (stripe < rows % kRowStripes);
}

// Memory that a request needs beside its rows; a thread keeps it from one
// request to the next, unless the request was uncommonly large.
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
  // Returns the request's ids.
  StripedIds& ids() { return scratch_.ids; }
  // Returns the memory for the distinct rows of a stripe: each thread that
  // works on the request has its own.
  DistinctRows& distinct() const { return scratch_.distinct; }

 private:
  static thread_local Scratch scratch_;
  const bool keep_;
};
thread_local Scratch ScratchLease::scratch_;

}  // namespace

// Rows of a request that were on the disk, and which stripe has which.
struct RowTable::TierFetch {
  FetchedRange of(size_t stripe) const {
    if (!rows.has_value()) return {};
    return {.rows = &*rows, .begin = begin[stripe], .end = begin[stripe + 1]};
  }

  std::optional<FetchedRows> rows;
  std::array<size_t, kRowStripes + 1> begin = {};
};

absl::StatusOr<std::unique_ptr<RowTable>> RowTable::Create(
    Options options, std::unique_ptr<const Optimizer> optimizer) {
  if (options.width < 1 || options.width > kMaxWidth) {
    return absl::InvalidArgumentError(
        absl::StrCat("table ", options.name, ": its width is ", options.width,
                     ", not 1 to ", kMaxWidth));
  }
  RETURN_IF_ERROR(optimizer->CheckCode())
      << "table " << options.name << ": optimizer";
  if (optimizer->needs_whole_variable()) {
    return absl::InvalidArgumentError(
        absl::StrCat("table ", options.name,
                     ": its optimizer needs whole variables, and a table has "
                     "rows; give it another one"));
  }
  ASSIGN_OR_RETURN(
      RowInitializer initializer,
      RowInitializer::Create(options.initializer, options.seed, options.name,
                             options.width, options.values));
  const int64_t max_rows = options.bounds.max_rows;
  if (max_rows != 0 && max_rows < static_cast<int64_t>(kRowStripes)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table ", options.name, ": eviction.max_rows leaves this shard ",
        max_rows, " rows, but it needs ", kRowStripes,
        " or more: raise it, or use fewer ps"));
  }
  const RowLayout layout(options.width, optimizer->FloatsOfRow(options.width),
                         options.bounds.times(),
                         options.values == job::SparseTable::BFLOAT16);
  if (options.memory == nullptr) options.memory = std::make_shared<RowMemory>();
  std::shared_ptr<RowTier> tier;
  if (options.tier.file != nullptr) {
    RETURN_IF_ERROR(
        RowTier::Check(options.name, options.tier, *optimizer, layout));
    tier = std::make_shared<RowTier>(options.name, options.tier, layout);
  }
  RowRules rules = {.layout = layout,
                    .initializer = initializer,
                    .optimizer = std::move(optimizer),
                    .memory = options.memory,
                    .bounds = options.bounds,
                    .totals = std::make_shared<RowTotals>(),
                    .tier = std::move(tier),
                    .rounding_key = RoundingKeyOf(options.seed, options.name)};
  return std::unique_ptr<RowTable>(
      new RowTable(std::move(options), std::move(rules)));
}

RowTable::RowTable(Options options, RowRules rules)
    : options_(std::move(options)),
      layout_(rules.layout),
      form_(RowForm(options_.name, options_.width, *rules.optimizer)),
      arena_(std::make_shared<RowArena>()),
      totals_(rules.totals),
      tier_(rules.tier),
      rules_(std::make_shared<const RowRules>(std::move(rules))) {
  for (size_t s = 0; s < kRowStripes; ++s) {
    const double load =
        kMinIndexLoad + (kMaxIndexLoad - kMinIndexLoad) * s / kRowStripes;
    stripes_.push_back(std::make_unique<RowStripe>(
        rules_, *arena_, load, RowsOfStripe(options_.bounds.max_rows, s)));
  }
  if (tier_ == nullptr) return;
  options_.memory->Take(RowTier::kSegmentsInMemory *
                        options_.tier.segment_bytes);
  tier_->Start([this](LogPlace place, const LoggedRow& row) {
    stripes_[StripeOf(RowHash(row.id))]->MoveOnDisk(place, row);
  });
}

RowTable::~RowTable() {
  if (tier_ != nullptr) tier_->Stop();
}

absl::Status RowTable::Pull(const std::byte* ids, size_t count, float* out,
                            std::optional<int64_t> updates) {
  ScratchLease scratch(count);
  StripedIds& sorted = scratch.ids();
  RETURN_IF_ERROR(Sort(ids, count, sorted));
  if (!options_.bounds.any()) {
    RETURN_IF_ERROR(CheckRoom(sorted, /*makes_room=*/false));
  }
  TierFetch fetch;
  RETURN_IF_ERROR(Fetch(sorted, fetch));
  // Rows that move between memory and disk must not pass a snapshot.
  std::optional<absl::ReaderMutexLock> no_snapshot;
  if (tier_ != nullptr) no_snapshot.emplace(&snapshot_mu_);
  const int64_t at = updates.value_or(this->updates());
  // Alone: a large pull comes as several requests, on several threads.
  const size_t first = FirstStripe();
  for (size_t i = 0; i < kRowStripes; ++i) {
    const size_t stripe = (first + i) % kRowStripes;
    const StripedIds::Run run = sorted.run(stripe);
    if (run.size() == 0) continue;
    const absl::Status status =
        stripes_[stripe]->Pull(at, run, ids, out, fetch.of(stripe));
    if (!status.ok()) return tier_->Fail(status);
  }
  return absl::OkStatus();
}

absl::Status RowTable::Push(const std::byte* ids, const std::byte* gradients,
                            size_t count, float* out, const std::byte* counts) {
  ScratchLease scratch(count);
  StripedIds& sorted = scratch.ids();
  RETURN_IF_ERROR(Sort(ids, count, sorted));
  RETURN_IF_ERROR(CheckRoom(sorted, /*makes_room=*/true));
  TierFetch fetch;
  RETURN_IF_ERROR(Fetch(sorted, fetch));
  absl::ReaderMutexLock lock(&snapshot_mu_);
  // Rows of any stripe may have to change, or to go.
  const bool all_stripes =
      rules_->optimizer->other_rows() != Optimizer::OtherRows::kUntouched ||
      rules_->bounds.idle_steps > 0;
  const bool has_counts = rules_->bounds.counts();
  const int64_t iterations = updates_.fetch_add(1);
  ForEachStripe(count, [&](size_t stripe) {
    DistinctRows& distinct = scratch.distinct();
    distinct.Assign(sorted.run(stripe));
    if (distinct.rows().size() == 0 && !all_stripes) return;
    const RowStripe::Gradients push = {
        .run = distinct.rows(),
        .gradients = distinct.Sum(gradients, options_.width),
        .counts = has_counts ? distinct.Counts(counts)
                             : absl::Span<const uint32_t>()};
    const absl::Status status =
        stripes_[stripe]->Push(iterations, push, ids, out, fetch.of(stripe));
    // The update can't be made as a whole any more.
    if (!status.ok()) tier_->Fail(status).IgnoreError();
    if (out != nullptr) distinct.CopyToRepeated(options_.width, out);
  });
  return tier_ == nullptr ? absl::OkStatus() : tier_->status();
}

absl::Status RowTable::Insert(const RowBatch& batch) {
  const size_t floats = layout_.floats;
  if (batch.rows.size() != batch.ids.size() * floats) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table ", name(), ": ", batch.ids.size(), " rows of ", floats,
        " float32 can't be in an array of ", batch.rows.size()));
  }
  const auto* const ids = reinterpret_cast<const std::byte*>(batch.ids.data());
  ScratchLease scratch(batch.ids.size());
  RETURN_IF_ERROR(Sort(ids, batch.ids.size(), scratch.ids()));
  RETURN_IF_ERROR(CheckRoom(scratch.ids(), /*makes_room=*/false));
  if (tier_ != nullptr) {
    RETURN_IF_ERROR(tier_->AwaitAllRoom());
  }
  const int64_t* const touched =
      batch.touched.empty() ? nullptr : batch.touched.data();
  for (size_t s = 0; s < kRowStripes; ++s) {
    RETURN_IF_ERROR(stripes_[s]->Insert(
        scratch.ids().run(s), ids, batch.rows.data(), touched, batch.updates))
        << "table " << name();
  }
  AdvanceTo(batch.updates);
  return absl::OkStatus();
}

void RowTable::InsertCounts(const CountBatch& batch) {
  for (size_t i = 0; i < batch.ids.size(); ++i) {
    const uint64_t hash = RowHash(batch.ids[i]);
    stripes_[StripeOf(hash)]->InsertCount(
        {.hash = hash,
         .count = batch.counts[i],
         .touched = batch.touched.empty() ? updates() : batch.touched[i]});
  }
}

void RowTable::EndInsertions() {
  for (const auto& stripe : stripes_) stripe->SortRows();
}

absl::Status RowTable::TakeRulesOf(const RowTable& other) {
  if (!HasSameRows(other.form(), form())) {
    return absl::InvalidArgumentError(
        absl::StrCat("table ", name(), " has rows of width ", width(),
                     " and slots ", SlotsText(form()), ", the new one ",
                     other.width(), " and ", SlotsText(other.form())));
  }
  const std::shared_ptr<const RowRules> others = other.rules();
  if (!others->bounds.HasFormOf(options_.bounds)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table ", name(),
        " would have an admission or an eviction of another kind"));
  }
  if (others->layout.bfloat16 != layout_.bfloat16) {
    return absl::InvalidArgumentError(
        absl::StrCat("table ", name(), " would have values of another form"));
  }
  const auto rules = std::make_shared<const RowRules>(
      RowRules{.layout = layout_,
               .initializer = others->initializer,
               .optimizer = others->optimizer,
               .memory = options_.memory,
               .bounds = others->bounds,
               .totals = totals_,
               .tier = tier_,
               .rounding_key = others->rounding_key});
  if (tier_ != nullptr) tier_->TakeMemoryOf(*other.tier_);
  absl::MutexLock no_push(&snapshot_mu_);
  rules_ = rules;
  for (size_t s = 0; s < kRowStripes; ++s) {
    // What has gone by the rules before does not come back.
    stripes_[s]->FreeExpired(updates());
    stripes_[s]->UseRules(rules, RowsOfStripe(rules->bounds.max_rows, s));
  }
  return absl::OkStatus();
}

std::shared_ptr<const RowRules> RowTable::rules() const {
  absl::ReaderMutexLock lock(&snapshot_mu_);
  return rules_;
}

RowSnapshot RowTable::TakeSnapshot() const {
  RowStripe::Contents contents;
  contents.pieces.reserve(rows() / layout_.rows_per_block() + 2 * kRowStripes);
  absl::MutexLock lock(&snapshot_mu_);
  for (const auto& stripe : stripes_) stripe->AddTo(updates(), contents);
  return SnapshotOf(std::move(contents), /*changed_since=*/0);
}

RowSnapshot RowTable::SnapshotOf(RowStripe::Contents contents,
                                 uint32_t changed_since) const {
  if (tier_ != nullptr) {
    contents.on_disk = LogSnapshot(tier_->shared_log(), changed_since);
  }
  return RowSnapshot(name(), updates(), layout_, arena_, std::move(contents),
                     tier_);
}

RowSnapshot RowTable::TakeSnapshot(const SnapshotTurn& turn) {
  if (turn.number == 0) return TakeSnapshot();
  RowStripe::Contents contents;
  absl::MutexLock lock(&snapshot_mu_);
  RowStripe::Extent extent = RowStripe::Extent::kAll;
  uint32_t changed_since = 0;
  const uint32_t next_turn = turns_.newest + 1;
  if (turn.since != 0 && turn.since == newest_snapshot_) {
    extent = RowStripe::Extent::kSinceNewest;
    older_snapshot_ = newest_snapshot_;
    changed_since = turns_.older = turns_.newest;
  } else if (turn.since != 0 && turn.since == older_snapshot_) {
    extent = RowStripe::Extent::kSinceOlder;
    changed_since = turns_.older;
  } else {
    older_snapshot_ = turn.number;
    turns_.older = next_turn;
  }
  newest_snapshot_ = turn.number;
  turns_.newest = next_turn;
  for (const auto& stripe : stripes_) {
    stripe->AddMarkedTo(updates(), extent, turns_, contents);
  }
  return SnapshotOf(std::move(contents), changed_since);
}

bool RowTable::Marks(uint64_t number, bool frees_expired) {
  absl::MutexLock lock(&snapshot_mu_);
  if (number == 0 ||
      (number != newest_snapshot_ && number != older_snapshot_)) {
    return false;
  }
  return std::none_of(stripes_.begin(), stripes_.end(), [&](auto& stripe) {
    if (frees_expired) stripe->FreeExpired(updates());
    return stripe->has_lost_marks();
  });
}

void RowTable::AddTo(RowSample& sample) const {
  for (uint64_t stripe = 0; stripe < kRowStripes; ++stripe) {
    if (sample.IsFullBelow(stripe << (64 - kRowStripeBits))) return;
    stripes_[stripe]->AddTo(sample);
  }
}

void RowTable::CountAtMost(int64_t updates) {
  const int64_t before = updates_.load();
  if (before <= updates) return;
  for (const auto& stripe : stripes_) stripe->ClampTouched(before, updates);
  if (tier_ != nullptr) tier_->log().ClampTouched(updates);
  updates_ = updates;
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
  return absl::OkStatus();
}

absl::Status RowTable::CheckRoom(const StripedIds& sorted,
                                 bool makes_room) const {
  const size_t row_bytes = RowRules::BytesPerRow(layout_);
  const RowMemory& memory = *options_.memory;
  const size_t free = memory.free_bytes();
  // Ids that come twice count twice: near the limit, that is. So do ids that
  // get no row yet.
  const size_t room = RoomFor(free);
  if (sorted.size() <= room) return absl::OkStatus();
  const int64_t max_rows = makes_room ? rules()->bounds.max_rows : 0;
  size_t missing = 0;
  for (size_t s = 0; s < kRowStripes; ++s) {
    const size_t of_stripe = stripes_[s]->CountMissing(sorted.run(s));
    const size_t most = RowsOfStripe(max_rows, s);
    const size_t there = stripes_[s]->rows();
    missing += most == 0 ? of_stripe
                         : std::min(of_stripe, most - std::min(most, there));
  }
  if (missing <= room) return absl::OkStatus();
  std::string error =
      absl::StrCat("table ", name(), ": ", missing, " more rows of ", row_bytes,
                   " bytes don't fit: all tables have ", memory.taken_bytes(),
                   " of ", memory.limit_bytes(),
                   " bytes; use more ps, or raise --memory_limit_bytes");
  if (const int64_t bytes = totals_->count_bytes.load(); bytes > 0) {
    absl::StrAppend(&error, "; ", bytes,
                    " bytes are counts of ids without a row: set or lower "
                    "eviction.idle_steps");
  }
  return absl::ResourceExhaustedError(error);
}

// Of a table with a tier as many rows are in memory as have room there.
size_t RowTable::RoomFor(size_t free) const {
  const size_t row_bytes = RowRules::BytesPerRow(layout_);
  if (tier_ == nullptr) return free / row_bytes;
  const size_t most = tier_->rows_of_stripe() * kRowStripes;
  const size_t left = most - std::min(most, rows_in_memory());
  const size_t kept = std::min(free, left * row_bytes);
  return kept / row_bytes + (free - kept) / RowRules::BytesOnDisk(layout_);
}

// The numbers are not of one moment.
size_t RowTable::rows_in_memory() const {
  return std::max<int64_t>(0,
                           totals_->rows.load() - totals_->rows_on_disk.load());
}

absl::Status RowTable::Fetch(const StripedIds& sorted, TierFetch& fetch) const {
  if (tier_ == nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(tier_->AwaitRoom(rows_in_memory()));
  fetch.rows.emplace(tier_->shared_log());
  for (size_t s = 0; s < kRowStripes; ++s) {
    if (sorted.run(s).size() > 0) {
      stripes_[s]->AddOnDisk(sorted.run(s), *fetch.rows);
    }
    fetch.begin[s + 1] = fetch.rows->hashes.size();
  }
  const absl::Status read = fetch.rows->reads.Finish();
  if (!read.ok()) return tier_->Fail(read);
  totals_->lookups.fetch_add(sorted.size(), std::memory_order_relaxed);
  totals_->disk_reads.fetch_add(fetch.rows->reads.disk_reads(),
                                std::memory_order_relaxed);
  totals_->disk_bytes.store(tier_->log().file_bytes(),
                            std::memory_order_relaxed);
  return absl::OkStatus();
}

size_t RowTable::memory_bytes() const {
  const size_t bytes = arena_->allocated_bytes() +
                       totals_->count_bytes.load(std::memory_order_relaxed);
  if (tier_ == nullptr) return bytes;
  return bytes + totals_->place_bytes.load(std::memory_order_relaxed) +
         tier_->log().memory_bytes();
}

void RowTable::ForEachStripe(size_t count,
                             absl::FunctionRef<void(size_t)> visit) const {
  const size_t first = FirstStripe();
  const auto visit_part = [&](size_t part) {
    for (size_t i = 0; i < kStripesPerPart; ++i) {
      visit((first + part * kStripesPerPart + i) % kRowStripes);
    }
  };
  constexpr size_t kParts = kRowStripes / kStripesPerPart;
  const bool is_shared =
      options_.helpers != nullptr &&
      count * options_.width * sizeof(float) >= kSharedRequestBytes;
  if (is_shared) return options_.helpers->ForEach(kParts, visit_part);
  for (size_t part = 0; part < kParts; ++part) visit_part(part);
}

size_t RowTable::FirstStripe() const {
  constexpr size_t kStride = kRowStripes / 2 + 5;
  return requests_.fetch_add(1, std::memory_order_relaxed) * kStride;
}

}  // namespace parasol
