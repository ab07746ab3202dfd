#include "cluster/collective/shared_collective.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/collective/contribution_memory.h"

namespace parasol {
namespace {

// Gathers a string of each rank and waits for them.
absl::StatusOr<std::vector<std::string>> Gather(Collective& collective,
                                                const std::string& own) {
  std::vector<std::string> gathered;
  absl::Status status;
  collective.AllGather(own, &gathered,
                       [&](const absl::Status& ended) { status = ended; });
  RETURN_IF_ERROR(collective.Await());
  RETURN_IF_ERROR(status);
  return gathered;
}

// Opens the other ranks' segments; returns none if it can't.
std::vector<std::unique_ptr<SharedSegment>> OpenAll(
    std::unique_ptr<SharedSegment> own, int own_rank,
    const std::vector<std::string>& offers) {
  std::vector<std::unique_ptr<SharedSegment>> segments;
  for (size_t rank = 0; rank < offers.size(); ++rank) {
    if (static_cast<int>(rank) == own_rank) {
      segments.push_back(std::move(own));
      continue;
    }
    absl::StatusOr<std::unique_ptr<SharedSegment>> segment =
        SharedSegment::Open(offers[rank]);
    if (!segment.ok()) return {};
    segments.push_back(*std::move(segment));
  }
  return segments;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Collective>> SharedCollective::MakeIfAllShare(
    std::unique_ptr<SocketCollective>& sockets) {
  const CollectiveGroup& group = sockets->group();
  absl::StatusOr<std::unique_ptr<SharedSegment>> own = SharedSegment::Create();
  const bool has_own = own.ok() && SharedSums::Suits(group);
  ASSIGN_OR_RETURN(const std::vector<std::string> offers,
                   Gather(*sockets, has_own ? (*own)->offer() : ""));
  std::vector<std::unique_ptr<SharedSegment>> segments;
  if (std::count(offers.begin(), offers.end(), "") == 0) {
    segments = OpenAll(*std::move(own), group.own_rank, offers);
  }
  // One that can't open the others' sums with nobody.
  ASSIGN_OR_RETURN(const std::vector<std::string> opened,
                   Gather(*sockets, segments.empty() ? "no" : "yes"));
  if (std::count(opened.begin(), opened.end(), "yes") <
      static_cast<int>(opened.size())) {
    return nullptr;
  }
  return std::unique_ptr<Collective>(
      new SharedCollective(std::move(sockets), std::move(segments)));
}

SharedCollective::SharedCollective(
    std::unique_ptr<SocketCollective> sockets,
    std::vector<std::unique_ptr<SharedSegment>> segments)
    : pool_(segments[sockets->group().own_rank]->words()),
      sums_(sockets->group(), std::move(segments), pool_),
      sockets_(std::move(sockets)),
      turns_({.work = [this](absl::Duration limit) { Work(limit); },
              .interrupt = [this] { sums_.Interrupt(); },
              .has_work = [this] { return pending_ > 0; }}) {
  sockets_->SetOnEnd([this] {
    has_ended_ = true;
    // Of another end the others hear on their connections, and why.
    if (sockets_->has_left()) sums_.Leave();
    sums_.Interrupt();
  });
}

SharedCollective::~SharedCollective() {
  turns_.Stop();
  sockets_->Leave(absl::CancelledError("the rank has left the group"));
  sockets_->Await().IgnoreError();
  // A callback may be running on another thread.
  turns_.WorkToEnd();
}

void SharedCollective::AllReduce(std::vector<Contribution> contributions,
                                 absl::Span<float> sum, Done done) {
  CheckContributions(group(), contributions, sum.size());
  Begin({.kind = SharedSum::Kind::kAllReduce,
         .contributions = std::move(contributions),
         .count = sum.size(),
         .sum = sum},
        std::move(done));
}

void SharedCollective::ReduceScatter(std::vector<Contribution> contributions,
                                     size_t count, absl::Span<float> slice,
                                     Done done) {
  CheckContributions(group(), contributions, count);
  const int ranks = static_cast<int>(group().ranks.size());
  CHECK_EQ(slice.size(), SliceOf(count, ranks, group().own_rank).count);
  Begin({.kind = SharedSum::Kind::kReduceScatter,
         .contributions = std::move(contributions),
         .count = count,
         .sum = slice},
        std::move(done));
}

void SharedCollective::AllGather(absl::string_view own,
                                 std::vector<std::string>* gathered,
                                 Done done) {
  sockets_->AllGather(own, gathered, std::move(done));
}

void SharedCollective::Broadcast(int source, const std::vector<int>& receivers,
                                 absl::Span<std::byte> bytes, Done done) {
  sockets_->Broadcast(source, receivers, bytes, std::move(done));
}

absl::Status SharedCollective::Await() {
  turns_.WorkToEnd();
  return sockets_->Await();
}

std::vector<int> SharedCollective::Awaited() const {
  return pending_ > 0 ? sums_.Behind() : sockets_->Awaited();
}

std::shared_ptr<float[]> SharedCollective::AllocateContribution(size_t count) {
  return pool_.Allocate(count);
}

void SharedCollective::Begin(SharedSum sum, Done done) {
  CHECK(pending_ < static_cast<int>(kMaxPending))
      << "more than " << kMaxPending << " operations are pending";
  ++pending_;
  {
    absl::MutexLock lock(&mu_);
    queue_.push_back({std::move(sum), std::move(done)});
  }
  turns_.NoteBegun();
}

bool SharedCollective::BeginNext() {
  absl::MutexLock lock(&mu_);
  if (queue_.empty()) return false;
  Pending next = std::move(queue_.front());
  queue_.pop_front();
  done_ = std::move(next.done);
  sums_.Begin(std::move(next.sum));
  return true;
}

void SharedCollective::Work(absl::Duration limit) {
  while (!has_ended_ && (sums_.is_busy() || BeginNext())) {
    const absl::Status status = sums_.GoOn(limit);
    if (!status.ok()) {
      sockets_->Abort(status);
      break;
    }
    if (sums_.is_busy()) break;
    Complete(std::exchange(done_, nullptr), absl::OkStatus());
  }
  if (has_ended_) CompleteAll(sockets_->status());
}

void SharedCollective::CompleteAll(const absl::Status& why) {
  if (done_ != nullptr) Complete(std::exchange(done_, nullptr), why);
  std::deque<Pending> queue;
  {
    absl::MutexLock lock(&mu_);
    queue = std::exchange(queue_, {});
  }
  for (const Pending& each : queue) Complete(each.done, why);
}

void SharedCollective::Complete(const Done& done, const absl::Status& status) {
  done(status);
  --pending_;
}

}  // namespace parasol
