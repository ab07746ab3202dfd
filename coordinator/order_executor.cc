#include "coordinator/order_executor.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/uri/uri_path.h"
#include "cluster/checkpoint/store_checkpoint.h"
#include "cluster/job/learning_rate_field.h"
#include "coordinator/layout.h"

namespace parasol {
namespace {

constexpr absl::Duration kCancelInterval = absl::Milliseconds(100);
constexpr absl::Duration kWaitLogInterval = absl::Seconds(10);

// Runs `work(i)` for each i < count, on as many threads; returns when all are
// done. Shards are few.
template <typename Work>
void ForEachAtOnce(size_t count, Work work) {
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < count; ++i) {
    threads.emplace_back([&work, i] { work(i); });
  }
}

wire::LoadRequest::Journal JournalOf(const job::Job& job) {
  switch (job.parameter_server().durability()) {
    case job::ParameterServerStrategy::CHECKPOINT:
    case job::ParameterServerStrategy::REPLICATE:
      break;
    case job::ParameterServerStrategy::JOURNAL:
    case job::ParameterServerStrategy::REPLICATE_JOURNAL:
      return wire::LoadRequest::WRITTEN;
    case job::ParameterServerStrategy::JOURNAL_SYNC:
    case job::ParameterServerStrategy::REPLICATE_JOURNAL_SYNC:
      return wire::LoadRequest::ON_DISK;
  }
  return wire::LoadRequest::NONE;
}

bool IsUnreadable(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsDataLoss(status);
}

}  // namespace

OrderExecutor::OrderExecutor(const CoordinatorOptions& options,
                             std::vector<std::unique_ptr<PsClient>> clients,
                             CheckpointStore store, Directory directory)
    : run_id_(options.run_id),
      layout_(options.layout),
      chief_epoch_(options.chief_epoch),
      retention_(RetentionOf(options.job.checkpoint())),
      full_every_(options.job.checkpoint().full_every()),
      clients_(std::move(clients)),
      store_(std::move(store)),
      directory_(std::move(directory)),
      damaged_(options.damaged_checkpoints) {
  const std::optional<wire::SyncSpec> sync = SyncSpecOf(options.job);
  const size_t num_ps_shards = NumPsShards(options);
  const bool has_asynchronous_tables =
      num_ps_shards < options.shards.size() && !sync.has_value();
  for (const ShardBoard::Shard& shard : options.shards) {
    names_.push_back(NameOf(options, {"ps", shard.ps_index}));
    wire::LoadRequest& request = load_requests_.emplace_back();
    request.set_run_id(run_id_);
    request.set_seed(options.job.seed());
    *request.mutable_optimizer() = options.job.optimizer();
    request.mutable_part()->Assign(shard.parts.begin(), shard.parts.end());
    request.set_shard(load_requests_.size() - 1);
    request.set_num_shards(num_ps_shards);
    request.mutable_table()->Assign(shard.tables.begin(), shard.tables.end());
    if (sync.has_value()) *request.mutable_sync() = *sync;
    is_state_.push_back(IsState(options, {"ps", shard.ps_index}));
    if (!is_state_.back()) request.set_journal(JournalOf(options.job));
    in_step_.push_back(is_state_.back() || !has_asynchronous_tables);
  }
}

wire::OrderHeader OrderExecutor::HeaderFor(uint64_t incarnation) const {
  wire::OrderHeader header;
  header.set_incarnation(incarnation);
  header.set_chief_epoch(chief_epoch_);
  header.set_layout(layout_);
  return header;
}

