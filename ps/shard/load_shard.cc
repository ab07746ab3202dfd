#include "ps/shard/load_shard.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "base/log.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "cluster/rows/row_checkpoint.h"
#include "cluster/rows/row_memory.h"
#include "cluster/rows/row_table.h"
#include "cluster/rows/row_tier.h"
#include "ml/initializer/initializer.h"
#include "ml/optimizer/assigned/optimizer_of.h"
#include "ml/optimizer/optimizer.h"
#include "ps/dense/dense_parts.h"
#include "ps/dense/part_layout.h"
#include "ps/dense/part_optimizers.h"
#include "ps/shard/dedup_window.h"
#include "ps/sparse/sparse_table.h"
#include "ps/sparse/table_metrics.h"
#include "ps/step/training_rules.h"
#include "storage/checkpoint_reader.h"
#include "storage/shard_entry.h"
#include "storage/tier/tier_file.h"

namespace parasol {
namespace {

// Far more than a cluster has.
constexpr uint32_t kMaxShards = 1 << 20;
constexpr int32_t kMaxReplicas = 1 << 20;
constexpr int64_t kMostUpdates = int64_t{1} << 62;

absl::StatusOr<std::unique_ptr<DenseParts>> InitialDense(
    const wire::LoadRequest& request, PartLayout layout,
    const PartOptimizers& optimizers, const TrainingRules& rules) {
  return DenseParts::Create(
      std::move(layout), optimizers, rules,
      [&](const wire::PartSpec& part, int array, int64_t first,
          absl::Span<float> out) -> absl::StatusOr<int64_t> {
        if (array == kValueArray) {
          RETURN_IF_ERROR(Initialize(part.initializer(), request.seed(),
                                     part.variable(), part.variable_shape(),
                                     first, out));
        } else {
          std::fill(out.begin(), out.end(),
                    optimizers.of(part.id()).InitialSlotValue(array - 1));
        }
        return 0;
      });
}

// Checks that `part` can be restored from `saved`, the manifest's variable of
// the same name.
absl::Status CheckVariable(const durable::CheckpointVariable& saved,
                           const wire::PartSpec& part,
                           const Optimizer& optimizer) {
  if (!std::equal(saved.shape().begin(), saved.shape().end(),
                  part.variable_shape().begin(), part.variable_shape().end())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", part.variable(), "\" has shape ", ShapeText(saved.shape()),
        ", the job has ", ShapeText(part.variable_shape())));
  }
  const std::vector<std::string>& slots = optimizer.slot_names();
  if (!std::equal(saved.slot().begin(), saved.slot().end(), slots.begin(),
                  slots.end())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", part.variable(), "\" has slots [",
        absl::StrJoin(saved.slot(), ", "), "], its optimizer has [",
        absl::StrJoin(slots, ", "), "]"));
  }
  return absl::OkStatus();
}

absl::Status CheckManifest(const durable::CheckpointManifest& manifest,
                           const wire::LoadRequest& request,
                           const PartOptimizers& optimizers) {
  if (manifest.run_id() != request.run_id()) {
    return absl::InvalidArgumentError(
        absl::StrCat("belongs to run ", manifest.run_id(),
                     ", but the chief loads run ", request.run_id()));
  }
  std::map<std::string, const durable::CheckpointVariable*> saved;
  for (const durable::CheckpointVariable& variable : manifest.variable()) {
    saved[variable.name()] = &variable;
  }
  for (const wire::PartSpec& part : request.part()) {
    const auto variable = saved.find(part.variable());
    if (variable == saved.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("has no variable \"", part.variable(), "\" of the job"));
    }
    RETURN_IF_ERROR(
        CheckVariable(*variable->second, part, optimizers.of(part.id())));
  }
  return absl::OkStatus();
}

absl::StatusOr<DedupWindows> ReadWindows(const CheckpointReader& checkpoint,
                                         const wire::LoadRequest& request) {
  ASSIGN_OR_RETURN(const std::vector<DedupEntry> entries,
                   checkpoint.ReadDedup(request.shard(), request.num_shards()));
  DedupWindows windows;
  for (const DedupEntry& entry : entries) {
    ASSIGN_OR_RETURN(windows[entry.worker_incarnation],
                     DedupWindow::Parse(entry.window));
  }
  return windows;
}

absl::StatusOr<std::unique_ptr<DenseParts>> RestoredDense(
    const CheckpointReader& checkpoint, PartLayout layout,
    const PartOptimizers& optimizers, const TrainingRules& rules) {
  return DenseParts::Create(
      std::move(layout), optimizers, rules,
      [&checkpoint](const wire::PartSpec& part, int array, int64_t first,
                    absl::Span<float> out) {
        return checkpoint.ReadElements(part.variable(), array, first, out);
      });
}

