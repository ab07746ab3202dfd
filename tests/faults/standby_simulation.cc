#include "tests/faults/standby_simulation.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/log.h"
#include "cluster/rpc/follow_message.h"
#include "cluster/rpc/payload.h"
#include "cluster/trust/process_secret.h"
#include "cluster/trust/standby_ticket.h"
#include "ps/operation/operation.h"
#include "ps/shard/load_shard.h"
#include "ps/shard/shard_snapshot.h"
#include "ps/shard/write_shard.h"
#include "ps/testing/requests.h"
#include "storage/checkpoint_store.h"
#include "storage/durable_file.h"
#include "storage/journal/journal_format.h"

namespace parasol {
namespace {

// The standby's shard's parts.
constexpr std::array<size_t, 2> kSizes = {2, 5};
constexpr size_t kStepsForPush = 4000;
constexpr int kShardsPs = 0;  // the place that has the shard

wire::LoadRequest OrderOfShard(bool has_journal = false) {
  wire::LoadRequest order;
  order.set_run_id("run");
  order.set_num_shards(1);
  order.mutable_optimizer()->mutable_sgd()->set_learning_rate(1);
  order.mutable_standby();
  if (has_journal) order.set_journal(wire::LoadRequest::WRITTEN);
  for (size_t i = 0; i < kSizes.size(); ++i) {
    const auto size = static_cast<int64_t>(kSizes[i]);
    wire::PartSpec part = MakePart(i, absl::StrCat("v", i), size, 0, size);
    part.mutable_initializer()->mutable_constant()->set_value(0);
    *order.add_part() = std::move(part);
  }
  return order;
}

uint64_t NewestSegmentIn(const std::string& directory) {
  uint64_t newest = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    newest = std::max(
        newest, SegmentOfName(entry.path().filename().string()).value_or(0));
  }
  return newest;
}

std::vector<float> ValuesIn(ParameterShard& shard) {
  std::vector<float> all;
  for (const ShardSnapshot::Chunk& chunk : shard.TakeSnapshot().chunks) {
    const absl::Span<const float> values = chunk.contents.value.span();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

size_t FirstOf(size_t part) {
  size_t first = 0;
  for (size_t i = 0; i < part; ++i) first += kSizes[i];
  return first;
}

std::shared_ptr<const Call> PushCall() {
  const auto call = std::make_shared<Call>();
  call->is_push = true;
  return call;
}

}  // namespace

StandbySimulation::StandbySimulation(const Options& options)
    : options_(options),
      random_(options.seed),
      call_(PushCall()),
      board_({kShardsPs, 1}, {}) {
  hosts_.push_back(std::make_unique<Host>(random_()));
  if (!options_.directory.empty()) {
    CHECK(RemoveTree(options_.directory).ok());
    std::filesystem::create_directories(options_.directory);
  }
  auto shard = LoadShard(Order(), Limits());
  CHECK(shard.ok()) << shard.status();
  processes_.push_back(NewProcess(*std::move(shard), StandbyBoard::kSaved));
  report_.acknowledged.resize(FirstOf(kSizes.size()));
  for (size_t i = 0; i < options_.workers; ++i) {
    Worker& worker = workers_.emplace_back(
        options_.lanes, ShardOutbox::Limits{.message_operations = 3});
    worker.incarnation = 100 + i;
    for (Stream& stream : worker.streams) stream.to = processes_.back();
  }
}

std::shared_ptr<StandbySimulation::Process> StandbySimulation::NewProcess(
    std::shared_ptr<ParameterShard> shard, uint64_t kept) {
  auto process = std::make_shared<Process>();
  process->epoch = static_cast<int64_t>(processes_.size()) + 1;
  process->shard = std::move(shard);
  process->shard->KeepFeed(std::make_shared<StandbyFeed>(clock_));
  process->duty.Loaded(/*is_new=*/true, kept);
  UseRule(*process);
  return process;
}

void StandbySimulation::UseRule(Process& process) {
  StandbyFeed::Rule rule = process.duty.rule();
  if (options_.mutant == Mutant::kAcknowledgesBeforeHeld &&
      rule == StandbyFeed::Rule::kHeld) {
    rule = StandbyFeed::Rule::kAlone;
  }
  if (options_.mutant == Mutant::kGoesOnAlone &&
      rule == StandbyFeed::Rule::kWait) {
    rule = StandbyFeed::Rule::kAlone;
  }
  process.shard->feed()->SetRule(rule);
  process.shard->feed()->Release();
}

// The workers.

void StandbySimulation::StartPush(Worker& worker) {
  ShardOperation::Ranges ranges;
  std::vector<float> gradient;
  const size_t skipped = Below(kSizes.size() + 1);
  for (size_t part = 0; part < kSizes.size(); ++part) {
    if (part == skipped) continue;
    ranges.push_back({.part = static_cast<uint32_t>(part),
                      .count = kSizes[part],
                      .target = nullptr});
    for (size_t i = 0; i < kSizes[part]; ++i) {
      gradient.push_back(static_cast<float>(1 + Below(8)));
    }
  }
  const size_t payloads = ranges.size();
  const size_t bytes = gradient.size() * sizeof(float);
  auto payload = std::make_unique<std::byte[]>(bytes);
  std::memcpy(payload.get(), gradient.data(), bytes);
  ++worker.started;
  worker.outbox.Add(std::make_shared<const EncodedOperation>(
      EncodedOperation{.asked = {.call = call_,
                                 .lane = Below(options_.lanes),
                                 .subject = std::move(ranges)},
                       .payload = std::move(payload),
                       .payloads = payloads,
                       .bytes = bytes}));
}

void StandbySimulation::Transmit(Worker& worker, size_t lane) {
  Message message = worker.outbox.Take(lane);
  if (message.empty()) return;
  worker.streams[lane].to_shard.push_back(std::move(message));
}

void StandbySimulation::Deliver(Worker& worker, Stream& stream) {
  if (stream.to_shard.empty() || !stream.to->is_alive) return;
  const Message message = std::move(stream.to_shard.front());
  stream.to_shard.pop_front();
  for (const ShardOutbox::Entry& entry : message) {
    wire::Push push;
    push.set_sequence(entry.sequence);
    std::vector<PayloadView> payloads;
    const char* next =
        reinterpret_cast<const char*>(entry.operation->payload.get());
    for (const ShardOperation::Range& range : entry.operation->asked.ranges()) {
      wire::TensorRange& on_wire = *push.add_range();
      on_wire.set_part(range.part);
      on_wire.set_count(range.count);
      const size_t bytes = range.count * sizeof(float);
      payloads.emplace_back(
          PayloadView::Pieces{absl::string_view(next, bytes)});
      next += bytes;
    }
    stream.to->shard->Execute(
        worker.incarnation, OperationOf(push), payloads,
        [this, answers = stream.to_worker,
         id = entry.id](const absl::StatusOr<OperationResult>& result) {
          // Another process has the journal: the push is sent to that one.
          if (absl::IsUnavailable(result.status())) return;
          CHECK(result.ok()) << result.status();
          if (result->duplicate) ++report_.duplicates;
          answers->push_back(id);
        });
  }
}

void StandbySimulation::Acknowledge(Worker& worker, size_t lane) {
  std::vector<uint64_t>& answers = *worker.streams[lane].to_worker;
  if (answers.empty()) return;
  std::swap(answers[Below(answers.size())], answers.back());
  const uint64_t id = answers.back();
  answers.pop_back();
  const ShardOutbox::Entry answered = worker.outbox.Answer(lane, id);
  CHECK(answered.operation != nullptr) << "answered twice";
  const auto* gradient =
      reinterpret_cast<const float*>(answered.operation->payload.get());
  for (const ShardOperation::Range& range :
       answered.operation->asked.ranges()) {
    for (size_t i = 0; i < range.count; ++i) {
      report_.acknowledged[FirstOf(range.part) + i] += *gradient++;
    }
  }
}

// The worker opens the next stream to the process that has the shard now.
void StandbySimulation::EndStream(Worker& worker, size_t lane) {
  Stream ended = std::exchange(worker.streams[lane], {});
  worker.streams[lane].to = processes_.back();
  if (!ended.to_shard.empty()) {
    ended.to_shard.resize(Below(ended.to_shard.size() + 1));
  }
  if (!ended.to_shard.empty()) worker.ghosts.push_back(std::move(ended));
  worker.outbox.Rewind(lane);
}

void StandbySimulation::DeliverLate(Worker& worker) {
  if (worker.ghosts.empty()) return;
  Stream& ghost = worker.ghosts[Below(worker.ghosts.size())];
  Deliver(worker, ghost);
  if (!ghost.to_shard.empty() && ghost.to->is_alive) return;
  std::swap(ghost, worker.ghosts.back());
  worker.ghosts.pop_back();
}

// A shard's process and its standby.

void StandbySimulation::Make(Process& process) {
  const std::optional<wire::StandbyPlace> place = process.duty.ToMake(now_);
  if (!place || Below(1000) >= options_.makes) return;
  process.duty.Making(*place, now_);
  Host& host = *hosts_.back();
  wire::FollowHeader header;
  header.set_run_id("run");
  header.set_num_shards(1);
  header.set_place_epoch(process.epoch);
  header.set_ps_incarnation(place->ps_incarnation());
  *header.mutable_load() = OrderOfShard();
  header.mutable_load()->mutable_standby()->set_number(place->number());
  auto stream = host.standbys.Follow(header, [] {});
  // It was replaced, or the host was.
  if (!stream.ok()) return LoseStandby(process);
  process.stream = *std::move(stream);
  const auto snapshot =
      process.shard->TakeSnapshotForStandby(clock_, [] { return false; });
  CHECK(snapshot.ok()) << snapshot.status();
  const auto state = ShardState::Write(*snapshot, 0, 1, 1 << 16);
  CHECK(state.ok()) << state.status();
  const absl::Status sent = state->ForEachPiece([&](absl::string_view piece) {
    wire::FollowRequest message;
    message.set_state(piece.data(), piece.size());
    process.to_standby.push_back(std::move(message));
    return absl::OkStatus();
  });
  CHECK(sent.ok()) << sent;
  wire::FollowRequest end;
  end.set_state_end(true);
  if (const PushJournal* const journal = process.shard->journal()) {
    end.set_journal(journal->end().journal);
    end.set_journal_record(journal->end().record);
  }
  process.to_standby.push_back(std::move(end));
}

void StandbySimulation::SendToStandby(Process& process) {
  if (process.stream == nullptr && !process.held_by_mutant) return;
  for (const FollowMessage& message :
       process.shard->feed()->Take(1, absl::ZeroDuration())) {
    process.to_standby.push_back(WholeRequest(message));
  }
}

void StandbySimulation::DeliverToStandby(Process& process) {
  if (process.to_standby.empty()) return;
  const wire::FollowRequest message = std::move(process.to_standby.front());
  process.to_standby.pop_front();
  if (process.held_by_mutant) {
    *process.held_by_mutant += message.record_size();
    wire::FollowResponse answer;
    answer.set_held(*process.held_by_mutant);
    process.from_standby.push_back(std::move(answer));
    return;
  }
  if (process.stream == nullptr) return;
  const auto answer = process.stream->Take(message);
  if (!answer.ok()) return LoseStandby(process);
  if (*answer) process.from_standby.push_back(**answer);
}

void StandbySimulation::HearStandby(Process& process) {
  if (process.from_standby.empty()) return;
  const wire::FollowResponse answer = process.from_standby.front();
  process.from_standby.pop_front();
  StandbyFeed& feed = *process.shard->feed();
  process.duty.HearStandby(answer, feed);
  UseRule(process);
  const absl::Status held = feed.Held(answer.held());
  CHECK(held.ok()) << held;
}

// What is on its way is lost, from anywhere on.
void StandbySimulation::LoseStandby(Process& process) {
  for (size_t i = Below(process.to_standby.size() + 1);
       i > 0 && process.stream != nullptr; --i) {
    if (!process.stream->Take(process.to_standby.front()).ok()) break;
    process.to_standby.pop_front();
  }
  process.stream.reset();
  process.to_standby.clear();
  process.from_standby.clear();
  process.held_by_mutant.reset();
  process.shard->feed()->End();
  process.duty.Lost(now_);
  UseRule(process);
}

// The chief.

void StandbySimulation::SendReport(const std::shared_ptr<Process>& process) {
  SentReport report = {.from = process, .number = ++process->report};
  process->duty.Report(report.request, now_);
  reports_.push_back(std::move(report));
}

void StandbySimulation::ChiefHears() {
  if (reports_.empty()) return;
  std::swap(reports_[Below(reports_.size())], reports_.back());
  const SentReport report = std::move(reports_.back());
  reports_.pop_back();
  if (report.from != processes_.back()) return;  // it was replaced
  const wire::StandbyReport& standby = report.request.standby();
  board_.Hear(kShardsPs, standby);
  if (Below(1000) < options_.chief_losses) return LoseChief();
  const auto wanted = board_.ToRecord();
  if (wanted) board_.Recorded(*wanted);
  const bool records =
      options_.mutant != Mutant::kAnswersBeforeItRecords || Below(2) == 0;
  if (wanted && records) disk_ = *wanted;
  if (Below(1000) < options_.chief_losses) return LoseChief();
  SentAnswer answer = {.to = report.from, .number = report.number};
  const auto kept = board_.AnswerTo(kShardsPs, standby);
  if (kept) answer.answer.set_kept_standby(*kept);
  if (kept && *kept != 0 && *kept != last_kept_) {
    last_kept_ = *kept;
    ++report_.synced;
  }
  const Host& host = *hosts_.back();
  wire::StandbyPlace& place = *answer.answer.mutable_standby_host();
  place.set_task("ps/1");
  place.set_ps_incarnation(PublicNumber(host.incarnation));
  place.set_number(StandbyTicket(0, 1, host.incarnation));
  answers_.push_back(std::move(answer));
}

void StandbySimulation::HearChief() {
  if (answers_.empty()) return;
  std::swap(answers_[Below(answers_.size())], answers_.back());
  const SentAnswer answer = std::move(answers_.back());
  answers_.pop_back();
  Process& process = *answer.to;
  // It waits for no answer but that to its last report.
  if (!process.is_alive || answer.number != process.report) return;
  process.duty.Hear(answer.answer);
  if (process.duty.IsMisplaced()) return LoseStandby(process);
  UseRule(process);
}

void StandbySimulation::LoseChief() {
  ++report_.chief_losses;
  board_ = StandbyBoard({kShardsPs, 1}, disk_);
  reports_.clear();
  // The next one gives the job to the process that is there.
  Process& process = *processes_.back();
  process.duty.Loaded(/*is_new=*/false, board_.KeptFor(kShardsPs));
  UseRule(process);
}

// Faults.

std::shared_ptr<ParameterShard> StandbySimulation::ShardOf(
    ShardState& state) const {
  wire::LoadRequest order = OrderOfShard();
  order.set_checkpoint(state.directory());
  auto load = ShardLoad::Create(order, LoadLimits());
  CHECK(load.ok()) << load.status();
  CHECK(state.MakeCheckpoint(load->Manifest()).ok());
  CHECK(load->Open().ok());
  auto shard = load->Run();
  CHECK(shard.ok()) << shard.status();
  return *std::move(shard);
}

void StandbySimulation::TakeOver() {
  uint64_t kept = board_.KeptFor(kShardsPs);
  if (options_.mutant == Mutant::kRestoresWhatWasGivenUp) kept = last_kept_;
  if (kept == StandbyBoard::kSaved || kept == StandbyBoard::kAlone) return;
  wire::TakeStandbyRequest request;
  request.set_run_id("run");
  request.set_num_shards(1);
  request.set_number(kept);
  request.set_ps_incarnation(PublicNumber(hosts_.back()->incarnation));
  request.set_place_epoch(static_cast<int64_t>(processes_.size()) + 1);
  auto state = hosts_.back()->standbys.Take(request);
  // It is gone: the process is not lost as well.
  if (!state.ok()) return;
  std::shared_ptr<ParameterShard> shard = ShardOf(*state);
  if (options_.mutant == Mutant::kForgetsWindows) {
    ShardSnapshot snapshot = shard->TakeSnapshot();
    snapshot.dedup.clear();
    auto without = ShardState::Write(std::move(snapshot), 0, 1, 1 << 16);
    CHECK(without.ok()) << without.status();
    shard = ShardOf(*without);
  }
  const bool stands_still = Below(2) == 0;
  if (!options_.directory.empty()) {
    GoOnWithJournal(state->in_journal(), /*may_be_torn=*/!stands_still, *shard);
  }
  ++report_.takeovers;
  Process& former = *processes_.back();
  former.is_alive = stands_still;
  if (options_.mutant == Mutant::kTakesFromTheOldPrimary &&
      former.stream != nullptr) {
    former.held_by_mutant =
        former.shard->feed()->appended() - former.shard->feed()->behind();
    for (const wire::FollowRequest& message : former.to_standby) {
      if (!message.state().empty() || message.state_end()) {
        former.held_by_mutant.reset();
      }
    }
    former.stream.reset();
  }
  processes_.push_back(NewProcess(std::move(shard), kept));
  if (!former.is_alive) EndStreamsTo(former);
}

void StandbySimulation::EndStreamsTo(const Process& former) {
  for (Worker& worker : workers_) {
    for (size_t lane = 0; lane < options_.lanes; ++lane) {
      if (worker.streams[lane].to.get() == &former) EndStream(worker, lane);
    }
  }
}

// Checkpoints and journals.

wire::LoadRequest StandbySimulation::Order() const {
  wire::LoadRequest order = OrderOfShard(!options_.directory.empty());
  if (step_ > 0) {
    order.set_checkpoint(CheckpointStore(Checkpoints()).PathOf(step_));
  }
  return order;
}

LoadLimits StandbySimulation::Limits() const {
  return {.journal_directory =
              absl::StrCat(options_.directory, "/machine-", machine_)};
}

void StandbySimulation::GoOnWithJournal(const JournalEnd& in_journal,
                                        bool may_be_torn,
                                        ParameterShard& shard) {
  const std::string directory =
      absl::StrCat(Limits().journal_directory, "/journal/shard-00000-of-00001");
  if (Below(1000) < options_.moves) {
    ++report_.moves;
    machine_ = 1 - machine_;
  } else if (may_be_torn && Below(1000) < options_.tears) {
    ++report_.tears;
    const std::string segment =
        absl::StrCat(directory, "/", SegmentName(NewestSegmentIn(directory)));
    std::filesystem::resize_file(
        segment, Below(std::filesystem::file_size(segment) + 1));
  }
  JournalEnd end = in_journal;
  if (options_.mutant == Mutant::kForgetsTheJournal) {
    CHECK(RemoveTree(directory).ok());
    end.journal = 0;
  } else if (options_.mutant == Mutant::kTakesAnyJournal) {
    end.record = 0;
  }
  auto load = ShardLoad::Create(Order(), Limits());
  CHECK(load.ok()) << load.status();
  CHECK(load->Open().ok());
  const absl::Status kept = load->GoOnWithJournal(shard, end);
  CHECK(kept.ok()) << kept;
  // What a mutant loses it does not know.
  is_journal_whole_ &= options_.mutant == Mutant::kForgetsTheJournal ||
                       load->restored_journal().lost.empty();
}

void StandbySimulation::Save() {
  auto store = CheckpointStore::OpenForWriting(Checkpoints());
  CHECK(store.ok()) << store.status();
  const auto working = store->Begin(step_ + 1);
  CHECK(working.ok()) << working.status();
  ParameterShard& shard = *processes_.back()->shard;
  ShardSnapshot snapshot = shard.TakeSnapshot();
  const std::optional<JournalPlace> place = snapshot.journal;
  durable::CheckpointManifest manifest =
      ShardLoad::Create(OrderOfShard(), LoadLimits())->Manifest();
  manifest.set_global_step(step_ + 1);
  const auto file = WriteShard(std::move(snapshot), 0, 1,
                               absl::StrCat(*working, "/shard.sst"));
  CHECK(file.ok()) << file.status();
  *manifest.add_file() = *file;
  // A checkpoint that nobody completes is none.
  if (Below(4) == 0) return;
  const absl::Status committed = store->Commit(*working, manifest);
  CHECK(committed.ok()) << committed;
  ++step_;
  is_journal_whole_ = true;
  shard.journal()->NoteComplete(*place);
}

void StandbySimulation::LoseAll() {
  if (!is_journal_whole_) return;
  ++report_.losses_of_all;
  processes_.back()->is_alive = false;
  LoseHost();
  auto shard = LoadShard(Order(), Limits());
  CHECK(shard.ok()) << shard.status();
  const Process& former = *processes_.back();
  processes_.push_back(
      NewProcess(*std::move(shard), board_.KeptFor(kShardsPs)));
  EndStreamsTo(former);
}

void StandbySimulation::LoseHost() {
  ++report_.host_losses;
  for (const std::shared_ptr<Process>& process : processes_) {
    if (process->stream == nullptr) continue;
    process->to_standby.clear();
    LoseStandby(*process);
  }
  hosts_.push_back(std::make_unique<Host>(random_()));
}

void StandbySimulation::Fault() {
  Worker& worker = workers_[Below(workers_.size())];
  if (Below(1000) < options_.stream_ends) {
    EndStream(worker, Below(options_.lanes));
  }
  if (Below(1000) < options_.takeovers) TakeOver();
  if (Below(1000) < options_.host_losses) LoseHost();
  if (Below(1000) < options_.chief_losses) LoseChief();
  if (!options_.directory.empty()) {
    if (Below(1000) < options_.saves) Save();
    if (Below(1000) < options_.losses_of_all) LoseAll();
  }
  if (Below(1000) < options_.cuts && processes_.back()->stream != nullptr) {
    ++report_.cuts;
    LoseStandby(*processes_.back());
  }
}

void StandbySimulation::StepOfWorker() {
  Worker& worker = workers_[Below(workers_.size())];
  const size_t lane = Below(options_.lanes);
  switch (Below(5)) {
    case 0:
      if (worker.started < options_.pushes) StartPush(worker);
      return;
    case 1:
      return Transmit(worker, lane);
    case 2:
      return Deliver(worker, worker.streams[lane]);
    case 3:
      return Acknowledge(worker, lane);
    case 4:
      return DeliverLate(worker);
  }
}

void StandbySimulation::StepOfStandby() {
  // Mostly the one that has the shard.
  const size_t back = Below(4) == 0 ? Below(processes_.size()) : 0;
  const std::shared_ptr<Process> process =
      processes_[processes_.size() - 1 - back];
  if (!process->is_alive) return;
  switch (Below(8)) {
    case 0:
      return Make(*process);
    case 1:
    case 2:
      return SendToStandby(*process);
    case 3:
    case 4:
      return DeliverToStandby(*process);
    case 5:
      return HearStandby(*process);
    case 6:
      return Below(2) == 0 ? SendReport(process) : ChiefHears();
    case 7:
      return HearChief();
  }
}

void StandbySimulation::Step() {
  now_ += absl::Milliseconds(50);
  Fault();
  StepOfWorker();
  StepOfStandby();
}

bool StandbySimulation::IsComplete() const {
  return std::all_of(workers_.begin(), workers_.end(),
                     [this](const Worker& worker) {
                       return worker.started == options_.pushes &&
                              worker.outbox.unanswered() == 0;
                     });
}

StandbySimulation::Report StandbySimulation::Run() {
  const size_t limit = kStepsForPush * options_.workers * options_.pushes;
  for (size_t i = 0; i < limit && !report_.complete; ++i) {
    Step();
    report_.complete = IsComplete();
  }
  report_.values = ValuesIn(*processes_.back()->shard);
  for (const std::shared_ptr<Process>& process : processes_) {
    process->stream.reset();
  }
  return std::move(report_);
}

}  // namespace parasol
