#include "worker/group/step_gradients.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/types/span.h"
#include "base/log.h"
#include "worker/group/encoded_rows.h"

namespace parasol {
namespace {

std::shared_ptr<float[]> AllocateHere(size_t elements) {
  return std::shared_ptr<float[]>(new float[elements]());
}

}  // namespace

StepGradients::StepGradients(const GradientPacks& packs, size_t tables)
    : packs_(packs), tables_(tables), allocate_(AllocateHere) {}

// Contributions to operations that still run stay where they are: their
// memory belongs to replicas until the next step.
void StepGradients::AllocateBy(Allocate allocate) {
  absl::MutexLock lock(&mu_);
  allocate_ = allocate == nullptr ? AllocateHere : std::move(allocate);
  ++generation_;
}

void StepGradients::SetShare(std::vector<int> replicas) {
  absl::MutexLock lock(&mu_);
  share_ = std::move(replicas);
}

void StepGradients::BeginStep(int64_t step) {
  step_ = step;
  for (auto it = replicas_.begin(); it != replicas_.end();) {
    const bool has_left =
        std::count(share_.begin(), share_.end(), it->first) == 0;
    it = has_left ? replicas_.erase(it) : std::next(it);
  }
  for (auto& [number, replica] : replicas_) {
    std::fill(replica.has_variable.begin(), replica.has_variable.end(), false);
    std::fill(replica.takes_rows.begin(), replica.takes_rows.end(), false);
    std::fill(replica.has_rows.begin(), replica.has_rows.end(), false);
    // A late addition of an older step still writes where it began to.
    const bool is_written = std::exchange(replica.additions, 0) > 0;
    const bool has_memory = replica.generation == generation_ && !is_written;
    for (Pack& pack : replica.packs) {
      pack.variables = 0;
      if (!has_memory) pack.elements = nullptr;
    }
    replica.generation = generation_;
  }
}

StepGradients::Replica& StepGradients::ReplicaOf(int number) {
  const auto [it, is_new] = replicas_.try_emplace(number);
  Replica& replica = it->second;
  if (!is_new) return replica;
  replica.generation = generation_;
  replica.packs.resize(packs_.count());
  replica.has_variable.resize(packs_.num_variables());
  replica.rows.resize(tables_);
  replica.takes_rows.resize(tables_);
  replica.has_rows.resize(tables_);
  return replica;
}

StepGradients::Addition StepGradients::Begin(
    const TrainingParameters::PushRequest& push) {
  Addition addition;
  addition.step_ = push.sync->step;
  addition.replica_ = push.sync->replica;
  absl::MutexLock lock(&mu_);
  if (push.sync->step < step_) return addition;
  if (push.sync->step > step_) BeginStep(push.sync->step);
  Replica& replica = ReplicaOf(push.sync->replica);
  ++replica.additions;
  for (const TrainingParameters::Gradient& gradient : push.gradients) {
    if (replica.has_variable[gradient.variable]) continue;
    replica.has_variable[gradient.variable] = true;
    const GradientPacks::Place& place = packs_.place(gradient.variable);
    CHECK_LE(place.first + gradient.values.size(), packs_.elements(place.pack));
    Pack& pack = replica.packs[place.pack];
    if (pack.elements == nullptr) {
      pack.elements = allocate_(packs_.elements(place.pack));
    }
    addition.variables_.push_back({.gradient = gradient.values,
                                   .pack = place.pack,
                                   .first = place.first,
                                   .elements = pack.elements});
  }
  for (const TrainingParameters::RowGradient& rows : push.rows) {
    if (replica.takes_rows[rows.table]) continue;
    replica.takes_rows[rows.table] = true;
    addition.rows_.push_back({.gradient = rows});
  }
  return addition;
}

void StepGradients::Addition::Copy() {
  for (const Variable& variable : variables_) {
    std::copy(variable.gradient.begin(), variable.gradient.end(),
              variable.elements.get() + variable.first);
  }
  for (Rows& rows : rows_) {
    rows.encoded = EncodeRows(replica_, rows.gradient.ids, rows.gradient.values,
                              rows.gradient.counts);
  }
}

void StepGradients::End(Addition addition) {
  absl::MutexLock lock(&mu_);
  if (addition.step_ != step_) return;
  Replica& replica = replicas_.at(addition.replica_);
  --replica.additions;
  for (const Addition::Variable& variable : addition.variables_) {
    ++replica.packs[variable.pack].variables;
  }
  for (Addition::Rows& rows : addition.rows_) {
    replica.rows[rows.gradient.table] = std::move(rows.encoded);
    replica.has_rows[rows.gradient.table] = true;
  }
}

bool StepGradients::HasPack(int64_t step, size_t pack,
                            const std::vector<int>& replicas) const {
  absl::MutexLock lock(&mu_);
  return std::all_of(replicas.begin(), replicas.end(), [&](int number) {
    mu_.AssertHeld();
    const auto replica = replicas_.find(number);
    return step == step_ && replica != replicas_.end() &&
           replica->second.packs[pack].variables == packs_.variables(pack);
  });
}

bool StepGradients::HasRows(int64_t step, size_t table,
                            const std::vector<int>& replicas) const {
  absl::MutexLock lock(&mu_);
  return std::all_of(replicas.begin(), replicas.end(), [&](int number) {
    mu_.AssertHeld();
    const auto replica = replicas_.find(number);
    return step == step_ && replica != replicas_.end() &&
           replica->second.has_rows[table];
  });
}

std::vector<Contribution> StepGradients::ContributionsTo(
    size_t pack, const std::vector<int>& replicas) const {
  absl::MutexLock lock(&mu_);
  std::vector<Contribution> contributions;
  for (const int number : replicas) {
    contributions.push_back(
        {.replica = number,
         .values = absl::MakeConstSpan(
             replicas_.at(number).packs[pack].elements.get(),
             packs_.elements(pack))});
  }
  return contributions;
}

std::string StepGradients::RowsOf(size_t table,
                                  const std::vector<int>& replicas) const {
  absl::MutexLock lock(&mu_);
  std::string rows;
  for (const int number : replicas) rows += replicas_.at(number).rows[table];
  return rows;
}

}  // namespace parasol
