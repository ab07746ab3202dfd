#include "coordinator/layout.h"

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "cluster/job/strategy.h"
#include "cluster/placement/placement.h"
#include "ml/optimizer/assigned/optimizer_of.h"
#include "ml/optimizer/optimizer.h"

namespace parasol {
namespace {

// FNV-1a over numbers of 8 bytes and strings with their lengths, so that no two
// different lists are the same bytes.
class Fingerprint {
 public:
  void Add(uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8) {
      AddByte(static_cast<uint8_t>(number >> shift));
    }
  }
  void Add(absl::string_view text) {
    Add(uint64_t{text.size()});
    for (const char c : text) AddByte(static_cast<uint8_t>(c));
  }

  // 0 means that there is no layout.
  uint64_t value() const { return value_ == 0 ? 1 : value_; }

 private:
  void AddByte(uint8_t byte) {
    value_ = (value_ ^ byte) * uint64_t{0x100000001b3};
  }

  uint64_t value_ = 0xcbf29ce484222325;
};

absl::Status AddSlots(
    const absl::StatusOr<std::unique_ptr<const Optimizer>>& optimizer,
    Fingerprint& fingerprint) {
  RETURN_IF_ERROR(optimizer.status());
  const std::vector<std::string>& slots = (*optimizer)->slot_names();
  fingerprint.Add(uint64_t{slots.size()});
  for (const std::string& slot : slots) fingerprint.Add(slot);
  return absl::OkStatus();
}

absl::Status AddPart(const wire::PartSpec& part, const job::Optimizer& of_job,
                     Fingerprint& fingerprint) {
  fingerprint.Add(uint64_t{part.id()});
  fingerprint.Add(part.variable());
  fingerprint.Add(static_cast<uint64_t>(part.variable_shape_size()));
  for (const int64_t size : part.variable_shape()) {
    fingerprint.Add(static_cast<uint64_t>(size));
  }
  fingerprint.Add(static_cast<uint64_t>(part.first_element()));
  fingerprint.Add(static_cast<uint64_t>(part.elements()));
  // Workers send the gradients of what is not trained in another form.
  fingerprint.Add(uint64_t{!IsTrained(part)});
  // And none of what is frozen.
  if (part.frozen()) fingerprint.Add("frozen");
  return AddSlots(
      MakeVariableOptimizer(part.has_optimizer() ? part.optimizer() : of_job),
      fingerprint);
}

absl::Status AddTable(const wire::TableSpec& table,
                      const job::Optimizer& of_job, Fingerprint& fingerprint) {
  fingerprint.Add(uint64_t{table.id()});
  fingerprint.Add(table.name());
  fingerprint.Add(uint64_t{table.width()});
  // What a row has beside its elements, and whether pushes have counts.
  if (table.admission().min_count() > 1) fingerprint.Add("counts");
  if (table.eviction().idle_steps() > 0) fingerprint.Add("ages");
  if (table.eviction().max_rows() > 0) fingerprint.Add("order");
  // Where its ps keep it: they load it when that changes.
  if (table.has_tier()) fingerprint.Add("tier");
  if (table.bfloat16()) fingerprint.Add("bfloat16");
  return AddSlots(
      MakeOptimizer(table.has_optimizer() ? table.optimizer() : of_job),
      fingerprint);
}

}  // namespace

absl::StatusOr<uint64_t> LayoutOf(
    const job::Job& job, const std::vector<ShardBoard::Shard>& shards) {
  Fingerprint fingerprint;
  fingerprint.Add(uint64_t{shards.size()});
  for (const ShardBoard::Shard& shard : shards) {
    fingerprint.Add(static_cast<uint64_t>(shard.ps_index));
    fingerprint.Add(uint64_t{shard.parts.size()});
    for (const wire::PartSpec& part : shard.parts) {
      RETURN_IF_ERROR(AddPart(part, job.optimizer(), fingerprint));
    }
    fingerprint.Add(uint64_t{shard.tables.size()});
    for (const wire::TableSpec& table : shard.tables) {
      RETURN_IF_ERROR(AddTable(table, job.optimizer(), fingerprint));
    }
  }
  const std::optional<wire::SyncSpec> sync = SyncSpecOf(job);
  fingerprint.Add(uint64_t{sync.has_value()});
  if (sync.has_value()) {
    fingerprint.Add(static_cast<uint64_t>(sync->replicas_to_aggregate()));
    fingerprint.Add(static_cast<uint64_t>(sync->total_replicas()));
  }
  return fingerprint.value();
}

std::optional<wire::SyncSpec> SyncSpecOf(const job::Job& job) {
  if (!HasTablesInStep(job)) return std::nullopt;
  const job::Synchronous& mode = job.parameter_server().synchronous();
  wire::SyncSpec sync;
  sync.set_replicas_to_aggregate(mode.replicas_to_aggregate());
  sync.set_total_replicas(mode.total_replicas());
  return sync;
}

}  // namespace parasol
