#include "ps/shard/parameter_server.h"

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "google/protobuf/util/message_differencer.h"
#include "ps/shard/load_shard.h"
#include "ps/shard/write_shard.h"

namespace parasol {
namespace {

// The chief has resent a Load that is still running.
constexpr absl::Duration kLoadWait = absl::Minutes(10);

// For the update at which a synchronous snapshot is to be taken: the workers
// may be at the step before it.
constexpr absl::Duration kCutWait = absl::Minutes(1);

// The same variables, wherever their values came from.
bool IsSameShard(wire::LoadRequest a, wire::LoadRequest b) {
  a.clear_checkpoint();
  b.clear_checkpoint();
  return google::protobuf::util::MessageDifferencer::Equals(a, b);
}

absl::Status CheckPath(const std::string& directory, const std::string& name) {
  constexpr absl::string_view kSeparators("/\0", 2);
  if (name.empty() || name[0] == '.' ||
      absl::string_view(name).find_first_of(kSeparators) !=
          absl::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", name,
        "\" is not a file name: it is empty, begins with '.' or has a '/'"));
  }
  if (directory.empty()) {
    return absl::InvalidArgumentError(
        "the snapshot request names no directory");
  }
  return absl::OkStatus();
}

uint64_t BytesOf(absl::Span<const PayloadView> payloads) {
  uint64_t bytes = 0;
  for (const PayloadView& payload : payloads) bytes += payload.size();
  return bytes;
}

uint64_t BytesOf(const std::vector<PayloadRef>& payloads) {
  uint64_t bytes = 0;
  for (const PayloadRef& payload : payloads) bytes += payload.size;
  return bytes;
}

wire::LoadResponse SizesOf(const ParameterShard& table) {
  wire::LoadResponse response;
  response.set_value_bytes(table.value_bytes());
  response.set_slot_bytes(table.slot_bytes());
  return response;
}

}  // namespace

ParameterServer::ParameterServer(Options options, Clock& clock,
                                 PsMetrics& metrics)
    : options_(std::move(options)), clock_(clock), metrics_(metrics) {}

ParameterServer::~ParameterServer() {
  std::shared_ptr<Shard> shard;
  {
    absl::MutexLock lock(&mu_);
    shard = std::move(shard_);
  }
  Abandon(std::move(shard));
}

void ParameterServer::EndWaits() const {
  std::shared_ptr<Shard> shard;
  {
    absl::MutexLock lock(&mu_);
    shard = shard_;
  }
  Abandon(std::move(shard));
}

ParameterServer::Pushes ParameterServer::Seal() const {
  std::shared_ptr<Shard> shard;
  {
    absl::MutexLock lock(&mu_);
    shard = shard_;
  }
  if (shard == nullptr) return Pushes::kNone;
  shard->table->Seal();
  const int64_t pushes = shard->table->pushes();
  if (pushes == 0) return Pushes::kNone;
  return pushes == shard->saved_pushes.load() ? Pushes::kSaved
                                              : Pushes::kUnsaved;
}

void ParameterServer::Abandon(std::shared_ptr<Shard> shard) const {
  if (shard == nullptr) return;
  shard->table->Abandon(absl::UnavailableError(absl::StrCat(
      options_.task, " no longer holds run ", shard->order.run_id())));
}

absl::StatusOr<wire::LoadResponse> ParameterServer::Load(
    const wire::LoadRequest& request) {
  if (request.run_id().empty()) {
    return absl::InvalidArgumentError("the load request names no run_id");
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<Shard> held, BeginLoad(request));
  if (held != nullptr) return SizesOf(*held->table);

  std::shared_ptr<Shard> loaded;
  absl::Cleanup end = [this, &loaded] { EndLoad(loaded); };
  const absl::Time start = clock_.Now();
  ASSIGN_OR_RETURN(
      std::unique_ptr<ParameterShard> table,
      LoadShard(request, {.memory_bytes = options_.memory_limit_bytes,
                          .non_finite = options_.non_finite}),
      _ << options_.task);
  loaded = std::make_shared<Shard>(request, std::move(table));
  const absl::Duration duration = clock_.Now() - start;
  metrics_.load_duration_seconds.Observe(absl::ToDoubleSeconds(duration));
  LOG(INFO) << "loaded " << request.part_size() << " parts of run "
            << request.run_id() << " from "
            << (request.checkpoint().empty() ? "initial values"
                                             : request.checkpoint())
            << " in " << absl::FormatDuration(duration);
  return SizesOf(*loaded->table);
}

