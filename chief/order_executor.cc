#include "chief/order_executor.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/checkpoint/store_checkpoint.h"

namespace parasol {
namespace {

constexpr absl::Duration kCancelInterval = absl::Milliseconds(100);

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

OrderExecutor::OrderExecutor(const job::Job& job, const std::string& run_id,
                             const std::vector<ShardBoard::Shard>& shards,
                             std::vector<std::unique_ptr<PsClient>> clients,
                             CheckpointStore store,
                             std::function<absl::Status()> check_owner)
    : run_id_(run_id),
      max_to_keep_(job.checkpoint().max_to_keep()),
      clients_(std::move(clients)),
      store_(std::move(store)),
      check_owner_(std::move(check_owner)) {
  for (size_t i = 0; i < shards.size(); ++i) {
    wire::LoadRequest& request = load_requests_.emplace_back();
    request.set_run_id(run_id);
    request.set_seed(job.seed());
    *request.mutable_optimizer() = job.optimizer();
    request.mutable_part()->Assign(shards[i].parts.begin(),
                                   shards[i].parts.end());
    request.set_shard(i);
    request.set_num_shards(shards.size());
    request.mutable_table()->Assign(shards[i].tables.begin(),
                                    shards[i].tables.end());
    if (!job.parameter_server().has_synchronous()) continue;
    const job::Synchronous& mode = job.parameter_server().synchronous();
    wire::SyncSpec& sync = *request.mutable_sync();
    sync.set_replicas_to_aggregate(mode.replicas_to_aggregate());
    sync.set_total_replicas(mode.total_replicas());
  }
}

std::vector<absl::Status> OrderExecutor::Load(
    const Coordinator::LoadOrder& order) {
  if (!order.from_checkpoint) return LoadFrom(/*checkpoint=*/"", order.targets);
  const absl::StatusOr<std::vector<int64_t>> steps = RunCheckpoints();
  if (!steps.ok()) {
    return std::vector<absl::Status>(order.targets.size(), steps.status());
  }
  std::vector<absl::Status> results(
      order.targets.size(),
      absl::DataLossError(absl::StrCat("no checkpoint of run ", run_id_, " in ",
                                       store_.directory(), " can be read")));
  std::vector<size_t> pending(order.targets.size());
  for (size_t i = 0; i < pending.size(); ++i) pending[i] = i;
  for (auto step = steps->rbegin(); step != steps->rend(); ++step) {
    std::vector<Coordinator::LoadOrder::Target> targets;
    for (size_t i : pending) targets.push_back(order.targets[i]);
    const std::vector<absl::Status> tried =
        LoadFrom(store_.PathOf(*step), targets);
    for (size_t i = 0; i < pending.size(); ++i) {
      results[pending[i]] = CheckLost(*step, tried[i]);
    }
    std::erase_if(pending, [&](size_t i) { return !IsUnreadable(results[i]); });
    for (size_t i : pending) {
      LOG(WARNING) << "passing over a checkpoint: " << results[i].message();
    }
  }
  return results;
}

std::vector<absl::Status> OrderExecutor::LoadFrom(
    const std::string& checkpoint,
    const std::vector<Coordinator::LoadOrder::Target>& targets) {
  std::vector<absl::Status> results(targets.size());
  ForEachAtOnce(targets.size(), [&](size_t i) {
    const size_t shard = targets[i].shard;
    wire::LoadRequest request = load_requests_[shard];
    request.set_checkpoint(checkpoint);
    results[i] = clients_[shard]->Load(request).status();
  });
  return results;
}

absl::Status OrderExecutor::CheckLost(int64_t step,
                                      const absl::Status& loaded) const {
  if (!absl::IsNotFound(loaded)) return loaded;
  const absl::Status here = store_.CheckComplete(step);
  if (absl::IsDataLoss(here) || absl::IsNotFound(here)) return loaded;
  if (!here.ok()) return here;
  return absl::UnavailableError(
      absl::StrCat(loaded.message(),
                   "; the chief sees it: is the checkpoint directory's "
                   "volume mounted on the ps at the same path?"));
}

absl::StatusOr<std::vector<int64_t>> OrderExecutor::RunCheckpoints() const {
  ASSIGN_OR_RETURN(const std::vector<int64_t> steps, store_.ListSteps());
  std::vector<int64_t> of_run;
  for (const int64_t step : steps) {
    const auto manifest = store_.ReadManifest(step);
    if (IsUnreadable(manifest.status())) {
      LOG(WARNING) << "passing over a checkpoint: "
                   << manifest.status().message();
      continue;
    }
    // It may be intact: to go back to an older one would lose steps.
    RETURN_IF_ERROR(manifest.status());
    if (manifest->run_id() == run_id_) of_run.push_back(step);
  }
  return of_run;
}

absl::Status OrderExecutor::WriteCheckpoint(
    const Coordinator::CheckpointOrder& order, absl::Time now) {
  durable::CheckpointManifest manifest = order.manifest;
  manifest.set_created_unix_micros(absl::ToUnixMicros(now));
  const auto snapshot = [&](const std::string& directory,
                            durable::CheckpointManifest& files) {
    return SnapshotShards(files, directory, order.at_global_step);
  };
  return StoreCheckpoint(store_, std::move(manifest), max_to_keep_, snapshot,
                         check_owner_);
}

absl::Status OrderExecutor::SnapshotShards(
    durable::CheckpointManifest& manifest, const std::string& directory,
    bool at_global_step) {
  std::vector<absl::Status> results(clients_.size());
  for (size_t i = 0; i < clients_.size(); ++i) manifest.add_file();
  absl::Mutex mu;
  size_t unfinished = clients_.size();
  const auto all_finished = [&unfinished] { return unfinished == 0; };
  ForEachAtOnce(clients_.size(), [&](size_t i) {
    durable::CheckpointFile& file = *manifest.mutable_file(i);
    file.set_name(
        absl::StrFormat("shard-%05d-of-%05d.sst", i, clients_.size()));
    wire::SnapshotRequest request;
    request.set_run_id(run_id_);
    request.set_directory(directory);
    request.set_file_name(file.name());
    if (at_global_step) request.set_at_updates(manifest.global_step());
    auto response = clients_[i]->Snapshot(request);
    results[i] = response.status();
    if (response.ok()) {
      file.set_bytes(response->bytes());
      file.set_crc32c(response->crc32c());
    }
    absl::MutexLock lock(&mu);
    --unfinished;
    // The others may await a step that cannot come without this shard. A call
    // that is about to start is cancelled the next time.
    while (at_global_step && !response.ok() && !all_finished()) {
      CancelAllCalls();
      mu.AwaitWithTimeout(absl::Condition(&all_finished), kCancelInterval);
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

void OrderExecutor::CancelAllCalls() {
  for (const auto& client : clients_) client->CancelCalls();
}

}  // namespace parasol
