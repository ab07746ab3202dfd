#include "tests/faults/push_simulation.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/log.h"
#include "cluster/rpc/payload.h"
#include "ml/optimizer/optimizer.h"
#include "proto/job.pb.h"
#include "proto/parameter.pb.h"
#include "ps/dense/dense_parts.h"
#include "ps/dense/part_layout.h"
#include "ps/dense/part_optimizers.h"
#include "ps/operation/operation.h"
#include "ps/shard/restore_journal.h"
#include "ps/shard/shard_snapshot.h"
#include "ps/sparse/sparse_table.h"
#include "ps/step/training_rules.h"
#include "ps/testing/requests.h"
#include "storage/durable_file.h"
#include "storage/journal/journal_format.h"

namespace parasol {
namespace {

// The shard's parts.
constexpr std::array<size_t, 3> kPartElements = {1, 5, 9};

// A schedule that takes more does not end.
constexpr size_t kStepsPerPush = 2000;

PartLayout MakeLayout() {
  google::protobuf::RepeatedPtrField<wire::PartSpec> parts;
  for (size_t i = 0; i < kPartElements.size(); ++i) {
    wire::PartSpec& part = *parts.Add();
    part.set_id(i);
    part.set_variable(absl::StrCat("v", i));
    part.add_variable_shape(kPartElements[i]);
    part.set_elements(kPartElements[i]);
  }
  auto layout = PartLayout::Create(parts, /*max_elements=*/UINT64_MAX);
  CHECK(layout.ok()) << layout.status();
  return *std::move(layout);
}

std::unique_ptr<const Optimizer> MakeSubtraction() {
  job::Optimizer spec;
  spec.mutable_sgd()->set_learning_rate(1);
  auto optimizer = MakeOptimizer(spec);
  CHECK(optimizer.ok()) << optimizer.status();
  return *std::move(optimizer);
}

std::vector<std::vector<float>> ValuesOfParts(ParameterShard& table) {
  std::vector<std::vector<float>> parts;
  for (const ShardSnapshot::Chunk& chunk : table.TakeSnapshot().chunks) {
    const absl::Span<const float> values = chunk.contents.value.span();
    parts.emplace_back(values.begin(), values.end());
  }
  return parts;
}

std::unique_ptr<ParameterShard> MakeTable(
    const std::vector<std::vector<float>>& values, const DedupWindows& dedup) {
  auto dense = DenseParts::Create(
      MakeLayout(), PartOptimizers(MakeSubtraction()), TrainingRules(),
      [&](const wire::PartSpec& part, int, int64_t first,
          absl::Span<float> out) -> absl::StatusOr<int64_t> {
        const auto from = values[part.id()].begin() + first;
        std::copy(from, from + out.size(), out.begin());
        return 0;
      });
  CHECK(dense.ok()) << dense.status();
  return std::make_unique<ParameterShard>(
      *std::move(dense), std::vector<std::unique_ptr<SparseTable>>(),
      /*sync=*/std::nullopt, dedup);
}

std::vector<std::vector<float>> Zeros() {
  std::vector<std::vector<float>> parts;
  for (const size_t elements : kPartElements) parts.emplace_back(elements);
  return parts;
}

// As a checkpoint keeps them.
DedupWindows ReadBack(const DedupWindows& windows) {
  DedupWindows read;
  for (const auto& [worker, window] : windows) {
    auto parsed = DedupWindow::Parse(window.Serialize());
    CHECK(parsed.ok()) << parsed.status();
    read[worker] = *parsed;
  }
  return read;
}

std::vector<PayloadView> PayloadsOf(const EncodedOperation& operation) {
  std::vector<PayloadView> payloads;
  const char* next = reinterpret_cast<const char*>(operation.payload.get());
  for (const ShardOperation::Range& range : operation.asked.ranges()) {
    const size_t bytes = range.count * sizeof(float);
    payloads.emplace_back(PayloadView::Pieces{absl::string_view(next, bytes)});
    next += bytes;
  }
  return payloads;
}

std::shared_ptr<const Call> MakePushCall() {
  const auto call = std::make_shared<Call>();
  call->is_push = true;
  return call;
}

size_t FirstElement(size_t part) {
  size_t first = 0;
  for (size_t i = 0; i < part; ++i) first += kPartElements[i];
  return first;
}

}  // namespace

PushSimulation::PushSimulation(const Options& options)
    : options_(options),
      random_(options.seed),
      call_(MakePushCall()),
      table_(MakeTable(Zeros(), /*dedup=*/{})) {
  report_.acknowledged.resize(FirstElement(kPartElements.size()));
  for (size_t i = 0; i < options_.workers; ++i) {
    Worker& worker = workers_.emplace_back(
        options_.lanes,
        ShardOutbox::Limits{.message_operations = options_.message_operations});
    worker.incarnation = 100 + i;
  }
  if (options_.journal_directory.empty()) return;
  CHECK(RemoveTree(options_.journal_directory).ok());
  saved_.values = Zeros();
  RestoreWithJournal();
}

// One to three of the parts, each element from 1 to 8.
void PushSimulation::StartPush(Worker& worker) {
  const size_t lane = Below(options_.lanes);
  const size_t skipped = Below(kPartElements.size() + 1);
  const bool is_push_pull = Below(2) == 0;
  ShardOperation::Ranges ranges;
  std::vector<float> gradient;
  for (size_t part = 0; part < kPartElements.size(); ++part) {
    if (part == skipped) continue;
    ranges.push_back({.part = static_cast<uint32_t>(part),
                      .count = kPartElements[part],
                      .target = is_push_pull ? &target_ : nullptr});
    for (size_t i = 0; i < kPartElements[part]; ++i) {
      gradient.push_back(1 + Below(8));
    }
  }
  const size_t payloads = ranges.size();
  const size_t bytes = gradient.size() * sizeof(float);
  auto payload = std::make_unique<std::byte[]>(bytes);
  std::memcpy(payload.get(), gradient.data(), bytes);
  ++worker.started;
  worker.outbox.Add(std::make_shared<const EncodedOperation>(EncodedOperation{
      .asked = {.call = call_, .lane = lane, .subject = std::move(ranges)},
      .payload = std::move(payload),
      .payloads = payloads,
      .bytes = bytes}));
}

bool PushSimulation::IsStarved(const Worker& worker, size_t lane) const {
  return options_.starve_first_lane && lane == 0 &&
         worker.lane_messages[0] > 0 && worker.started < options_.pushes;
}

void PushSimulation::Transmit(Worker& worker, size_t lane) {
  Message message = worker.outbox.Take(lane);
  for (const ShardOutbox::Entry& entry : message) {
    if (entry.was_sent) ++report_.sent_again;
    worker.unanswered.insert(entry.sequence);
    report_.max_ahead = std::max(report_.max_ahead,
                                 entry.sequence - *worker.unanswered.begin());
  }
  if (message.empty()) return;
  ++worker.lane_messages[lane];
  worker.streams[lane].to_shard.push_back(std::move(message));
}

void PushSimulation::Deliver(Worker& worker, Stream& stream, bool is_ghost) {
  if (stream.to_shard.empty()) return;
  const Message message = std::move(stream.to_shard.front());
  stream.to_shard.pop_front();
  for (const ShardOutbox::Entry& entry : message) {
    wire::Push push;
    uint64_t incarnation = worker.incarnation;
    push.set_sequence(entry.sequence);
    if (options_.mutant == Mutant::kFreshIdentity) {
      push.set_sequence(fresh_identity_++);
      incarnation = 1;
    }
    for (const ShardOperation::Range& range : entry.operation->asked.ranges()) {
      wire::TensorRange& on_wire = *push.add_range();
      on_wire.set_part(range.part);
      on_wire.set_count(range.count);
    }
    push.set_with_values(entry.operation->asked.gives_values());
    std::vector<PayloadRef> values_ahead;
    if (options_.mutant == Mutant::kPullsAhead) values_ahead = ValuesOf(push);
    size_t answers = 0;
    table_->Execute(incarnation, OperationOf(push),
                    PayloadsOf(*entry.operation),
                    [&](const absl::StatusOr<OperationResult>& result) {
                      CHECK(result.ok()) << result.status();
                      ++answers;
                      if (result->duplicate) ++report_.duplicates;
                      if (push.with_values() && !is_ghost) {
                        CheckValues(*entry.operation,
                                    options_.mutant == Mutant::kPullsAhead
                                        ? absl::MakeConstSpan(values_ahead)
                                        : result->payloads);
                      }
                    });
    CHECK_EQ(answers, 1u) << "a push that waits for nobody";
    if (is_ghost) {
      ++report_.late_deliveries;
    } else {
      stream.to_worker.push_back(entry.id);
    }
  }
}

std::vector<PayloadRef> PushSimulation::ValuesOf(const wire::Push& push) {
  wire::Pull pull;
  *pull.mutable_range() = push.range();
  std::vector<PayloadRef> values;
  table_->Execute(/*worker_incarnation=*/1, OperationOf(pull), {},
                  [&](const absl::StatusOr<OperationResult>& result) {
                    CHECK(result.ok()) << result.status();
                    values.assign(result->payloads.begin(),
                                  result->payloads.end());
                  });
  return values;
}

// Behind a push-pull, which is not acknowledged yet, are all acknowledged
// pushes, and itself.
void PushSimulation::CheckValues(const EncodedOperation& push,
                                 absl::Span<const PayloadRef> payloads) {
  std::vector<float> values;
  for (const PayloadRef& payload : payloads) {
    const auto* const some = static_cast<const float*>(payload.data);
    values.insert(values.end(), some, some + payload.size / sizeof(float));
  }
  const auto* gradient = reinterpret_cast<const float*>(push.payload.get());
  size_t next = 0;
  for (const ShardOperation::Range& range : push.asked.ranges()) {
    const size_t first = FirstElement(range.part);
    for (size_t i = 0; i < range.count; ++i, ++next) {
      const float most = -report_.acknowledged[first + i] - gradient[next];
      if (next >= values.size() || values[next] > most) ++report_.old_values;
    }
  }
  ++report_.push_pulls;
}

void PushSimulation::Acknowledge(Worker& worker, size_t lane) {
  std::vector<uint64_t>& answers = worker.streams[lane].to_worker;
  if (answers.empty()) return;
  std::swap(answers[Below(answers.size())], answers.back());
  const uint64_t id = answers.back();
  answers.pop_back();
  const ShardOutbox::Entry answered = worker.outbox.Answer(lane, id);
  CHECK(answered.operation != nullptr) << "answered twice";
  worker.unanswered.erase(answered.sequence);
  const EncodedOperation& push = *answered.operation;
  const auto* gradient = reinterpret_cast<const float*>(push.payload.get());
  for (const ShardOperation::Range& range : push.asked.ranges()) {
    const size_t first = FirstElement(range.part);
    for (size_t i = 0; i < range.count; ++i) {
      report_.acknowledged[first + i] += *gradient++;
    }
  }
}

// What the shard has not read yet is lost, or read later; in order up to a
// point, as a connection that breaks.
void PushSimulation::EndStream(Worker& worker, size_t lane) {
  Stream ended = std::exchange(worker.streams[lane], {});
  ended.to_worker.clear();
  if (!ended.to_shard.empty()) {
    ended.to_shard.resize(Below(ended.to_shard.size() + 1));
  }
  if (!ended.to_shard.empty()) worker.ghosts.push_back(std::move(ended));
  worker.outbox.Rewind(lane);
}

void PushSimulation::DeliverLate(Worker& worker) {
  if (worker.ghosts.empty()) return;
  Stream& ghost = worker.ghosts[Below(worker.ghosts.size())];
  Deliver(worker, ghost, /*is_ghost=*/true);
  if (!ghost.to_shard.empty()) return;
  std::swap(ghost, worker.ghosts.back());
  worker.ghosts.pop_back();
}

// Between a snapshot and the shard that is restored from it nothing has been
// applied: what is in flight to the one reaches the other.
void PushSimulation::Restore() {
  const DedupWindows windows = options_.mutant == Mutant::kForgetsWhenRestored
                                   ? DedupWindows()
                                   : ReadBack(table_->TakeSnapshot().dedup);
  table_ = MakeTable(ValuesOfParts(*table_), windows);
  ++report_.restores;
}

void PushSimulation::Save() {
  ShardSnapshot snapshot = table_->TakeSnapshot();
  saved_ = {.values = ValuesOfParts(*table_),
            .windows = ReadBack(snapshot.dedup),
            .place = snapshot.journal};
  if (options_.mutant == Mutant::kNamesALaterPlace) {
    for (Worker& worker : workers_) {
      for (size_t lane = 0; lane < options_.lanes; ++lane) {
        Deliver(worker, worker.streams[lane], /*is_ghost=*/false);
      }
    }
    saved_.place = table_->TakeSnapshot().journal;
  }
}

void PushSimulation::CutOffARecord() {
  const JournalPlace place = *table_->TakeSnapshot().journal;
  table_.reset();
  RecordHeader header = {.length = 1000, .record = place.segment};
  std::string bytes(RecordHeader::kBytes, '\0');
  header.Encode(bytes.data());
  bytes += "PJRC, and some more bytes";
  bytes.resize(Below(bytes.size()));
  CHECK(Append(absl::StrCat(options_.journal_directory,
                            "/journal/shard-00000-of-00001/",
                            SegmentName(place.segment)),
               bytes)
            .ok());
}

// All that was in flight to the shard is lost with it.
void PushSimulation::Lose() {
  for (Worker& worker : workers_) {
    for (size_t lane = 0; lane < options_.lanes; ++lane) {
      EndStream(worker, lane);
    }
  }
  if (Below(2) == 0) CutOffARecord();
  table_.reset();
  RestoreWithJournal();
  ++report_.restores;
}

void PushSimulation::RestoreWithJournal() {
  wire::LoadRequest order;
  order.set_run_id("run");
  order.set_num_shards(1);
  order.set_journal(wire::LoadRequest::WRITTEN);
  if (saved_.place.has_value()) order.set_checkpoint("the newest one");
  table_ = MakeTable(saved_.values, saved_.windows);
  if (options_.mutant == Mutant::kIgnoresTheJournal) {
    CHECK(RemoveTree(options_.journal_directory).ok());
    saved_.place.reset();
  }
  const absl::StatusOr<RestoredJournal> restored =
      RestoreJournal(order, options_.journal_directory, saved_.place,
                     /*of_standby=*/std::nullopt, *table_);
  CHECK(restored.ok()) << restored.status();
  CHECK(restored->lost.empty()) << restored->lost;
}

void PushSimulation::Step() {
  Worker& worker = workers_[Below(workers_.size())];
  const size_t lane = Below(options_.lanes);
  if (Below(1000) < options_.stream_ends) EndStream(worker, lane);
  if (Below(1000) < options_.restores) {
    options_.journal_directory.empty() ? Restore() : Lose();
  }
  if (!options_.journal_directory.empty() && Below(1000) < options_.restores) {
    Save();
  }
  switch (Below(8)) {
    case 0:
    case 1:
      if (worker.started < options_.pushes) StartPush(worker);
      return;
    case 2:
    case 3:
      if (!IsStarved(worker, lane)) Transmit(worker, lane);
      return;
    case 4:
    case 5:
      if (!IsStarved(worker, lane)) {
        Deliver(worker, worker.streams[lane], /*is_ghost=*/false);
      }
      return;
    case 6:
      Acknowledge(worker, lane);
      return;
    case 7:
      if (Below(4) == 0) DeliverLate(worker);
      return;
  }
}

bool PushSimulation::IsComplete() const {
  return std::all_of(
      workers_.begin(), workers_.end(), [this](const Worker& worker) {
        return worker.started == options_.pushes &&
               worker.outbox.unanswered() == 0 && worker.ghosts.empty();
      });
}

PushSimulation::Report PushSimulation::Run() {
  const size_t limit = kStepsPerPush * options_.workers * options_.pushes;
  for (size_t i = 0; i < limit && !report_.complete; ++i) {
    Step();
    report_.complete = IsComplete();
  }
  for (const std::vector<float>& part : ValuesOfParts(*table_)) {
    report_.values.insert(report_.values.end(), part.begin(), part.end());
  }
  return std::move(report_);
}

}  // namespace parasol