absl::StatusOr<std::shared_ptr<ParameterServer::Shard>>
ParameterServer::BeginLoad(const wire::LoadRequest& order) {
  std::shared_ptr<Shard> replaced;
  // Outside the lock.
  absl::Cleanup abandon = [this, &replaced] { Abandon(std::move(replaced)); };
  absl::MutexLock lock(&mu_);
  auto is_idle = [this]()
                     ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return !loading_; };
  if (!clock_.AwaitWithTimeout(mu_, absl::Condition(&is_idle), kLoadWait)) {
    return absl::UnavailableError(
        absl::StrCat(options_.task, " is still loading"));
  }
  if (shard_ != nullptr && IsSameShard(shard_->order, order)) return shard_;
  replaced = std::move(shard_);
  shard_ = nullptr;
  loading_ = true;
  return nullptr;
}

void ParameterServer::EndLoad(std::shared_ptr<Shard> loaded) {
  const wire::LoadResponse sizes =
      loaded == nullptr ? wire::LoadResponse() : SizesOf(*loaded->table);
  metrics_.value_bytes.Set(sizes.value_bytes());
  metrics_.slot_bytes.Set(sizes.slot_bytes());
  metrics_.row_bytes.Set(loaded == nullptr ? 0 : loaded->table->row_bytes());
  absl::MutexLock lock(&mu_);
  loading_ = false;
  shard_ = std::move(loaded);
}

absl::StatusOr<wire::SnapshotResponse> ParameterServer::Snapshot(
    const wire::SnapshotRequest& request,
    const std::function<bool()>& is_cancelled) {
  RETURN_IF_ERROR(CheckPath(request.directory(), request.file_name()));
  RETURN_IF_ERROR(BeginSnapshot(request.file_name()));
  absl::Cleanup end = [this] {
    absl::MutexLock lock(&mu_);
    snapshot_file_.clear();
  };
  const absl::Time start = clock_.Now();
  absl::StatusOr<wire::SnapshotResponse> response =
      WriteSnapshot(request, is_cancelled);
  if (response.ok()) {
    metrics_.snapshots_total.Add();
    metrics_.snapshot_duration_seconds.Observe(
        absl::ToDoubleSeconds(clock_.Now() - start));
  } else {
    metrics_.failed_snapshots_total.Add();
  }
  return response;
}

absl::Status ParameterServer::BeginSnapshot(const std::string& file_name) {
  absl::MutexLock lock(&mu_);
  if (!snapshot_file_.empty()) {
    return absl::UnavailableError(
        absl::StrCat(options_.task, " is still writing ", snapshot_file_));
  }
  snapshot_file_ = file_name;
  return absl::OkStatus();
}

absl::StatusOr<wire::SnapshotResponse> ParameterServer::WriteSnapshot(
    const wire::SnapshotRequest& request,
    const std::function<bool()>& is_cancelled) {
  const absl::StatusOr<std::shared_ptr<Shard>> shard =
      ShardOf(request.run_id());
  if (!shard.ok()) {
    return absl::FailedPreconditionError(shard.status().message());
  }
  ParameterShard& table = *(*shard)->table;
  const int64_t pushes = table.pushes();
  ASSIGN_OR_RETURN(ShardSnapshot snapshot,
                   request.has_at_updates()
                       ? table.TakeSnapshotAt(request.at_updates(), clock_,
                                              kCutWait, is_cancelled)
                       : table.TakeSnapshot(),
                   _ << options_.task);
  ASSIGN_OR_RETURN(
      const durable::CheckpointFile file,
      WriteShard(std::move(snapshot), (*shard)->order.shard(),
                 (*shard)->order.num_shards(),
                 absl::StrCat(request.directory(), "/", request.file_name())),
      _ << options_.task);
  (*shard)->saved_pushes.store(pushes);
  wire::SnapshotResponse response;
  response.set_bytes(file.bytes());
  response.set_crc32c(file.crc32c());
  return response;
}