job::Optimizer RowOptimizerOf(const wire::TableSpec& table,
                              const wire::LoadRequest& request) {
  return WithRateTimes(
      table.has_learning_rate_multiplier() ? table.learning_rate_multiplier()
                                           : 1,
      table.has_optimizer() ? table.optimizer() : request.optimizer());
}

// Not /tmp, which often is in memory.
std::string TierDirectory(const LoadLimits& limits) {
  if (!limits.tier_directory.empty()) return limits.tier_directory;
  const char* const temporary = std::getenv("TMPDIR");
  return temporary == nullptr || *temporary == 0 ? "/var/tmp" : temporary;
}

absl::StatusOr<RowTierOptions> TierOf(const wire::TableSpec& table,
                                      const LoadLimits& limits) {
  if (!table.has_tier()) return RowTierOptions();
  ASSIGN_OR_RETURN(std::unique_ptr<TierFile> file,
                   OpenTierFile(TierDirectory(limits)), _ << "--tier_dir");
  return RowTierOptions{.file = std::move(file),
                        .memory_bytes = static_cast<size_t>(
                            std::max<int64_t>(table.tier().memory_bytes(), 0)),
                        .on_failure = limits.on_tier_failure};
}

// The tiers' memory has to fit beside each other.
absl::Status CheckTiers(const wire::LoadRequest& request, size_t limit_bytes) {
  size_t sum = 0;
  for (const wire::TableSpec& table : request.table()) {
    const int64_t bytes = table.tier().memory_bytes();
    if (bytes <= 0) continue;
    if (static_cast<uint64_t>(bytes) > limit_bytes - sum) {
      return absl::InvalidArgumentError(absl::StrCat(
          "table \"", table.name(), "\": tier.memory_bytes is ", bytes,
          ", more than the ", limit_bytes - sum,
          " bytes that --memory_limit_bytes leaves beside what comes before "
          "it: lower it"));
    }
    sum += bytes;
  }
  return absl::OkStatus();
}

// The sparse tables without their rows.
absl::StatusOr<std::vector<std::unique_ptr<RowTable>>> EmptyTables(
    const wire::LoadRequest& request, const std::shared_ptr<RowMemory>& memory,
    const LoadLimits& limits) {
  RETURN_IF_ERROR(CheckTiers(request, memory->limit_bytes()));
  std::vector<std::unique_ptr<RowTable>> tables;
  std::set<std::string> names;
  for (const wire::TableSpec& spec : request.table()) {
    if (spec.id() != tables.size() || !names.insert(spec.name()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("table \"", spec.name(), "\" has id ", spec.id(),
                       ", not ", tables.size(), ", or its name appears twice"));
    }
    ASSIGN_OR_RETURN(std::unique_ptr<const Optimizer> optimizer,
                     MakeOptimizer(RowOptimizerOf(spec, request)),
                     _ << "table \"" << spec.name() << "\"");
    ASSIGN_OR_RETURN(RowTierOptions tier, TierOf(spec, limits),
                     _ << "table \"" << spec.name() << "\"");
    ASSIGN_OR_RETURN(
        std::unique_ptr<RowTable> table,
        RowTable::Create(
            {.name = spec.name(),
             .width = spec.width(),
             .initializer = spec.initializer(),
             .seed = request.seed(),
             .memory = memory,
             .helpers = limits.helpers,
             .bounds = BoundsOf(spec.admission(), spec.eviction(),
                                request.num_shards()),
             .tier = std::move(tier),
             .values = spec.bfloat16() ? job::SparseTable::BFLOAT16
                                       : job::SparseTable::FLOAT32},
            std::move(optimizer)),
        _ << "table \"" << spec.name() << "\"");
    tables.push_back(std::move(table));
  }
  return tables;
}

absl::Status CheckNumbers(const wire::LoadRequest& request) {
  if (request.shard() >= std::max(1u, request.num_shards()) ||
      request.num_shards() > kMaxShards) {
    return absl::InvalidArgumentError(
        absl::StrCat("the load request is for shard ", request.shard(), " of ",
                     request.num_shards()));
  }
  if (!wire::LoadRequest::Journal_IsValid(request.journal())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the load request asks for a journal of kind ", request.journal(),
        ", which this ps does not know: have chief and ps of one version"));
  }
  const wire::SyncSpec& sync = request.sync();
  if (!request.has_sync() ||
      (sync.replicas_to_aggregate() > 0 &&
       sync.total_replicas() >= sync.replicas_to_aggregate() &&
       sync.total_replicas() <= kMaxReplicas)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the load request aggregates ", sync.replicas_to_aggregate(),
                   " of ", sync.total_replicas(), " replicas"));
}

