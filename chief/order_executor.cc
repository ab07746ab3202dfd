#include "chief/order_executor.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "chief/layout.h"
#include "cluster/checkpoint/store_checkpoint.h"

namespace parasol {
namespace {

constexpr absl::Duration kCancelInterval = absl::Milliseconds(100);
constexpr absl::Duration kLogInterval = absl::Seconds(10);

// Runs `work(i)` for each i < count, on as many threads; returns when all are
// done. Shards are few.
template <typename Work>
void ForEachAtOnce(size_t count, Work work) {
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < count; ++i) {
    threads.emplace_back([&work, i] { work(i); });
  }
}

bool IsUnreadable(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsDataLoss(status);
}

}  // namespace

OrderExecutor::OrderExecutor(const CoordinatorOptions& options,
                             std::vector<std::unique_ptr<PsClient>> clients,
                             CheckpointStore store, RecordPlaces record_places)
    : run_id_(options.run_id),
      layout_(options.layout),
      chief_epoch_(options.chief_epoch),
      max_to_keep_(options.job.checkpoint().max_to_keep()),
      clients_(std::move(clients)),
      store_(std::move(store)),
      record_places_(std::move(record_places)) {
  const std::optional<wire::SyncSpec> sync = SyncSpecOf(options.job);
  for (const ShardBoard::Shard& shard : options.shards) {
    names_.push_back(absl::StrCat("ps/", shard.ps_index));
    wire::LoadRequest& request = load_requests_.emplace_back();
    request.set_run_id(run_id_);
    request.set_seed(options.job.seed());
    *request.mutable_optimizer() = options.job.optimizer();
    request.mutable_part()->Assign(shard.parts.begin(), shard.parts.end());
    request.set_shard(load_requests_.size() - 1);
    request.set_num_shards(options.shards.size());
    request.mutable_table()->Assign(shard.tables.begin(), shard.tables.end());
    if (sync.has_value()) *request.mutable_sync() = *sync;
  }
}

wire::OrderHeader OrderExecutor::HeaderFor(uint64_t incarnation) const {
  wire::OrderHeader header;
  header.set_incarnation(incarnation);
  header.set_chief_epoch(chief_epoch_);
  header.set_layout(layout_);
  return header;
}

std::vector<absl::Status> OrderExecutor::Load(
    const Coordinator::LoadOrder& order) {
  std::vector<absl::Status> results(order.targets.size());
  if (record_places_ != nullptr) {
    const absl::Status recorded = record_places_(order.ps_epochs);
    if (!recorded.ok()) {
      std::fill(results.begin(), results.end(), recorded);
      return results;
    }
  }
  std::vector<std::string> sources = {""};  // initial values
  if (order.from_checkpoint) {
    absl::StatusOr<std::vector<std::string>> checkpoints = RunCheckpoints();
    if (!checkpoints.ok()) {
      std::fill(results.begin(), results.end(), checkpoints.status());
      return results;
    }
    sources = *std::move(checkpoints);
    std::fill(results.begin(), results.end(),
              absl::DataLossError(absl::StrCat("no checkpoint of run ", run_id_,
                                               " in ", store_.directory(),
                                               " can be read")));
  }
  std::vector<size_t> pending(order.targets.size());
  for (size_t i = 0; i < pending.size(); ++i) pending[i] = i;
  for (const std::string& source : sources) {
    ForEachAtOnce(pending.size(), [&](size_t i) {
      const Coordinator::LoadOrder::Target& target = order.targets[pending[i]];
      wire::LoadRequest request = load_requests_[target.shard];
      request.set_checkpoint(source);
      *request.mutable_order() = HeaderFor(target.incarnation);
      results[pending[i]] = clients_[target.shard]->Load(request).status();
    });
    std::erase_if(pending, [&](size_t i) { return !IsUnreadable(results[i]); });
    for (size_t i : pending) {
      LOG(WARNING) << "passing over a checkpoint: " << results[i].message();
    }
  }
  return results;
}

absl::StatusOr<std::vector<std::string>> OrderExecutor::RunCheckpoints() const {
  ASSIGN_OR_RETURN(std::vector<int64_t> steps, store_.ListSteps());
  std::reverse(steps.begin(), steps.end());
  std::vector<std::string> directories;
  for (int64_t step : steps) {
    auto manifest = store_.ReadManifest(step);
    if (!manifest.ok()) {
      LOG(WARNING) << "passing over a checkpoint: "
                   << manifest.status().message();
    } else if (manifest->run_id() == run_id_) {
      directories.push_back(store_.PathOf(step));
    }
  }
  return directories;
}

