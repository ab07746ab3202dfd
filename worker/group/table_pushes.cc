#include "worker/group/table_pushes.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "worker/group/state/wait_intervals.h"

namespace parasol {
TablePushes::TablePushes(TrainingParameters& client, size_t tables,
                         bool in_step, Clock& clock)
    : client_(client), num_tables_(tables), in_step_(in_step), clock_(clock) {}

// The client reads what it sends from this object's memory.
TablePushes::~TablePushes() {
  absl::MutexLock lock(&mu_);
  for (const auto& sent : sent_) sent->answer->Wait().IgnoreError();
}

void TablePushes::Add(
    const TrainingParameters::SyncStep& step,
    const std::vector<TrainingParameters::RowGradient>& rows) {
  if (rows.empty()) return;
  absl::MutexLock lock(&mu_);
  if (step.step < step_) return;
  if (step.step > step_) {
    step_ = step.step;
    replicas_.clear();
  }
  Replica& replica = replicas_[step.replica];
  replica.tables.resize(num_tables_);
  std::vector<size_t> again;
  for (const TrainingParameters::RowGradient& table : rows) {
    std::shared_ptr<const Rows>& added = replica.tables[table.table];
    if (added != nullptr) {
      again.push_back(table.table);
      continue;
    }
    added = std::make_shared<Rows>(
        Rows{.ids = {table.ids.begin(), table.ids.end()},
             .values = {table.values.begin(), table.values.end()},
             .counts = {table.counts.begin(), table.counts.end()}});
  }
  if (replica.is_sent && in_step_ && !again.empty()) Push(step.replica, again);
}

bool TablePushes::HasAll(int64_t step, const std::vector<int>& replicas) const {
  return std::all_of(replicas.begin(), replicas.end(), [&](int number) {
    mu_.AssertHeld();
    const auto replica = replicas_.find(number);
    return step == step_ && replica != replicas_.end() &&
           std::count(replica->second.tables.begin(),
                      replica->second.tables.end(), nullptr) == 0;
  });
}

absl::Status TablePushes::Send(int64_t step, const std::vector<int>& replicas,
                               absl::FunctionRef<absl::Status()> may_go_on) {
  const auto has_all = [&] {
    mu_.AssertHeld();
    return HasAll(step, replicas);
  };
  while (true) {
    {
      absl::MutexLock lock(&mu_);
      if (clock_.AwaitWithTimeout(mu_, absl::Condition(&has_all),
                                  kPollInterval)) {
        std::vector<size_t> all(num_tables_);
        for (size_t table = 0; table < num_tables_; ++table) all[table] = table;
        for (const int replica : replicas) {
          if (std::exchange(replicas_.at(replica).is_sent, true)) continue;
          Push(replica, all);
        }
        return absl::OkStatus();
      }
    }
    RETURN_IF_ERROR(may_go_on());
  }
}

void TablePushes::Push(int number, const std::vector<size_t>& tables) {
  auto sent = std::make_unique<Sent>();
  sent->step = {.step = step_, .replica = number};
  TrainingParameters::PushRequest push;
  if (in_step_) push.sync = sent->step;
  for (const size_t table : tables) {
    sent->rows.push_back(replicas_.at(number).tables[table]);
    const Rows& rows = *sent->rows.back();
    push.rows.push_back({table, rows.ids, rows.values, rows.counts});
  }
  sent->answer = client_.Push(std::move(push));
  sent_.push_back(std::move(sent));
}

absl::Status TablePushes::AwaitAnswers(
    absl::FunctionRef<absl::Status()> may_go_on) {
  while (true) {
    Sent* next;
    {
      absl::MutexLock lock(&mu_);
      if (sent_.empty()) return absl::OkStatus();
      next = sent_.front().get();
    }
    while (!next->answer->WaitFor(kPollInterval)) RETURN_IF_ERROR(may_go_on());
    const absl::Status answer = next->answer->Wait();
    absl::MutexLock lock(&mu_);
    if (answer.ok()) NoteAnswer(*next);
    sent_.pop_front();
    RETURN_IF_ERROR(answer);
  }
}

void TablePushes::NoteAnswer(const Sent& sent) {
  const TrainingParameters::Pending::Outcome outcome = sent.answer->outcome();
  if (!in_step_ || !outcome.stale) return;
  LOG_EVERY(WARNING, kLogInterval)
      << "rows' gradients of step " << sent.step.step
      << " are dropped: the tables are at step " << outcome.max_updates;
  if (sent.step.step != step_) return;
  replicas_.at(sent.step.replica).is_dropped = true;
}

bool TablePushes::HasDropped(const TrainingParameters::SyncStep& step) const {
  absl::MutexLock lock(&mu_);
  const auto replica = replicas_.find(step.replica);
  return step.step == step_ && replica != replicas_.end() &&
         replica->second.is_dropped;
}

}  // namespace parasol