// Checks what Initialize() would refuse, without its arrays.
absl::Status CheckInitializers(const wire::LoadRequest& request) {
  if (!request.checkpoint().empty()) return absl::OkStatus();
  for (const wire::PartSpec& part : request.part()) {
    RETURN_IF_ERROR(Initialize(part.initializer(), request.seed(),
                               part.variable(), part.variable_shape(),
                               /*first=*/0, /*out=*/{}));
  }
  return absl::OkStatus();
}

// Returns the bytes of the chunks in use: their values and slots, and in
// synchronous training the sum of a step's gradients, or the values before it.
absl::StatusOr<uint64_t> DenseBytes(const wire::LoadRequest& request,
                                    const PartLayout& layout,
                                    const PartOptimizers& optimizers,
                                    uint64_t limit) {
  ASSIGN_OR_RETURN(const uint64_t bytes, optimizers.CountBytes(layout, limit));
  if (!request.has_sync()) return bytes;
  const uint64_t of_step = layout.elements() * sizeof(float);
  if (of_step <= limit - bytes) return bytes + of_step;
  return absl::ResourceExhaustedError(absl::StrCat(
      "values and slots of ", bytes,
      " bytes and the gradients of "
      "a synchronous step, of ",
      of_step, " bytes, are more than the memory limit of ", limit));
}

std::optional<wire::SyncSpec> SyncOf(const wire::LoadRequest& request) {
  if (!request.has_sync()) return std::nullopt;
  return request.sync();
}

}  // namespace

ShardLoad::ShardLoad(const wire::LoadRequest& request,
                     const TrainingRules& rules, PartLayout layout,
                     PartOptimizers optimizers,
                     std::vector<std::unique_ptr<RowTable>> rows)
    : request_(request),
      rules_(rules),
      layout_(std::move(layout)),
      optimizers_(std::move(optimizers)),
      rows_(std::move(rows)) {}

absl::StatusOr<ShardLoad> ShardLoad::Create(const wire::LoadRequest& request,
                                            const LoadLimits& limits) {
  RETURN_IF_ERROR(CheckNumbers(request));
  RETURN_IF_ERROR(CheckInitializers(request));
  ASSIGN_OR_RETURN(
      PartLayout layout,
      PartLayout::Create(request.part(), limits.memory_bytes / sizeof(float)),
      _ << "memory limit of " << limits.memory_bytes << " bytes");
  ASSIGN_OR_RETURN(PartOptimizers optimizers,
                   PartOptimizers::Create(request.optimizer(), layout));
  ASSIGN_OR_RETURN(
      const uint64_t dense_bytes,
      DenseBytes(request, layout, optimizers, limits.memory_bytes));
  const auto memory =
      std::make_shared<RowMemory>(limits.memory_bytes - dense_bytes);
  const TrainingRules rules{
      .replicas_to_aggregate =
          static_cast<size_t>(request.sync().replicas_to_aggregate()),
      .origin = request.checkpoint().empty() ? StepState::Origin::kInitial
                                             : StepState::Origin::kRestored,
      .non_finite = limits.non_finite,
      .memory = memory};
  ASSIGN_OR_RETURN(std::vector<std::unique_ptr<RowTable>> rows,
                   EmptyTables(request, memory, limits));
  ShardLoad load(request, rules, std::move(layout), std::move(optimizers),
                 std::move(rows));
  load.journal_directory_ = limits.journal_directory;
  load.metrics_ = limits.metrics;
  return load;
}

durable::CheckpointManifest ShardLoad::Manifest() const {
  durable::CheckpointManifest manifest;
  manifest.set_run_id(request_.run_id());
  // No table has had more updates.
  manifest.set_global_step(kMostUpdates);
  for (const wire::PartSpec& part : request_.part()) {
    durable::CheckpointVariable& variable = *manifest.add_variable();
    variable.set_name(part.variable());
    *variable.mutable_shape() = part.variable_shape();
    const std::vector<std::string>& slots =
        optimizers_.of(part.id()).slot_names();
    variable.mutable_slot()->Assign(slots.begin(), slots.end());
  }
  for (const std::unique_ptr<RowTable>& rows : rows_) {
    *manifest.add_table() = rows->form();
  }
  return manifest;
}