absl::StatusOr<int64_t> OrderExecutor::WriteCheckpoint(
    const Coordinator::CheckpointOrder& order, absl::Time now) {
  durable::CheckpointManifest manifest = order.manifest;
  manifest.set_created_unix_micros(absl::ToUnixMicros(now));
  int64_t step = manifest.global_step();
  // The shards wait between the cut and the snapshots: the directory is there
  // before.
  const auto snapshot =
      [&](const std::string& directory,
          durable::CheckpointManifest& files) -> absl::Status {
    if (order.at_one_step) {
      RETURN_IF_ERROR(ChooseCut(order, files));
      step = files.global_step();
    }
    return SnapshotShards(order, files, directory);
  };
  absl::Status written =
      StoreCheckpoint(store_, std::move(manifest), max_to_keep_, snapshot);
  awaits_workers_ = false;
  RETURN_IF_ERROR(written);
  return step;
}

absl::Status OrderExecutor::ChooseCut(const Coordinator::CheckpointOrder& order,
                                      durable::CheckpointManifest& manifest) {
  std::vector<absl::StatusOr<wire::PrepareSnapshotResponse>> shards(
      clients_.size(), absl::UnknownError("not asked"));
  ForEachAtOnce(clients_.size(), [&](size_t i) {
    wire::PrepareSnapshotRequest request;
    request.set_run_id(run_id_);
    *request.mutable_order() = HeaderFor(order.incarnations[i]);
    shards[i] = clients_[i]->PrepareSnapshot(request);
  });
  int64_t cut = manifest.global_step();
  for (size_t i = 0; i < shards.size(); ++i) {
    RETURN_IF_ERROR(shards[i].status()) << "cut of " << names_[i];
    cut = std::max(cut, shards[i]->max_updates());
  }
  const std::string behind =
      NamesOf([&](size_t i) { return shards[i]->min_updates() < cut; });
  if (!behind.empty() && !order.may_await) {
    return absl::UnavailableError(
        absl::StrCat("other shards have had ", cut, " steps, and ", behind,
                     " not all of them; no worker is there to complete them"));
  }
  awaits_workers_ = !behind.empty();
  manifest.set_global_step(cut);
  return absl::OkStatus();
}

absl::Status OrderExecutor::SnapshotShards(
    const Coordinator::CheckpointOrder& order,
    durable::CheckpointManifest& manifest, const std::string& directory) {
  std::vector<absl::Status> results(clients_.size());
  for (size_t i = 0; i < clients_.size(); ++i) manifest.add_file();
  absl::Mutex mu;
  std::vector<bool> finished(clients_.size());
  const auto all_finished = [&finished] {
    return std::count(finished.begin(), finished.end(), false) == 0;
  };
  const std::jthread log([&] {
    absl::MutexLock lock(&mu);
    while (!Clock::Real().AwaitWithTimeout(mu, absl::Condition(&all_finished), kLogInterval)) {
      LOG(INFO) << "checkpoint: waiting for "
                << NamesOf([&](size_t i) { return !finished[i]; });
    }
  });
  ForEachAtOnce(clients_.size(), [&](size_t i) {
    results[i] = SnapshotShard(order, i, directory, manifest);
    absl::MutexLock lock(&mu);
    finished[i] = true;
    // The others may await a step that cannot come without this shard. A call
    // that is about to start is cancelled the next time.
    while (order.at_one_step && !results[i].ok() && !all_finished()) {
      CancelAllCalls();
      Clock::Real().AwaitWithTimeout(mu, absl::Condition(&all_finished), kCancelInterval);
    }
  });
  // What the others were cancelled for comes first.
  absl::Status first;
  for (const absl::Status& status : results) {
    if (status.ok()) continue;
    if (first.ok() || absl::IsCancelled(first)) first = status;
  }
  return first;
}

absl::Status OrderExecutor::SnapshotShard(
    const Coordinator::CheckpointOrder& order, size_t shard,
    const std::string& directory, durable::CheckpointManifest& manifest) {
  durable::CheckpointFile& file = *manifest.mutable_file(shard);
  file.set_name(
      absl::StrFormat("shard-%05d-of-%05d.sst", shard, clients_.size()));
  wire::SnapshotRequest request;
  request.set_run_id(run_id_);
  request.set_directory(directory);
  request.set_file_name(file.name());
  *request.mutable_order() = HeaderFor(order.incarnations[shard]);
  if (order.at_one_step) request.set_at_updates(manifest.global_step());
  ASSIGN_OR_RETURN(const wire::SnapshotResponse response,
                   clients_[shard]->Snapshot(request));
  file.set_bytes(response.bytes());
  file.set_crc32c(response.crc32c());
  return absl::OkStatus();
}

std::string OrderExecutor::NamesOf(
    absl::FunctionRef<bool(size_t shard)> is_meant) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < names_.size(); ++i) {
    if (is_meant(i)) names.push_back(names_[i]);
  }
  return absl::StrJoin(names, ", ");
}

void OrderExecutor::CancelAllCalls() {
  for (const auto& client : clients_) client->CancelCalls();
}

}  // namespace parasol
