// The part of a ps that says what it does and has.
#include <memory>
#include <optional>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/log.h"
#include "base/row_hash.h"
#include "cluster/rpc/proto_duration.h"
#include "ps/shard/parameter_server.h"

namespace parasol {
namespace {

const char* NameOfOperation(const wire::Operation& operation) {
  if (operation.has_push()) return "push";
  if (operation.has_pull()) return "pull";
  return operation.has_row_push() ? "push rows" : "pull rows";
}

}  // namespace

void ParameterServer::WatchPush(uint64_t worker,
                                const wire::Operation& operation,
                                absl::Span<const PayloadView> payloads,
                                absl::Time now) {
  const wire::RowPush& rows = operation.row_push();
  const bool has_sync =
      operation.has_push() ? operation.push().has_sync() : rows.has_sync();
  if (has_sync) {
    watch_.Gradient(worker,
                    operation.has_push() ? operation.push().sync().step()
                                         : rows.sync().step(),
                    now);
  }
  if (rows.rows() == 0 || payloads.empty()) return;
  // Whatever a sequence and its neighbours draw, over many pushes each place in
  // the list of ids is drawn alike.
  const size_t place = RowHash(rows.sequence()) % rows.rows();
  uint64_t id = 0;
  if (place >= payloads[0].size() / sizeof(id)) return;
  payloads[0].CopyTo(place * sizeof(id), sizeof(id), &id);
  watch_.PushedRow(rows.table(), id, now);
}

void ParameterServer::Trace(const char* name, absl::Time begin,
                            int64_t bytes) const {
  if (options_.trace == nullptr || !options_.trace->is_on()) return;
  options_.trace->Add({.name = name,
                       .track = TrackOfThread(),
                       .begin = begin,
                       .end = clock_.Now(),
                       .bytes = bytes});
}

void ParameterServer::TraceOperation(const wire::Operation& operation,
                                     absl::Time begin, int64_t bytes) const {
  Trace(NameOfOperation(operation), begin, bytes);
}

wire::PsLoad ParameterServer::LoadNow() {
  const absl::Time now = clock_.Now();
  wire::PsLoad load = watch_.Load(metrics_.push_bytes_total.value(),
                                  metrics_.pull_bytes_total.value(), now);
  const std::optional<OperationWatch::HotRow> hot = watch_.HottestRow(now);
  absl::ReaderMutexLock lock(&mu_);
  if (loading_) *load.mutable_loading() = ToProto(now - loading_since_);
  if (!snapshot_file_.empty()) {
    *load.mutable_writing() = ToProto(now - snapshot_since_);
  }
  if (!hot || shard_ == nullptr) return load;
  for (const wire::TableSpec& table : shard_->order.table()) {
    if (table.id() != hot->table) continue;
    load.mutable_hot_row()->set_table(table.name());
    load.mutable_hot_row()->set_row(hot->row);
    load.mutable_hot_row()->set_share(hot->share);
  }
  return load;
}

ParameterServer::Updates ParameterServer::updates() const {
  const std::shared_ptr<Shard> held = shard();
  if (held == nullptr) return Updates::kNone;
  const int64_t progress = held->parameters->progress();
  const bool stays = held->parameters->stays();
  const bool is_new = progress == held->loaded_progress;
  if (is_new && !stays) return Updates::kNone;
  if (held->saved->Has(progress)) {
    return stays ? Updates::kStaying : Updates::kSaved;
  }
  if (is_new) return Updates::kNone;
  return held->saved->AnyHas(progress) ? Updates::kSaved : Updates::kUnsaved;
}

ParameterServer::Holding ParameterServer::holding() const {
  const std::shared_ptr<Shard> held = shard();
  if (held == nullptr) return {};
  return {.run_id = held->order.run_id(),
          .layout = held->order.order().layout()};
}

int64_t ParameterServer::progress() const {
  const std::shared_ptr<Shard> held = shard();
  return held == nullptr ? 0 : held->parameters->progress();
}

uint64_t ParameterServer::shard_bytes() const {
  const std::shared_ptr<Shard> held = shard();
  return held == nullptr ? 0 : held->parameters->bytes().all();
}

}  // namespace parasol