absl::Status ShardLoad::Open() {
  if (request_.checkpoint().empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(checkpoint_, CheckpointReader::OpenForShard(
                                    request_.checkpoint(),
                                    {request_.shard(), request_.num_shards()}));
  RETURN_IF_ERROR(CheckManifest(checkpoint_->manifest(), request_, optimizers_))
      << "checkpoint " << request_.checkpoint();
  for (const std::unique_ptr<RowTable>& table : rows_) {
    RETURN_IF_ERROR(CheckTable(checkpoint_->manifest(), *table))
        << "checkpoint " << request_.checkpoint();
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<DenseParts>> ShardLoad::LoadDense() {
  if (checkpoint_ == nullptr) {
    return InitialDense(request_, std::move(layout_), optimizers_, rules_);
  }
  return RestoredDense(*checkpoint_, std::move(layout_), optimizers_, rules_);
}

absl::StatusOr<std::unique_ptr<ParameterShard>> ShardLoad::Run() {
  const std::string source =
      checkpoint_ == nullptr
          ? "initial values"
          : absl::StrCat("checkpoint ", request_.checkpoint());
  ASSIGN_OR_RETURN(std::unique_ptr<DenseParts> dense, LoadDense(), _ << source);
  DedupWindows windows;
  if (checkpoint_ != nullptr) {
    for (const std::unique_ptr<RowTable>& table : rows_) {
      RETURN_IF_ERROR(ReadRows(*checkpoint_, request_.shard(),
                               request_.num_shards(), *table))
          << source;
      // An update is a step from now on.
      if (request_.has_sync()) {
        table->CountAtMost(checkpoint_->manifest().global_step());
      }
    }
    ASSIGN_OR_RETURN(windows, ReadWindows(*checkpoint_, request_), _ << source);
    RETURN_IF_ERROR(checkpoint_->Verify());
    LOG(INFO) << "read " << checkpoint_->bytes_read() << " bytes of " << source;
  }
  std::vector<std::unique_ptr<SparseTable>> tables;
  for (std::unique_ptr<RowTable>& table : rows_) {
    auto metrics = metrics_ == nullptr ? nullptr
                                       : std::make_unique<TableMetrics>(
                                             *metrics_, table->name());
    tables.push_back(std::make_unique<SparseTable>(std::move(table), rules_,
                                                   std::move(metrics)));
  }
  auto shard = std::make_unique<ParameterShard>(
      std::move(dense), std::move(tables), SyncOf(request_), windows);
  RETURN_IF_ERROR(RestoreFromJournal(*shard, std::nullopt)) << source;
  return shard;
}

absl::Status ShardLoad::GoOnWithJournal(ParameterShard& shard,
                                        const JournalEnd& in_journal) {
  return RestoreFromJournal(shard, in_journal);
}

absl::Status ShardLoad::RestoreFromJournal(
    ParameterShard& shard, const std::optional<JournalEnd>& of_standby) {
  if (request_.journal() == wire::LoadRequest::NONE) return absl::OkStatus();
  std::optional<JournalPlace> place;
  if (checkpoint_ != nullptr) {
    ASSIGN_OR_RETURN(
        place, checkpoint_->JournalOf(request_.shard(), request_.num_shards()));
  }
  absl::StatusOr<RestoredJournal> restored =
      RestoreJournal(request_, journal_directory_, place, of_standby, shard);
  // An older checkpoint would not help, as NotFound and DataLoss say.
  if (absl::IsNotFound(restored.status())) {
    return absl::UnavailableError(restored.status().message());
  }
  RETURN_IF_ERROR(restored.status());
  restored_ = *std::move(restored);
  // The chief knows that the checkpoint has all: whoever has handed over may
  // have had its journal elsewhere.
  const bool has_all =
      request_.has_standby() && request_.standby().number() == 0;
  if (has_all && restored_.is_missing) {
    LOG(INFO) << "a new journal begins, and helps from the next checkpoint on: "
              << restored_.lost;
    restored_.lost.clear();
  }
  return absl::OkStatus();
}

absl::Status ShardLoad::GiveRulesTo(ParameterShard& shard) {
  return shard.TakeRules(optimizers_, rows_, request_, rules_.non_finite);
}

absl::StatusOr<std::unique_ptr<ParameterShard>> LoadShard(
    const wire::LoadRequest& request, const LoadLimits& limits) {
  ASSIGN_OR_RETURN(ShardLoad load, ShardLoad::Create(request, limits));
  RETURN_IF_ERROR(load.Open());
  return load.Run();
}

}  // namespace parasol
