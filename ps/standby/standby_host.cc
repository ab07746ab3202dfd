#include "ps/standby/standby_host.h"

#include <algorithm>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/trust/process_secret.h"
#include "cluster/trust/standby_ticket.h"
#include "ps/journal/push_record.h"
#include "ps/shard/load_shard.h"
#include "ps/shard/restore_journal.h"
#include "ps/step/non_finite.h"

namespace parasol {
namespace {

constexpr absl::Duration kRefusedLogInterval = absl::Seconds(10);

std::string NameOfShard(const wire::FollowHeader& header) {
  return absl::StrCat("the standby of shard ", header.shard(), " of run ",
                      header.run_id());
}

}  // namespace

struct StandbyHost::Standby {
  Standby(const wire::FollowHeader& header, std::function<void()> cut)
      : header(header),
        cut(std::move(cut)),
        newest_epoch(header.place_epoch()) {}
  ~Standby() {
    if (shard == nullptr) return;
    shard->Abandon(absl::UnavailableError("the standby is let go"));
  }

  // Ends the stream, if it has not ended, without waiting for the message that
  // is being taken. `cut` is called with the lock held: the stream can't go
  // away meanwhile.
  void End(absl::Status why) ABSL_LOCKS_EXCLUDED(end_mu) {
    absl::MutexLock lock(&end_mu);
    if (!ended.ok()) return;
    ended = std::move(why);
    cut();
  }
  // Notes that nobody reads the stream any more.
  void NoteEnd(absl::Status why) ABSL_LOCKS_EXCLUDED(end_mu) {
    absl::MutexLock lock(&end_mu);
    if (ended.ok()) ended = std::move(why);
  }
  absl::Status WhyEnded() ABSL_LOCKS_EXCLUDED(end_mu) {
    absl::MutexLock lock(&end_mu);
    return ended;
  }

  const wire::FollowHeader header;
  const std::function<void()> cut;

