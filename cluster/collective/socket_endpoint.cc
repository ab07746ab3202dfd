#include "cluster/collective/socket_endpoint.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "cluster/collective/piece_lanes.h"
#include "cluster/collective/rank_connection.h"
#include "cluster/collective/shared_collective.h"

namespace parasol {
namespace {

// Threads that encrypt: one for each direction of a busy connection, about.
constexpr int kTlsThreads = 2;
constexpr absl::Duration kPause = absl::Milliseconds(20);
// Longest wait for one rank's answer while others are missing, too.
constexpr absl::Duration kCallLimit = absl::Seconds(2);
// Number of ranks that are called at once.
constexpr size_t kCallsAtOnce = 32;

absl::Status MissingError(const CollectiveGroup& group, absl::Duration limit,
                          const std::map<int, std::string>& missing) {
  std::vector<std::string> names;
  for (const auto& [rank, why] : missing) {
    names.push_back(absl::StrCat(group.NameOf(rank), ": ", why));
  }
  return absl::DeadlineExceededError(absl::StrCat(
      "collective group of epoch ", group.epoch, ": not there after ",
      absl::FormatDuration(limit), ": ", absl::StrJoin(names, "; ")));
}

using Calls = std::vector<absl::StatusOr<Descriptor>>;

// Calls the ranks at once, each for `limit` at most: neither names that take
// long to look up nor machines that don't answer add up.
Calls CallAll(const CollectiveGroup& group, const std::vector<int>& ranks,
              absl::Duration limit) {
  Calls calls;
  for (size_t i = 0; i < ranks.size(); ++i) {
    calls.push_back(absl::UnavailableError("was not called"));
  }
  std::atomic<size_t> next = 0;
  const auto call_some = [&] {
    for (size_t i = next++; i < ranks.size(); i = next++) {
      calls[i] = ConnectToRank(group, ranks[i], limit);
    }
  };
  std::vector<std::jthread> threads;
  while (threads.size() + 1 < std::min(ranks.size(), kCallsAtOnce)) {
    threads.emplace_back(call_some);
  }
  call_some();
  threads.clear();  // joins them
  return calls;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SocketEndpoint>> SocketEndpoint::Start(
    const std::string& host, int port, const Options& options, Clock& clock) {
  ASSIGN_OR_RETURN(std::unique_ptr<RankPort> listening,
                   RankPort::Start(host, port));
  std::unique_ptr<TlsTunnels> tunnels;
  if (options.certificates.has_value()) {
    ASSIGN_OR_RETURN(
        tunnels, TlsTunnels::Start(*options.certificates, kTlsThreads, clock));
  }
  return std::unique_ptr<SocketEndpoint>(new SocketEndpoint(
      std::move(listening), std::move(tunnels), options, clock));
}

absl::StatusOr<std::unique_ptr<Collective>> SocketEndpoint::Join(
    const CollectiveGroup& group, absl::Duration limit) {
  RETURN_IF_ERROR(CheckGroup(group));
  RETURN_IF_ERROR(TakePlace(group));
  using Connected = std::map<int, Descriptor>;
  ASSIGN_OR_RETURN(Connected connected, ConnectAll(group, limit));
  RETURN_IF_ERROR(Encrypt(group, connected));
  return MakeCollective(group, std::move(connected));
}

absl::Status SocketEndpoint::Encrypt(const CollectiveGroup& group,
                                     std::map<int, Descriptor>& connected) {
  if (tunnels_ == nullptr) return absl::OkStatus();
  for (auto& [rank, socket] : connected) {
    ASSIGN_OR_RETURN(socket,
                     tunnels_->Open(std::move(socket),
                                    rank < group.own_rank ? PeerSide::kClient
                                                          : PeerSide::kServer,
                                    PeerRole::kWorker));
  }
  return absl::OkStatus();
}

absl::Status SocketEndpoint::TakePlace(const CollectiveGroup& group) {
  {
    absl::MutexLock lock(&mu_);
    if (group.epoch <= epoch_) {
      return absl::FailedPreconditionError(absl::StrCat(
          group.own().address, " has joined a group of epoch ", epoch_,
          ", not before ", group.epoch, ": use a larger epoch"));
    }
    epoch_ = group.epoch;
  }
  newest_->End(absl::CancelledError(absl::StrCat(
      "a group of epoch ", group.epoch, " has taken this one's place")));
  port_->Expect(group);
  return absl::OkStatus();
}

absl::StatusOr<std::map<int, Descriptor>> SocketEndpoint::ConnectAll(
    const CollectiveGroup& group, absl::Duration limit) {
  const absl::Time deadline = clock_.Now() + limit;
  std::map<int, Descriptor> connected;
  while (true) {
    std::map<int, std::string> missing;
    for (auto& [rank, socket] : port_->TakeConnected()) {
      RETURN_IF_ERROR(SetRankSocketOptions(socket.get()));
      connected[rank] = std::move(socket);
    }
    const absl::Duration left = deadline - clock_.Now();
    RETURN_IF_ERROR(
        CallMissing(group, std::min(left, kCallLimit), connected, missing));
    if (missing.empty()) return connected;
    if (clock_.Now() >= deadline) return MissingError(group, limit, missing);
    RETURN_IF_ERROR(Pause());
  }
}

absl::Status SocketEndpoint::CallMissing(const CollectiveGroup& group,
                                         absl::Duration limit,
                                         std::map<int, Descriptor>& connected,
                                         std::map<int, std::string>& missing) {
  std::vector<int> to_call;
  for (int rank = 0; rank < static_cast<int>(group.ranks.size()); ++rank) {
    if (rank == group.own_rank || connected.contains(rank)) continue;
    if (rank < group.own_rank) {
      to_call.push_back(rank);
    } else {
      missing[rank] = "has not called";
    }
  }
  Calls calls = CallAll(group, to_call, limit);
  for (size_t i = 0; i < to_call.size(); ++i) {
    const int rank = to_call[i];
    absl::StatusOr<Descriptor>& socket = calls[i];
    if (socket.ok()) {
      connected[rank] = *std::move(socket);
    } else if (socket.status().code() == absl::StatusCode::kUnavailable) {
      missing[rank] = std::string(socket.status().message());
    } else {
      RETURN_IF_ERROR(socket.status())
          << "collective group of epoch " << group.epoch << ": "
          << group.NameOf(rank);
    }
  }
  return absl::OkStatus();
}

absl::Status SocketEndpoint::Pause() {
  absl::MutexLock lock(&mu_);
  Clock::Real().AwaitWithTimeout(
      mu_, absl::Condition(this, &SocketEndpoint::IsCancelled), kPause);
  return IsCancelled() ? absl::CancelledError("the join was cancelled")
                       : absl::OkStatus();
}

void SocketEndpoint::CancelJoin(int64_t epoch) {
  absl::MutexLock lock(&mu_);
  cancelled_ = std::max(cancelled_, epoch);
}

absl::StatusOr<std::unique_ptr<Collective>> SocketEndpoint::MakeCollective(
    const CollectiveGroup& group, std::map<int, Descriptor> connected) {
  SocketCollective::Options options;
  options.protocol = options_.protocol;
  options.newest = newest_;
  auto collective = std::make_unique<SocketCollective>(
      group, std::move(connected), options, clock_);
  newest_->Set(collective.get());
  if (group.ranks.size() == 1) return collective;
  // Sums in shared memory leave rows and values to the connections.
  if (options_.piece_lanes) {
    RETURN_IF_ERROR(UseLanes(*collective));
  }
  if (options_.shared_memory && group.planner == nullptr) {
    ASSIGN_OR_RETURN(std::unique_ptr<Collective> shared,
                     SharedCollective::MakeIfAllShare(collective));
    if (shared != nullptr) return shared;
  }
  return collective;
}

}  // namespace parasol