void ParameterServer::Execute(const ReceivedMessage& request, size_t operation,
                              OperationDone done) {
  const absl::StatusOr<std::shared_ptr<Shard>> shard =
      ShardOf(request.run_id());
  if (!shard.ok()) return Reject(shard.status(), done);
  ParameterShard& table = *(*shard)->table;
  const uint64_t worker = request.worker_incarnation();
  const wire::Operation& order = request.operation(operation);
  const absl::Span<const PayloadView> payloads = request.payloads(operation);
  switch (order.kind_case()) {
    case wire::Operation::kPush:
      return table.Push(
          worker, order.push(), payloads,
          CountedPush(*shard, BytesOf(payloads), std::move(done)));
    case wire::Operation::kPull:
      return table.Pull(worker, order.pull(),
                        CountedPull(*shard, std::move(done)));
    case wire::Operation::kRowPush:
      table.PushRows(worker, order.row_push(), payloads,
                     CountedPush(*shard, BytesOf(payloads), std::move(done)));
      return metrics_.row_bytes.Set(table.row_bytes());
    case wire::Operation::kRowPull:
      table.PullRows(worker, order.row_pull(), payloads,
                     CountedPull(*shard, std::move(done)));
      return metrics_.row_bytes.Set(table.row_bytes());
    case wire::Operation::KIND_NOT_SET:
      break;
  }
  Reject(absl::InvalidArgumentError("neither a push nor a pull"), done);
}

std::string ParameterServer::run_id() const {
  absl::MutexLock lock(&mu_);
  return shard_ == nullptr ? "" : shard_->order.run_id();
}

absl::StatusOr<std::shared_ptr<ParameterServer::Shard>>
ParameterServer::ShardOf(absl::string_view run_id) const {
  absl::ReaderMutexLock lock(&mu_);
  if (shard_ == nullptr) {
    return absl::UnavailableError(
        absl::StrCat(options_.task, " holds no variables yet: ",
                     loading_ ? "it is loading them"
                              : "waiting for the chief's load order"));
  }
  if (shard_->order.run_id() != run_id) {
    return absl::FailedPreconditionError(
        absl::StrCat(options_.task, " holds run ", shard_->order.run_id(),
                     ", not ", run_id));
  }
  return shard_;
}

OperationDone ParameterServer::CountedPush(std::shared_ptr<Shard> shard,
                                           uint64_t bytes, OperationDone done) {
  return [this, shard = std::move(shard), bytes, start = clock_.Now(),
          done = std::move(done)](absl::StatusOr<OperationResult> result) {
    if (!result.ok()) return Reject(result.status(), done);
    if (result->duplicate) {
      metrics_.duplicate_pushes_total.Add();
    } else if (result->stale) {
      metrics_.stale_pushes_total.Add();
    } else {
      metrics_.apply_duration_seconds.Observe(
          absl::ToDoubleSeconds(clock_.Now() - start));
      metrics_.pushes_total.Add();
      metrics_.push_bytes_total.Add(bytes);
    }
    done(std::move(result));
  };
}

OperationDone ParameterServer::CountedPull(std::shared_ptr<Shard> shard,
                                           OperationDone done) {
  return [this, shard = std::move(shard),
          done = std::move(done)](absl::StatusOr<OperationResult> result) {
    if (result.ok() && result->read != nullptr) {
      // The pull that is read later needs the shard, too.
      return done(OperationResult{
          .read = [this, shard, read = std::move(result->read)] {
            absl::StatusOr<OperationResult> result = read();
            CountPull(result);
            return result;
          }});
    }
    CountPull(result);
    done(std::move(result));
  };
}

void ParameterServer::CountPull(const absl::StatusOr<OperationResult>& result) {
  if (!result.ok()) return metrics_.CountRejected(result.status().code());
  metrics_.pulls_total.Add();
  metrics_.pull_bytes_total.Add(BytesOf(result->payloads));
}

void ParameterServer::Reject(const absl::Status& status,
                             const OperationDone& done) {
  metrics_.CountRejected(status.code());
  done(status);
}

}  // namespace parasol