  // Held while a message is taken, and while the state is.
  absl::Mutex mu ABSL_ACQUIRED_BEFORE(end_mu);
  absl::Mutex end_mu;
  // Why no message is taken any more; OK as a rule.
  absl::Status ended ABSL_GUARDED_BY(end_mu);
  // Why the shard differs from the primary; OK as a rule.
  absl::Status broken ABSL_GUARDED_BY(mu);
  // The process that has taken the state last, or the primary.
  int64_t newest_epoch ABSL_GUARDED_BY(mu);
  std::optional<ShardState> state ABSL_GUARDED_BY(mu);  // while it comes
  std::shared_ptr<ParameterShard> shard ABSL_GUARDED_BY(mu);
  uint64_t number ABSL_GUARDED_BY(mu) = 0;  // 0: the state has not come yet
  int64_t records ABSL_GUARDED_BY(mu) = 0;
  JournalEnd in_journal ABSL_GUARDED_BY(mu);
};

absl::Status StandbyHost::CheckProcess(uint64_t public_number) const {
  const uint64_t own = PublicNumber(options_.incarnation);
  if (public_number == own) return absl::OkStatus();
  return absl::UnavailableError(absl::StrFormat(
      "the message is meant for process %016x, but %s is process %016x",
      public_number, options_.task, own));
}

std::shared_ptr<StandbyHost::Standby> StandbyHost::Find(uint32_t shard) const {
  absl::MutexLock lock(&mu_);
  const auto found = standbys_.find(shard);
  return found == standbys_.end() ? nullptr : found->second;
}

absl::StatusOr<std::unique_ptr<StandbyHost::Stream>> StandbyHost::Follow(
    const wire::FollowHeader& header, std::function<void()> cut) {
  RETURN_IF_ERROR(CheckProcess(header.ps_incarnation()));
  if (header.load().standby().number() != StandbyTicket(header.shard(),
                                                        header.num_shards(),
                                                        options_.incarnation)) {
    return absl::PermissionDeniedError(
        absl::StrCat("only the ps whose standby the chief wants on ",
                     options_.task, " may make one there"));
  }
  auto standby = std::make_shared<Standby>(header, std::move(cut));
  while (true) {
    const std::shared_ptr<Standby> before = Find(header.shard());
    if (before != nullptr) {
      RETURN_IF_ERROR(Replace(*before, header));
    }
    absl::MutexLock lock(&mu_);
    std::shared_ptr<Standby>& place = standbys_[header.shard()];
    // Another stream may have come meanwhile: the newer process stays.
    if (place != before) continue;
    place = standby;
    return std::unique_ptr<Stream>(new Stream(options_, std::move(standby)));
  }
}

absl::Status StandbyHost::Replace(Standby& before,
                                  const wire::FollowHeader& header) const {
  absl::MutexLock lock(&before.mu);
  if (before.header.run_id() == header.run_id() &&
      header.place_epoch() < before.newest_epoch) {
    return absl::FailedPreconditionError(
        absl::StrCat(NameOfShard(header), " on ", options_.task,
                     " belongs to a newer process of its place"));
  }
  before.newest_epoch = header.place_epoch();
  before.broken = absl::FailedPreconditionError(absl::StrCat(
      "another stream has taken the place of this one on ", options_.task));
  // There may not be memory for both.
  before.shard.reset();
  before.state.reset();
  before.End(before.broken);
  return absl::OkStatus();
}

absl::Status StandbyHost::Claim(Standby& standby,
                                const wire::TakeStandbyRequest& request) const {
  const wire::FollowHeader& header = standby.header;
  const bool is_it = header.run_id() == request.run_id() &&
                     header.layout() == request.layout() &&
                     header.num_shards() == request.num_shards() &&
                     request.number() != 0 &&
                     standby.number == request.number();
  if (!is_it || !standby.broken.ok()) {
    return absl::NotFoundError(absl::StrCat(
        options_.task, " has not this standby of shard ", request.shard(),
        standby.broken.ok() ? "" : ": ", standby.broken.message()));
  }
  if (request.place_epoch() < standby.newest_epoch) {
    return absl::FailedPreconditionError(
        absl::StrCat(NameOfShard(header), " on ", options_.task,
                     " belongs to a newer process of its place"));
  }
  standby.newest_epoch = request.place_epoch();
  standby.End(absl::FailedPreconditionError(absl::StrCat(
      NameOfShard(header), " on ", options_.task,
      " has been given to the successor of the process that it follows")));
  return absl::OkStatus();
}

absl::StatusOr<ShardState> StandbyHost::Take(
    const wire::TakeStandbyRequest& request) {
  RETURN_IF_ERROR(CheckProcess(request.ps_incarnation()));
  const std::shared_ptr<Standby> standby = Find(request.shard());
  if (standby == nullptr) {
    return absl::NotFoundError(absl::StrCat(
        options_.task, " has no standby of shard ", request.shard()));
  }
  // What the primary has sent and was told of is applied.
  absl::MutexLock lock(&standby->mu);
  RETURN_IF_ERROR(Claim(*standby, request));
  ASSIGN_OR_RETURN(
      ShardState state,
      ShardState::Write(standby->shard->TakeSnapshot(), request.shard(),
                        request.num_shards(), standby->shard->bytes().all()));
  state.set_in_journal(standby->in_journal);
  return state;
}

absl::StatusOr<StandbyShard> StandbyHost::TakeShard(
    const wire::TakeStandbyRequest& request) {
  RETURN_IF_ERROR(CheckProcess(request.ps_incarnation()));
  const std::shared_ptr<Standby> standby = Find(request.shard());
  if (standby == nullptr) {
    return absl::NotFoundError(absl::StrCat(
        options_.task, " has no standby of shard ", request.shard()));
  }
  absl::MutexLock lock(&standby->mu);
  RETURN_IF_ERROR(Claim(*standby, request));
  standby->broken = absl::NotFoundError(
      "it is the shard of the ps that acts for the lost one");
  return StandbyShard{.shard = std::exchange(standby->shard, nullptr),
                      .in_journal = standby->in_journal};
}

std::vector<std::shared_ptr<StandbyHost::Standby>> StandbyHost::All() const {
  std::vector<std::shared_ptr<Standby>> all;
  absl::MutexLock lock(&mu_);
  for (const auto& [shard, standby] : standbys_) all.push_back(standby);
  return all;
}

std::vector<wire::LostPrimary> StandbyHost::LostPrimaries() const {
  std::vector<wire::LostPrimary> lost;
  for (const std::shared_ptr<Standby>& standby : All()) {
    absl::MutexLock lock(&standby->mu);
    if (standby->shard == nullptr || standby->WhyEnded().ok()) continue;
    wire::LostPrimary& primary = lost.emplace_back();
    primary.set_shard(static_cast<int>(standby->header.shard()));
    primary.set_number(standby->number);
  }
  return lost;
}

bool StandbyHost::MayAct(uint64_t number) const {
  for (const std::shared_ptr<Standby>& standby : All()) {
    absl::MutexLock lock(&standby->mu);
    if (standby->shard == nullptr || standby->number != number) continue;
    const wire::FollowHeader& header = standby->header;
    const bool finds_journal =
        !options_.has_own_journals ||
        header.load().journal() == wire::LoadRequest::NONE;
    if (!finds_journal) {
      LOG_EVERY(WARNING, kRefusedLogInterval)
          << NameOfShard(header) << " has lost its ps, and " << options_.task
          << ", which has its standby, does not act for it: the journal is in "
             "the lost one's --journal_dir; start that ps again";
    }
    return finds_journal;
  }
  return false;
}

void StandbyHost::EndAll() {
  std::map<uint32_t, std::shared_ptr<Standby>> standbys;
  {
    absl::MutexLock lock(&mu_);
    standbys = std::exchange(standbys_, {});
  }
  for (const auto& [shard, standby] : standbys) {
    standby->End(absl::UnavailableError(absl::StrCat(options_.task, " ends")));
  }
}

// The standby stays, as it is, for the primary's successor.
StandbyHost::Stream::~Stream() {
  bool is_whole;
  {
    absl::MutexLock lock(&standby_->mu);
    standby_->state.reset();
    standby_->NoteEnd(absl::UnavailableError("the stream has ended"));
    is_whole = standby_->shard != nullptr;
  }
  if (is_whole) options_.on_lost_primary();
}

absl::StatusOr<std::optional<wire::FollowResponse>> StandbyHost::Stream::Take(
    const wire::FollowRequest& message, Tensors tensors) {
  absl::MutexLock lock(&standby_->mu);
  RETURN_IF_ERROR(standby_->WhyEnded());
  absl::StatusOr<std::optional<wire::FollowResponse>> answer =
      TakeNow(message, tensors);
  if (answer.ok()) return answer;
  standby_->NoteEnd(answer.status());
  standby_->broken = answer.status();
  standby_->shard.reset();
  return answer;
}

absl::StatusOr<std::optional<wire::FollowResponse>>
StandbyHost::Stream::TakeNow(const wire::FollowRequest& message,
                             Tensors tensors) {
  Standby& standby = *standby_;
  if (standby.number == 0) {
    if (!standby.state.has_value()) {
      // What can be wrong is found before all comes.
      RETURN_IF_ERROR(LoadFrom("the state that comes").status());
      ASSIGN_OR_RETURN(ShardState state,
                       ShardState::Create(standby.header.load()));
      standby.state.emplace(std::move(state));
    }
    RETURN_IF_ERROR(standby.state->Append(message.state()));
    if (!message.state_end()) return std::nullopt;
    RETURN_IF_ERROR(MakeShard());
    absl::BitGen random;
    standby.number = absl::Uniform<uint64_t>(absl::IntervalClosed, random, 1,
                                             UINT64_MAX - 1);
  } else if (message.has_header()) {
    RETURN_IF_ERROR(Change(message.header().load()));
    ++standby.records;
  }
  if (message.state_end()) standby.in_journal.journal = message.journal();
  standby.in_journal.record =
      std::max(standby.in_journal.record, message.journal_record());
  RETURN_IF_ERROR(TakeRecords(message, tensors));
  wire::FollowResponse answer;
  answer.set_number(standby.number);
  answer.set_held(standby.records);
  return answer;
}

absl::Status StandbyHost::Stream::TakeRecords(
    const wire::FollowRequest& message, Tensors tensors) {
  for (const std::string& record : message.record()) {
    ASSIGN_OR_RETURN(RecordedPush push, tensors
                                            ? ParsePushHead(record, *tensors)
                                            : ParsePushRecord(record));
    RETURN_IF_ERROR(ApplyAgain(std::move(push), *standby_->shard));
    ++standby_->records;
  }
  if (!tensors || tensors->empty()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "a message of a primary has ", tensors->size(), " tensors too many"));
}

