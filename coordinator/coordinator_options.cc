#include "coordinator/coordinator_options.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "cluster/job/durability.h"
#include "cluster/job/followed/followed_set.h"
#include "cluster/job/strategy.h"
#include "cluster/job/training_end.h"
#include "coordinator/steps/replica_plan.h"
#include "coordinator/steps/step_ledger.h"
#include "google/protobuf/util/message_differencer.h"

namespace parasol {
namespace {

// A chief's assignments of replicas have the versions
// (chief_epoch << kVersionShift) and following. Workers follow larger versions
// alone, and a chief may come back on a machine whose clock is behind.
constexpr int kVersionShift = 32;

using google::protobuf::util::MessageDifferencer;

// Returns true if an epoch of both jobs has as many steps, of the same data.
bool HaveSameEpochs(const job::Job& a, const job::Job& b) {
  return MessageDifferencer::Equals(a.train(), b.train()) &&
         MessageDifferencer::Equals(a.parameter_server(), b.parameter_server());
}

// Returns true if two jobs end at one step.
bool AreOneEnd(const job::Job& a, const job::Job& b) {
  return MessageDifferencer::Equals(a.end(), b.end()) &&
         (!a.end().has_epochs() || HaveSameEpochs(a, b));
}

// Returns the largest total that an earlier chief, whose job had another end,
// can have let the run reach; 0 if the end is the same.
int64_t EarlierEnd(const CoordinatorOptions& options) {
  if (!options.resumed || !options.resumed->job().has_end() ||
      AreOneEnd(options.resumed->job(), options.job)) {
    return 0;
  }
  return TrainingEnd(options.resumed->job())
      .step()
      .value_or(StepLedger::kMaxTotal);
}

}  // namespace

std::string ChangedOrder(const job::Job& was, const job::Job& job) {
  const auto changed = [](absl::string_view name, auto before, auto now) {
    return absl::StrCat(name, " is ", now, ", but was ", before);
  };
  if (was.seed() != job.seed()) {
    return changed("seed", was.seed(), job.seed());
  }
  if (was.train().shuffle_buffer() != job.train().shuffle_buffer()) {
    return changed("train.shuffle_buffer", was.train().shuffle_buffer(),
                   job.train().shuffle_buffer());
  }
  return "";
}

std::vector<std::string> WarningsOf(const CoordinatorOptions& options) {
  if (!options.resumed || !options.resumed->has_job() ||
      options.already_complete || options.followed) {
    return {};
  }
  const durable::EpochsSeen& seen = options.resumed->epochs_seen();
  const int64_t step = options.resumed->global_step();
  const bool is_between_epochs =
      seen.steps_per_epoch() > 0
          ? (step - seen.step()) % seen.steps_per_epoch() == 0
          : step == 0;
  if (is_between_epochs) return {};
  const job::Job& was = options.resumed->job();
  std::string changed = ChangedOrder(was, options.job);
  if (was.train().batch_size() != options.job.train().batch_size()) {
    absl::StrAppend(&changed, changed.empty() ? "" : "; ",
                    "train.batch_size is ", options.job.train().batch_size(),
                    ", but was ", was.train().batch_size());
  }
  if (changed.empty()) return {};
  const bool is_known = seen.steps_per_epoch() > 0;
  return {absl::StrCat(changed, " up to step ", step,
                       is_known ? ", " : ", perhaps ",
                       "in the middle of an epoch: some of its examples are "
                       "trained once more, others once less")};
}

bool IsState(const CoordinatorOptions& options, const TaskId& id) {
  return options.is_mirrored && id == TaskId{"ps", options.state_place};
}

size_t NumPsShards(const CoordinatorOptions& options) {
  const size_t shards = options.shards.size();
  return options.is_mirrored && shards > 1 ? shards - 1 : shards;
}

std::vector<int> ReplicatedPs(const CoordinatorOptions& options) {
  std::vector<int> places;
  if (!Replicates(options.job)) return places;
  for (size_t i = 0; i < NumPsShards(options); ++i) {
    const TaskId ps = {"ps", options.shards[i].ps_index};
    if (!IsState(options, ps)) places.push_back(ps.index);
  }
  std::sort(places.begin(), places.end());
  return places;
}

std::string NameOf(const CoordinatorOptions& options, const TaskId& id) {
  return IsState(options, id) ? TaskId{"worker", 0}.ToString() : id.ToString();
}

Membership::Options MembershipOf(const CoordinatorOptions& options) {
  Membership::Options membership;
  membership.lease = options.lease;
  membership.chief_epoch = options.chief_epoch;
  for (const auto& [id, address] : options.tasks) {
    membership.places.push_back(id);
  }
  for (const auto& [index, epoch] : options.ps_epochs) {
    membership.newest_epochs[{"ps", index}] = epoch;
  }
  return membership;
}

RunEvaluations::Options EvaluationsOf(const CoordinatorOptions& options) {
  RunEvaluations::Options evaluations = {.resumed = options.resumed,
                                         .evaluations = options.evaluations,
                                         .limit = options.worker_timeout};
  for (const auto& [id, address] : options.tasks) {
    evaluations.has_place |= id.role == "evaluator";
  }
  return evaluations;
}

StepGrants::Options GrantsOf(const CoordinatorOptions& options) {
  StepGrants::Options grants = {.is_resumed = options.resumed.has_value(),
                                .is_mirrored = options.is_mirrored,
                                .worker_timeout = options.worker_timeout};
  for (const auto& [id, address] : options.tasks) {
    grants.places += id.role == "worker";
  }
  if (options.resumed) {
    grants.epochs_seen = options.resumed->epochs_seen();
    grants.resumed_step = options.resumed->global_step();
    const job::Job& was = options.resumed->job();
    if (!HaveSameEpochs(was, options.job)) {
      grants.resumed_examples_per_step =
          was.train().batch_size() *
          std::max<int64_t>(
              1, was.parameter_server().synchronous().total_replicas());
    }
  }
  return grants;
}

std::optional<FollowedData> FollowedOf(const CoordinatorOptions& options) {
  if (!options.followed) return std::nullopt;
  return FollowedData(FollowedPattern(options.job.train()), *options.followed);
}

int RankOf(const wire::Task& task, const std::map<TaskId, std::string>& tasks) {
  const auto first = tasks.lower_bound(TaskId{task.role(), 0});
  return static_cast<int>(
      std::distance(first, tasks.lower_bound(TaskId::Of(task))));
}

WorkerArrival WorkerArrivalOf(const wire::RegisterRequest& request,
                              const std::map<TaskId, std::string>& tasks) {
  WorkerArrival arrival = {.completed = request.completed_steps(),
                           .shard = RankOf(request.task(), tasks)};
  if (request.has_clock_lead()) arrival.clock_lead = request.clock_lead();
  arrival.told = ToldBatches(request.steps_before_batches(), request.batch());
  return arrival;
}

std::unique_ptr<StepPlan> PlanOf(const CoordinatorOptions& options,
                                 absl::Time now) {
  const auto& resumed = options.resumed;
  const job::ParameterServerStrategy& strategy = options.job.parameter_server();
  if (strategy.has_synchronous()) {
    return std::make_unique<ReplicaPlan>(
        strategy.synchronous().total_replicas(),
        options.chief_epoch << kVersionShift,
        resumed ? std::optional<int64_t>(resumed->global_step()) : std::nullopt,
        EarlierEnd(options),
        options.is_mirrored ? ReplicasOfWorker(options.job) : 0);
  }
  StepLedger::Options ledger;
  ledger.first_version = absl::ToUnixMicros(now);
  ledger.earlier_end = EarlierEnd(options);
  ledger.has_one_checkpoint = options.job.checkpoint().max_to_keep() == 1;
  ledger.has_shards = options.job.train().auto_shard() == job::Dataset::FILE;
  if (strategy.has_bounded_staleness()) {
    ledger.bound = strategy.bounded_staleness().bound();
  }
  return resumed ? std::make_unique<StepLedger>(*resumed, ledger)
                 : std::make_unique<StepLedger>(ledger);
}

}  // namespace parasol
