#include "tests/faults/step_simulation.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/log.h"
#include "cluster/rpc/payload.h"
#include "proto/chief.pb.h"
#include "proto/parameter.pb.h"

namespace parasol {
namespace {

// A schedule that takes more does not end.
constexpr int kEventsPerStep = 10000;
constexpr int kIds = 9;

template <typename T>
PayloadView ViewOf(const std::vector<T>& values) {
  return PayloadView(
      {absl::string_view(reinterpret_cast<const char*>(values.data()),
                         values.size() * sizeof(T))});
}

// Numbers of different sizes, whose sums depend on their order.
float Noise(int64_t step, int replica, int place) {
  std::mt19937 random(10007 * step + 101 * replica + place);
  return std::ldexp(static_cast<float>(random() % 2000) - 1000.f,
                    -static_cast<int>(random() % 20));
}

}  // namespace

StepSimulation::StepSimulation(const Options& options)
    : options_(options),
      random_(options.seed),
      plan_(options.replicas, /*first_version=*/1, /*resumed_step=*/0),
      workers_(options.workers),
      saved_(options.shards),
      kills_left_(options.kills),
      restores_left_(options.restores),
      checkpoints_left_(options.checkpoints) {
  plan_.SetEnd(options.steps);
  shards_.resize(options.shards);
  for (int shard = 0; shard < options.shards; ++shard) {
    saved_[shard].values.assign(kVariables, 1);
    shards_[shard] = MakeShard(shard, StepState::Origin::kInitial);
  }
  for (int worker = 0; worker < options.workers; ++worker) Start(worker);
}

StepSimulation::~StepSimulation() {
  snapshots_.clear();
  for (const auto& shard : shards_) {
    shard->Abandon(absl::UnavailableError("the simulation ends"));
  }
}

StepSimulation::Report StepSimulation::Run() {
  const int64_t limit = kEventsPerStep * options_.steps;
  for (int64_t event = 0; event < limit && refusal_.ok() && !report_.complete;
       ++event) {
    Step();
    report_.complete = IsComplete();
  }
  if (report_.complete) {
    report_.values = Values();
  } else {
    report_.stuck = Describe();
  }
  return report_;
}

void StepSimulation::Step() {
  Worker& worker = workers_[Below(options_.workers)];
  const int shard = Below(options_.shards);
  const int dice = Below(1000);
  if (dice < 3 && kills_left_ > 0 && HasStepsLeft()) {
    --kills_left_;
    Kill(Below(options_.workers));
  } else if (dice < 6 && restores_left_ > 0 && HasStepsLeft()) {
    --restores_left_;
    Restore(shard);
  } else if (dice < 40) {
    AdvanceCheckpoint();
  } else if (dice < 60) {
    shards_[shard]->GoOnAt(plan_.global_step());
  } else if (worker.incarnation == 0) {
    if (dice < 100) Start(static_cast<int>(&worker - workers_.data()));
  } else if (dice < 120) {
    Claim(worker);
  } else if (dice < 400) {
    Act(worker);
  } else if (dice < 700) {
    Deliver(worker, shard);
  } else {
    Hear(worker);
  }
}

void StepSimulation::Start(int index) {
  Worker& worker = workers_[index];
  worker = Worker();
  worker.incarnation = next_incarnation_++;
  worker.values.resize(options_.shards * kVariables);
  worker.to_shard.resize(options_.shards);
  plan_.Enter(worker.incarnation, {0});
}

// Its place is free at once, or when its lease ends or it comes back.
void StepSimulation::Kill(int index) {
  Worker& worker = workers_[index];
  if (worker.incarnation == 0) return;
  ++report_.kills;
  plan_.Release(worker.incarnation);
  const bool comes_back = Below(2) == 0;
  worker = Worker();
  if (comes_back) Start(index);
}

void StepSimulation::Claim(Worker& worker) {
  plan_.Report(worker.incarnation, worker.completed);
  wire::ClaimStepsRequest claim;
  claim.mutable_task()->set_incarnation(worker.incarnation);
  wire::ClaimStepsResponse response;
  plan_.Answer(claim, 0, options_.workers, response);
  worker.version = response.assignment_version();
  worker.replicas.assign(response.replica().begin(), response.replica().end());
  worker.completed = std::max(worker.completed, plan_.global_step());
}

void StepSimulation::Act(Worker& worker) {
  switch (worker.state) {
    case State::kIdle:
      if (worker.replicas.empty() || worker.completed >= options_.steps) return;
      worker.share = worker.replicas;
      worker.share_version = worker.version;
      if (worker.values_step < worker.completed) {
        return StartPull(worker, worker.completed);
      }
      return BeginStep(worker, worker.values_step);
    case State::kPulling:
      if (worker.unanswered.empty()) FinishPull(worker);
      return;
    case State::kComputing:
      return Compute(worker);
    case State::kPullingRows:
      if (worker.rows.size() == IdsOf(worker.step, worker.replica).size()) {
        PushGradients(worker);
      }
      return;
    case State::kAwaiting:
      if (!worker.unanswered.empty()) {
        LookAround(worker);
      } else if (HasFragments()) {
        PullFragment(worker);
      } else {
        FinishStep(worker);
      }
      return;
    case State::kPullingFragment:
      if (worker.unanswered.empty()) {
        FinishPass(worker);
      } else if (options_.mutant != Mutant::kDeafPull) {
        LookAround(worker);
      }
      return;
  }
}

bool StepSimulation::LookAround(Worker& worker) {
  if (worker.is_to_push_again) {
    PushAgain(worker);
    return true;
  }
  if (worker.version == worker.share_version) return false;
  worker.share = worker.replicas;
  worker.share_version = worker.version;
  worker.state = State::kComputing;
  return true;
}

void StepSimulation::StartPull(Worker& worker, int64_t min_step) {
  worker.state = State::kPulling;
  worker.step = min_step;
  worker.pulled = UpdateBounds();
  for (int shard = 0; shard < options_.shards; ++shard) {
    for (int place = 0; place < kVariables; ++place) {
      Send(worker, {.shard = shard, .place = place, .step = min_step});
    }
  }
}

void StepSimulation::FinishPull(Worker& worker) {
  const int64_t step = HasFragments() ? worker.pulled.min : worker.pulled.max;
  worker.completed = std::max(worker.completed, step);
  if (worker.pulled.min < worker.pulled.max) {
    ++report_.mixed_pulls;
    if (!HasFragments()) return StartPull(worker, step);
  }
  BeginStep(worker, step);
}

void StepSimulation::BeginStep(Worker& worker, int64_t step) {
  worker.step = step;
  worker.pass = 0;
  worker.values_step = -1;
  worker.computed.clear();
  worker.pushes.clear();
  worker.pushed.clear();
  worker.is_to_push_again = false;
  worker.state =
      worker.step < options_.steps ? State::kComputing : State::kIdle;
}

void StepSimulation::Compute(Worker& worker) {
  for (const int replica : worker.share) {
    if (!worker.computed.insert(replica).second) continue;
    worker.replica = replica;
    worker.rows.clear();
    worker.state = State::kPullingRows;
    std::map<int, std::vector<uint64_t>> ids;
    for (const uint64_t id : IdsOf(worker.step, replica)) {
      ids[id % options_.shards].push_back(id);
    }
    for (auto& [shard, some] : ids) {
      Send(worker, {.shard = shard,
                    .place = kVariables,
                    .step = worker.step,
                    .ids = std::move(some)});
    }
    return;
  }
  worker.state = State::kAwaiting;
}

// Gradients depend on all values that were pulled.
void StepSimulation::PushGradients(Worker& worker) {
  if (HasFragments()) {
    const bool has_earlier = options_.mutant != Mutant::kNothingEarlier;
    for (int pass = has_earlier ? 0 : worker.pass; pass <= worker.pass;
         ++pass) {
      PushFragment(worker, pass, /*is_zero=*/pass < worker.pass);
    }
    worker.state = State::kComputing;
    return;
  }
  const int64_t step = worker.step;
  const int replica = worker.replica;
  float sum = 0;
  for (const float value : worker.values) sum = sum / 2 + value;
  for (const auto& [id, value] : worker.rows) sum = sum / 2 + value;
  for (int shard = 0; shard < options_.shards; ++shard) {
    Operation push{
        .shard = shard, .is_push = true, .step = step, .replica = replica};
    for (push.place = 0; push.place < kVariables; ++push.place) {
      push.values = {sum / 64 + Noise(step, replica, push.place)};
      Send(worker, push);
      worker.pushes.push_back(push);
    }
    push.values.clear();
    for (const auto& [id, value] : worker.rows) {
      if (static_cast<int>(id % options_.shards) != shard) continue;
      push.ids.push_back(id);
      push.values.push_back(value / 7 + sum / 64 + Noise(step, replica, 50));
    }
    Send(worker, push);
    worker.pushes.push_back(push);
  }
  worker.state = State::kComputing;
}

void StepSimulation::PushFragment(Worker& worker, int pass, bool is_zero) {
  if (!worker.pushed.emplace(worker.replica, pass).second) return;
  report_.earlier += is_zero;
  for (int shard = 0; shard < options_.shards; ++shard) {
    for (int place = 0; place < kPlaces; ++place) {
      if (PassOf(place) != pass) continue;
      Operation push{.shard = shard,
                     .place = place,
                     .is_push = true,
                     .step = worker.step,
                     .replica = worker.replica};
      if (place < kVariables) {
        push.values = {is_zero ? 0 : Noise(worker.step, worker.replica, place)};
      }
      Send(worker, push);
      worker.pushes.push_back(push);
    }
  }
}

void StepSimulation::PullFragment(Worker& worker) {
  worker.state = State::kPullingFragment;
  worker.pulled = UpdateBounds();
  for (int shard = 0; shard < options_.shards; ++shard) {
    for (int place = 0; place < kVariables; ++place) {
      if (PassOf(place) != worker.pass) continue;
      Send(worker, {.shard = shard, .place = place, .step = worker.step + 1});
    }
  }
}

void StepSimulation::FinishPass(Worker& worker) {
  if (worker.pass == 0) worker.values_step = worker.step + 1;
  if (worker.pulled.max != worker.step + 1) worker.values_step = -1;
  worker.computed.clear();
  worker.state = State::kComputing;
  if (++worker.pass == options_.fragments) FinishStep(worker);
}

void StepSimulation::PushAgain(Worker& worker) {
  worker.is_to_push_again = false;
  for (const Operation& push : worker.pushes) Send(worker, push);
}

void StepSimulation::FinishStep(Worker& worker) {
  worker.completed = std::max(worker.completed, worker.step + 1);
  worker.state = State::kIdle;
}

void StepSimulation::Send(Worker& worker, Operation operation) {
  operation.id = next_id_++;
  worker.to_shard[operation.shard].push_back(operation.id);
  worker.unanswered[operation.id] = std::move(operation);
}

void StepSimulation::Deliver(Worker& worker, int shard) {
  std::deque<int64_t>& queue = worker.to_shard[shard];
  if (queue.empty()) return;
  const auto operation = worker.unanswered.find(queue.front());
  queue.pop_front();
  // One that was sent twice may have been answered.
  if (operation == worker.unanswered.end()) return;
  Execute(worker, operation->second);
}

void StepSimulation::Execute(Worker& worker, const Operation& operation) {
  const OperationDone done =
      [this, index = &worker - workers_.data(),
       incarnation = worker.incarnation,
       id = operation.id](absl::StatusOr<OperationResult> result) {
        if (result.ok() && result->read != nullptr) result = result->read();
        Worker& worker = workers_[index];
        if (worker.incarnation != incarnation) return;
        Answer answer{.id = id};
        if (result.ok()) {
          answer.result = *std::move(result);
        } else {
          answer.unavailable = true;
          if (!absl::IsUnavailable(result.status())) refusal_ = result.status();
        }
        worker.answers.push_back(std::move(answer));
      };
  ParameterShard& table = *shards_[operation.shard];
  wire::SyncStep sync;
  sync.set_step(operation.step);
  sync.set_replica(operation.replica);
  wire::TensorRange range;
  range.set_part(operation.place);
  range.set_count(1);
  int64_t min_updates = operation.step;
  if (options_.mutant == Mutant::kNoPreviousValues) {
    min_updates =
        std::max(min_updates, UpdatesOf(operation.shard, operation.place));
  }
  wire::Operation request;
  std::vector<PayloadView> payloads;
  if (operation.place >= kVariables) payloads = {ViewOf(operation.ids)};
  if (operation.is_push) payloads.push_back(ViewOf(operation.values));
  if (operation.place < kVariables && operation.is_push) {
    *request.mutable_push()->add_range() = range;
    *request.mutable_push()->mutable_sync() = sync;
  } else if (operation.place < kVariables) {
    *request.mutable_pull()->add_range() = range;
    request.mutable_pull()->set_min_updates(min_updates);
  } else if (operation.is_push) {
    request.mutable_row_push()->set_rows(operation.ids.size());
    *request.mutable_row_push()->mutable_sync() = sync;
  } else {
    request.mutable_row_pull()->set_rows(operation.ids.size());
    request.mutable_row_pull()->set_min_updates(min_updates);
  }
  table.Execute(worker.incarnation, request, payloads, done);
}

void StepSimulation::Hear(Worker& worker) {
  if (worker.answers.empty()) return;
  const Answer answer = std::move(worker.answers.front());
  worker.answers.pop_front();
  const auto found = worker.unanswered.find(answer.id);
  if (found == worker.unanswered.end()) return;  // it was sent twice
  const Operation& operation = found->second;
  if (answer.unavailable) {
    ++report_.refusals;
    worker.to_shard[operation.shard].push_back(operation.id);
    return;
  }
  if (operation.is_push) {
    report_.duplicates += answer.result.duplicate;
  } else {
    std::vector<float> values;
    for (const PayloadRef& payload : answer.result.payloads) {
      const auto* first = static_cast<const float*>(payload.data);
      values.insert(values.end(), first, first + payload.size / sizeof(float));
    }
    if (operation.place < kVariables) {
      worker.values[operation.shard * kVariables + operation.place] =
          values.at(0);
    }
    for (size_t i = 0; i < operation.ids.size(); ++i) {
      worker.rows[operation.ids[i]] = values.at(i);
    }
    worker.pulled.Include(answer.result.min_updates);
    worker.pulled.Include(answer.result.max_updates);
  }
  worker.unanswered.erase(found);
}

std::unique_ptr<ParameterShard> StepSimulation::MakeShard(
    int shard, StepState::Origin origin) const {
  wire::SyncSpec sync;
  sync.set_replicas_to_aggregate(options_.wanted);
  sync.set_total_replicas(options_.replicas);
  return MakeSimulatedShard(shard, sync, options_.memory_bytes, saved_[shard],
                            origin);
}

// Workers send again what is not answered.
void StepSimulation::Restore(int shard) {
  ++report_.restores;
  EndCheckpoint(/*is_complete=*/false);
  shards_[shard]->Abandon(absl::UnavailableError("killed"));
  shards_[shard] = MakeShard(shard, StepState::Origin::kRestored);
  for (Worker& worker : workers_) {
    if (worker.incarnation == 0) continue;
    worker.is_to_push_again = options_.mutant != Mutant::kNoSecondPush;
    const auto is_of_shard = [&](int64_t id) {
      const auto operation = worker.unanswered.find(id);
      return operation != worker.unanswered.end() &&
             operation->second.shard == shard;
    };
    std::erase_if(worker.answers, [&](const Answer& answer) {
      return is_of_shard(answer.id) && (answer.unavailable || Below(2) == 0);
    });
    std::deque<int64_t>& queue = worker.to_shard[shard];
    queue.clear();
    for (const auto& [id, operation] : worker.unanswered) {
      if (operation.shard == shard) queue.push_back(id);
    }
  }
}

void StepSimulation::AdvanceCheckpoint() {
  if (!holding_) {
    if (checkpoints_left_ == 0 || !HasStepsLeft() || Below(20) > 0) return;
    --checkpoints_left_;
    holding_ = true;
    held_.assign(options_.shards, -1);
    snapshots_.resize(options_.shards);
    return;
  }
  const int shard = Below(options_.shards);
  if (cut_ < 0) {
    if (held_[shard] < 0) held_[shard] = (*shards_[shard]->Hold()).max;
    if (*std::min_element(held_.begin(), held_.end()) < 0) return;
    cut_ = std::max(*std::max_element(held_.begin(), held_.end()),
                    plan_.global_step());
    if (options_.mutant == Mutant::kEarlyCut && cut_ > 0) --cut_;
    return;
  }
  if (snapshots_[shard] == nullptr) {
    snapshots_[shard] = *shards_[shard]->BeginSnapshotAt(cut_);
    return;
  }
  for (const auto& snapshot : snapshots_) {
    if (snapshot == nullptr || !snapshot->IsDone()) return;
  }
  EndCheckpoint(/*is_complete=*/true);
}

void StepSimulation::EndCheckpoint(bool is_complete) {
  if (!holding_) return;
  std::vector<SavedShard> saved(options_.shards);
  for (int shard = 0; shard < options_.shards && is_complete; ++shard) {
    auto snapshot =
        snapshots_[shard]->Wait(Clock::Real(), [] { return false; });
    if (!snapshot.ok()) {
      CHECK(absl::IsAborted(snapshot.status())) << snapshot.status();
      ++report_.missed_cuts;
      is_complete = false;
      break;
    }
    saved[shard] = SaveShard(*snapshot);
    CHECK_EQ(saved[shard].updates, cut_);
  }
  if (is_complete) {
    saved_ = std::move(saved);
    ++report_.checkpoints;
  }
  snapshots_.clear();
  for (const auto& shard : shards_) shard->EndHold();
  holding_ = false;
  cut_ = -1;
}

bool StepSimulation::IsComplete() {
  if (HasStepsLeft()) return false;
  for (int shard = 0; shard < options_.shards; ++shard) {
    for (int place = 0; place < kPlaces; ++place) {
      if (UpdatesOf(shard, place) < options_.steps) return false;
    }
  }
  return true;
}

int64_t StepSimulation::UpdatesOf(int shard, int place) {
  const ShardSnapshot snapshot = shards_[shard]->TakeSnapshot();
  return place < kVariables ? snapshot.chunks[place].contents.updates
                            : snapshot.tables[0].updates();
}

std::vector<uint32_t> StepSimulation::Values() {
  std::vector<uint32_t> bits;
  std::map<uint64_t, float> rows;
  for (const auto& shard : shards_) {
    ShardSnapshot snapshot = shard->TakeSnapshot();
    const SavedShard saved = SaveShard(snapshot);
    for (const float value : saved.values) {
      bits.push_back(std::bit_cast<uint32_t>(value));
    }
    for (size_t i = 0; i < saved.ids.size(); ++i) {
      rows[saved.ids[i]] = saved.rows[i];
    }
  }
  for (const auto& [id, value] : rows) {
    bits.push_back(static_cast<uint32_t>(id));
    bits.push_back(std::bit_cast<uint32_t>(value));
  }
  return bits;
}

std::string StepSimulation::Describe() {
  std::string text = absl::StrCat("global step ", plan_.global_step());
  if (!refusal_.ok()) absl::StrAppend(&text, "; ", refusal_.message());
  for (int shard = 0; shard < options_.shards; ++shard) {
    absl::StrAppend(&text, "; shard ", shard, " at");
    for (int place = 0; place < kPlaces; ++place) {
      absl::StrAppend(&text, " ", UpdatesOf(shard, place));
    }
  }
  for (const Worker& worker : workers_) {
    absl::StrAppend(&text, "; worker ", worker.incarnation, " in state ",
                    static_cast<int>(worker.state), " of step ", worker.step,
                    " with ", worker.share.size(), " replicas, ",
                    worker.unanswered.size(), " unanswered");
  }
  return text;
}

std::vector<uint64_t> StepSimulation::IdsOf(int64_t step, int replica) const {
  if (HasFragments()) return {};
  const uint64_t first = (7 * step + 3 * replica) % kIds;
  if (replica % 2 == 0) return {first};
  return {first, (first + 1 + step % 3) % kIds};
}

}  // namespace parasol