absl::StatusOr<ShardLoad> StandbyHost::Stream::LoadFrom(
    const std::string& directory) const {
  wire::LoadRequest order = standby_->header.load();
  order.clear_standby();
  order.clear_journal();
  order.set_checkpoint(directory);
  const uint64_t own =
      std::min(options_.own_bytes(), options_.memory_limit_bytes);
  absl::StatusOr<ShardLoad> load = ShardLoad::Create(
      order, {.memory_bytes = options_.memory_limit_bytes - own,
              // The primary has taken what comes.
              .non_finite = NonFinite::kApply,
              .helpers = options_.helpers,
              .tier_directory = options_.tier_directory});
  RETURN_IF_ERROR(load.status())
      << NameOfShard(standby_->header) << " beside the shard of "
      << options_.task << ", of " << own << " bytes";
  return load;
}

absl::Status StandbyHost::Stream::MakeShard() {
  Standby& standby = *standby_;
  ASSIGN_OR_RETURN(ShardLoad load, LoadFrom(standby.state->directory()));
  RETURN_IF_ERROR(standby.state->MakeCheckpoint(load.Manifest()));
  RETURN_IF_ERROR(load.Open());
  ASSIGN_OR_RETURN(standby.shard, load.Run());
  standby.state.reset();
  return absl::OkStatus();
}

absl::Status StandbyHost::Stream::Change(const wire::LoadRequest& change) {
  if (change.global_step() > 0) {
    standby_->shard->GoOnAt(change.global_step());
    return absl::OkStatus();
  }
  wire::LoadRequest order = change;
  // It is not loaded: initial values are not looked at.
  order.set_checkpoint("the state that is there");
  ASSIGN_OR_RETURN(
      ShardLoad load,
      ShardLoad::Create(order, {.non_finite = NonFinite::kApply,
                                .helpers = options_.helpers,
                                .tier_directory = options_.tier_directory}));
  return load.GiveRulesTo(*standby_->shard);
}

}  // namespace parasol