std::vector<absl::Status> OrderExecutor::Load(const LoadOrder& order) {
  lost_.clear();
  const absl::Status recorded = directory_.record_places(order);
  if (!recorded.ok()) {
    // Nothing is wrong with the shards: the disk may be full, or the directory
    // gone, for a while.
    const bool may_pass =
        absl::IsResourceExhausted(recorded) || absl::IsNotFound(recorded);
    return std::vector<absl::Status>(
        order.targets.size(),
        may_pass ? absl::UnavailableError(recorded.message()) : recorded);
  }
  if (!order.from_checkpoint) {
    return LoadFrom(/*checkpoint=*/"", order.targets, order);
  }
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
    std::vector<LoadOrder::Target> targets;
    for (size_t i : pending) targets.push_back(order.targets[i]);
    const std::vector<absl::Status> tried =
        LoadFrom(store_.PathOf(*step), targets, order);
    for (size_t i = 0; i < pending.size(); ++i) {
      results[pending[i]] = CheckLost(*step, targets[i].shard, tried[i]);
      if (absl::IsDataLoss(results[pending[i]])) found_damaged_.insert(*step);
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
    const std::vector<LoadOrder::Target>& targets, const LoadOrder& order) {
  const int64_t number = ++orders_;
  std::vector<absl::Status> results(targets.size());
  std::vector<std::string> lost(targets.size());
  ForEachAtOnce(targets.size(), [&](size_t i) {
    const size_t shard = targets[i].shard;
    wire::LoadRequest request = load_requests_[shard];
    request.set_checkpoint(checkpoint);
    if (targets[i].standby) *request.mutable_standby() = *targets[i].standby;
    if (is_state_[shard]) request.set_global_step(order.global_step);
    if (order.learning_rate) {
      SetInitialLearningRate(*order.learning_rate,
                             *request.mutable_optimizer());
    }
    *request.mutable_order() = HeaderFor(targets[i].incarnation);
    request.mutable_order()->set_number(number);
    clients_[shard]->MoveTo(targets[i].address, targets[i].host);
    const auto loaded = clients_[shard]->Load(request);
    results[i] = loaded.status();
    if (loaded.ok()) lost[i] = loaded->lost();
  });
  for (size_t i = 0; i < targets.size(); ++i) {
    if (!lost[i].empty()) lost_[targets[i].shard] = std::move(lost[i]);
  }
  return results;
}

absl::Status OrderExecutor::CheckLost(int64_t step, size_t shard,
                                      const absl::Status& loaded) const {
  if (!absl::IsNotFound(loaded)) return loaded;
  const absl::Status here = store_.CheckComplete(step);
  if (absl::IsDataLoss(here) || absl::IsNotFound(here)) return loaded;
  if (!here.ok()) return here;
  return absl::UnavailableError(
      absl::StrCat(loaded.message(), "; the chief sees it: ",
                   IsUri(store_.directory())
                       ? "is the store's endpoint the same for "
                       : "is the checkpoint directory's volume mounted at the "
                         "same path for ",
                   names_[shard], "?"));
}

absl::StatusOr<std::vector<int64_t>> OrderExecutor::RunCheckpoints() const {
  ASSIGN_OR_RETURN(const std::vector<int64_t> steps, store_.ListSteps());
  std::vector<int64_t> of_run;
  for (const int64_t step : steps) {
    if (damaged_.contains(step)) continue;
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

absl::StatusOr<int64_t> OrderExecutor::WriteCheckpoint(
    const CheckpointOrder& order, absl::Time now,
    absl::FunctionRef<KeptCheckpoints()> kept) {
  ++orders_;
  durable::CheckpointManifest manifest = order.manifest;
  manifest.set_created_unix_micros(absl::ToUnixMicros(now));
  int64_t step = manifest.global_step();
  // The shards wait between the cut and the snapshots: what the checkpoint has
  // of older ones is there before.
  const auto snapshot =
      [&](const std::string& directory,
          durable::CheckpointManifest& files) -> absl::Status {
    OlderFiles older = LinkOlderFiles(directory);
    if (order.at_one_step) {
      RETURN_IF_ERROR(ChooseCut(order, files));
      step = files.global_step();
      files.set_evaluation_due(order.IsEvaluatedAt(step));
    }
    if (!older.chains.CanBeListedAt(files.global_step())) {
      older = {.is_linked = std::vector<bool>(clients_.size())};
    }
    return SnapshotShards(
        order, files,
        CheckpointStore::WorkingAt(directory, files.global_step()), older);
  };
  absl::Status written =
      StoreCheckpoint(store_, std::move(manifest), retention_, snapshot,
                      directory_.check_owner, kept);
  awaits_workers_ = false;
  RETURN_IF_ERROR(written);
  damaged_.erase(step);
  found_damaged_.erase(step);
  return step;
}

absl::Status OrderExecutor::ChooseCut(const CheckpointOrder& order,
                                      durable::CheckpointManifest& manifest) {
  std::vector<absl::StatusOr<wire::PrepareSnapshotResponse>> shards(
      clients_.size(), absl::UnknownError("not asked"));
  ForEachAtOnce(clients_.size(), [&](size_t i) {
    if (!in_step_[i]) {
      wire::PrepareSnapshotResponse as_it_is;
      as_it_is.set_min_updates(INT64_MAX);
      shards[i] = as_it_is;
      return;
    }
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

absl::StatusOr<durable::CheckpointManifest> OrderExecutor::NewestUndamaged()
    const {
  ASSIGN_OR_RETURN(const std::vector<int64_t> steps, store_.ListSteps());
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (damaged_.contains(*step) || IsFoundDamaged(*step)) continue;
    auto manifest = store_.ReadManifest(*step);
    if (IsUnreadable(manifest.status())) continue;
    if (!manifest.ok() || manifest->run_id() == run_id_) return manifest;
  }
  return absl::NotFoundError("the run has no checkpoint");
}

ContinuedChains OrderExecutor::ChainsToContinue() const {
  if (full_every_ <= 1 || refuses_links_) return ContinuedChains();
  auto manifest = NewestUndamaged();
  if (!manifest.ok()) return ContinuedChains();
  const int64_t step = manifest->global_step();
  // A file that is cut off would fail all checkpoints that it is in.
  if (!store_.CheckComplete(step).ok()) return ContinuedChains();
  for (const int64_t step : found_damaged_) {
    const auto damaged = store_.ReadManifest(step);
    if (IsUnreadable(damaged.status())) continue;
    if (!damaged.ok() || ShareFiles(*manifest, *damaged)) {
      return ContinuedChains();
    }
  }
  return ContinuedChains(store_.PathOf(step), *std::move(manifest),
                         clients_.size(), full_every_);
}

absl::Status OrderExecutor::SnapshotShards(
    const CheckpointOrder& order, durable::CheckpointManifest& manifest,
    const std::string& directory, const OlderFiles& older) {
  std::vector<absl::StatusOr<NewFile>> results(clients_.size(),
                                               absl::UnknownError("not asked"));
  absl::Mutex mu;
  std::vector<bool> finished(clients_.size());
  const auto all_finished = [&finished] {
    return std::count(finished.begin(), finished.end(), false) == 0;
  };
  const std::jthread log([&] {
    absl::MutexLock lock(&mu);
    while (!Clock::Real().AwaitWithTimeout(mu, absl::Condition(&all_finished),
                                           kWaitLogInterval)) {
      LOG(INFO) << "checkpoint: waiting for "
                << NamesOf([&](size_t i) { return !finished[i]; });
    }
  });
  ForEachAtOnce(clients_.size(), [&](size_t i) {
    results[i] =
        SnapshotShard(order, i, manifest.global_step(), directory, older);
    absl::MutexLock lock(&mu);
    finished[i] = true;
    // The others may await a step that cannot come without this shard. A call
    // that is about to start is cancelled the next time.
    while (order.at_one_step && !results[i].ok() && !all_finished()) {
      CancelAllCalls();
      Clock::Real().AwaitWithTimeout(mu, absl::Condition(&all_finished),
                                     kCancelInterval);
    }
  });
  // What the others were cancelled for comes first.
  absl::Status first;
  for (const absl::StatusOr<NewFile>& result : results) {
    if (result.ok()) continue;
    if (first.ok() || absl::IsCancelled(first)) first = result.status();
  }
  RETURN_IF_ERROR(first);
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i]->is_increment) {
      older.chains.AddTo(manifest, i, results[i]->file);
    } else {
      *manifest.add_file() = results[i]->file;
    }
  }
  return absl::OkStatus();
}

OrderExecutor::OlderFiles OrderExecutor::LinkOlderFiles(
    const std::string& directory) {
  OlderFiles older = {.chains = ChainsToContinue(),
                      .is_linked = std::vector<bool>(clients_.size())};
  if (older.chains.empty()) return older;
  for (size_t i = 0; i < clients_.size() && !refuses_links_; ++i) {
    const absl::Status linked = older.chains.LinkInto(directory, i);
    older.is_linked[i] = linked.ok();
    if (linked.ok()) continue;
    refuses_links_ = absl::IsUnimplemented(linked);
    LOG(WARNING)
        << (refuses_links_
                ? "all checkpoints are whole, also with checkpoint.full_every: "
                : absl::StrCat(names_[i], " writes all of its shard: "))
        << linked.message();
  }
  return older;
}

absl::StatusOr<OrderExecutor::NewFile> OrderExecutor::SnapshotShard(
    const CheckpointOrder& order, size_t shard, int64_t cut,
    const std::string& directory, const OlderFiles& older) {
  const ContinuedChains& chains = older.chains;
  const bool is_linked = older.is_linked[shard];
  NewFile added;
  added.file.set_name(CheckpointStore::NameInWorking(
      directory, chains.NextName(shard, clients_.size())));
  wire::SnapshotRequest request;
  request.set_run_id(run_id_);
  request.set_directory(directory);
  request.set_file_name(added.file.name());
  *request.mutable_order() = HeaderFor(order.incarnations[shard]);
  // A call that comes late has no shard stay that was let go on meanwhile, and
  // makes it forget nothing of a later checkpoint.
  request.mutable_order()->set_number(orders_);
  request.set_stay(order.stay);
  if (is_linked) request.set_since(chains.Since(shard));
  if (order.at_one_step && in_step_[shard]) request.set_at_updates(cut);
  ASSIGN_OR_RETURN(const wire::SnapshotResponse response,
                   clients_[shard]->Snapshot(request));
  added.file.set_bytes(response.bytes());
  added.file.set_crc32c(response.crc32c());
  added.is_increment = response.is_increment();
  if (added.is_increment && !is_linked) {
    return absl::InternalError(absl::StrCat(
        names_[shard], " has written what has changed, and was asked for all"));
  }
  if (is_linked && !added.is_increment) chains.UnlinkFrom(directory, shard);
  return added;
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
