// The part of a ps that restores its shard from journals and standbys.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/status_macros.h"
#include "base/uri/uri_path.h"
#include "ps/shard/load_shard.h"
#include "ps/shard/parameter_server.h"
#include "ps/shard/shard_state.h"

namespace parasol {
namespace {

// The number of a shard that was alone.
constexpr uint64_t kAlone = UINT64_MAX;

// For the answer to a registration that an order has overtaken, by the
// machine's clock: it is on its way. The chief sends the order again a second
// later.
constexpr absl::Duration kAnswerWait = absl::Milliseconds(50);

}  // namespace

absl::StatusOr<LoadLimits> ParameterServer::LimitsFor(
    const wire::LoadRequest& request) const {
  LoadLimits limits = {.memory_bytes = options_.memory_limit_bytes,
                       .non_finite = options_.non_finite,
                       .helpers = options_.helpers,
                       .journal_directory = options_.journal_directory,
                       .tier_directory = options_.tier_directory,
                       .on_tier_failure = options_.on_tier_failure,
                       .metrics = &metrics_.registry()};
  if (request.journal() != wire::LoadRequest::NONE &&
      limits.journal_directory.empty()) {
    ASSIGN_OR_RETURN(
        limits.journal_directory,
        gate_.AwaitDirectory(request.order(), Clock::Real(), kAnswerWait));
    if (IsUri(limits.journal_directory)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the journal of a job with durability JOURNAL is a file that grows, "
          "and the checkpoint directory ",
          limits.journal_directory,
          " has none: name a folder in --journal_dir of each ps, or choose "
          "durability REPLICATE"));
    }
  }
  return limits;
}

void ParameterServer::TellLost(std::string line) {
  LOG(ERROR) << line;
  lost_ = std::move(line);
}

void ParameterServer::NoteJournal(const RestoredJournal& journal,
                                  bool is_of_standby) {
  if (journal.pushes > 0 && !is_of_standby) {
    LOG(INFO) << "took " << journal.pushes << " pushes from the journal";
    metrics_.replayed_pushes_total.Add(journal.pushes);
  }
  if (journal.lost.empty()) return;
  if (is_of_standby) {
    LOG(ERROR) << journal.lost
               << "; a new one begins, and helps from the next checkpoint on";
  } else {
    TellLost(absl::StrCat("acknowledged pushes are lost: ", journal.lost));
  }
  metrics_.lost_journals_total.Add();
}

// Rows that lie in files go through a file, too: who has them is told if one is
// lost.
absl::StatusOr<ParameterServer::Standby> ParameterServer::Fetch(
    const wire::LoadRequest& request) {
  const bool has_tier = std::any_of(
      request.table().begin(), request.table().end(),
      [](const wire::TableSpec& table) { return table.has_tier(); });
  if (options_.take_shard == nullptr || has_tier) {
    return options_.take_standby(request);
  }
  const uint64_t number = request.standby().number();
  if (!taken_.has_value() || taken_->first != number) {
    ASSIGN_OR_RETURN(StandbyShard shard, options_.take_shard(request));
    taken_.emplace(number, std::move(shard));
  }
  return taken_->second;
}

absl::StatusOr<std::optional<ParameterServer::Standby>>
ParameterServer::TakeStandby(const wire::LoadRequest& request) {
  const uint64_t number = request.standby().number();
  if (number == 0) return std::nullopt;
  absl::Status gone =
      absl::NotFoundError("the process before had no standby when it was lost");
  if (number != kAlone) {
    absl::StatusOr<Standby> standby = Fetch(request);
    if (standby.ok()) {
      metrics_.taken_standbys_total.Add();
      return *std::move(standby);
    }
    // The standby may be there when the order comes again.
    if (!absl::IsNotFound(standby.status())) {
      return absl::UnavailableError(standby.status().message());
    }
    gone = standby.status();
  }
  if (request.journal() != wire::LoadRequest::NONE) {
    LOG(INFO) << "the journal has what the standby had: " << gone.message();
    return std::nullopt;
  }
  TellLost(absl::StrCat("acknowledged pushes since ",
                        request.checkpoint().empty() ? "the initial values"
                                                     : request.checkpoint(),
                        " are lost: ", gone.message()));
  metrics_.lost_standbys_total.Add();
  return std::nullopt;
}

absl::StatusOr<std::shared_ptr<ParameterShard>> ParameterServer::ShardFrom(
    ShardState state, const wire::LoadRequest& request) const {
  wire::LoadRequest order = request;
  order.clear_journal();
  order.set_checkpoint(state.directory());
  ASSIGN_OR_RETURN(const LoadLimits limits, LimitsFor(order));
  ASSIGN_OR_RETURN(ShardLoad load, ShardLoad::Create(order, limits));
  RETURN_IF_ERROR(state.MakeCheckpoint(load.Manifest()));
  RETURN_IF_ERROR(load.Open());
  return load.Run();
}

}  // namespace parasol
