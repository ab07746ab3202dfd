#include "cluster/collective/shared_sums.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/collective/plan/ordered_sum.h"

namespace parasol {
namespace {

// Looks at a count before a rank sleeps, about 100 us: to be woken takes longer
// than most chunks. Who waits for a rank that was last on the same core sleeps
// at once.
constexpr int kSpins = 4000;
// Bytes of a pack from which on sums are not left in the caches, which would
// have to drop the first for the last.
constexpr size_t kStreamedBytes = 8 << 20;
// Longest sleep before a rank looks whether others have left.
constexpr absl::Duration kSleep = absl::Milliseconds(1);
// Elements of a cache line: two ranks write to no line.
constexpr size_t kLine = 16;

size_t MostReplicas(const CollectiveGroup& group) {
  size_t most = 1;
  for (const CollectiveRank& rank : group.ranks) {
    most = std::max(most, rank.replicas.size());
  }
  return most;
}

// Returns the elements of a chunk: a slot has room for so many of each
// contribution of one rank.
size_t ChunkElements(const CollectiveGroup& group) {
  const size_t room = SharedSegment::kSlotBytes / MostReplicas(group);
  return std::min(room, SharedSums::kChunkBytes) / sizeof(float) / kLine *
         kLine;
}

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

std::string Describe(const SharedPost& post) {
  const bool scatters =
      post.kind == static_cast<uint64_t>(SharedSum::Kind::kReduceScatter);
  return absl::StrCat(scatters ? "reduce-scatter of " : "all-reduce of ",
                      post.count, " elements");
}

}  // namespace

SharedSums::SharedSums(const CollectiveGroup& group,
                       std::vector<std::unique_ptr<SharedSegment>> segments,
                       ContributionPool& pool)
    : group_(group),
      segments_(std::move(segments)),
      pool_(pool),
      own_(*segments_[group.own_rank]),
      order_(InOrder(group.layout())),
      chunk_elements_(ChunkElements(group)) {}

bool SharedSums::Suits(const CollectiveGroup& group) {
  return MostReplicas(group) <= SharedPost::kMaxContributions;
}

void SharedSums::Begin(SharedSum sum) {
  CHECK(!is_busy_);
  sum_ = std::move(sum);
  is_busy_ = true;
  chunk_ = 0;
  stage_ = Stage::kAwaitAll;
  WritePost();
  Bring(0);
}

void SharedSums::WritePost() {
  SharedPost& post = own_.words().posts[sequence_ % SharedWords::kPosts];
  post.sequence = sequence_;
  post.kind = static_cast<uint64_t>(sum_.kind);
  post.count = sum_.count;
  for (size_t i = 0; i < sum_.contributions.size(); ++i) {
    const absl::Span<const float> values = sum_.contributions[i].values;
    // The caller may change a small pack's contributions when it has the sum,
    // while others still add.
    const auto place =
        IsSmall() ? std::nullopt
                  : pool_.Find(values.data(), values.size() * sizeof(float));
    post.allocation[i] =
        place.has_value() ? place->allocation : SharedPost::kCopied;
    post.first[i] = place.has_value() ? place->first : 0;
  }
}

absl::Status SharedSums::GoOn(absl::Duration limit) {
  deadline_ =
      std::chrono::steady_clock::now() + absl::ToChronoMicroseconds(limit);
  while (is_busy_) {
    const Stage before = stage_;
    const size_t chunk = chunk_;
    RETURN_IF_ERROR(Step());
    if (stage_ == before && chunk_ == chunk) break;
  }
  interrupted_ = false;
  return absl::OkStatus();
}

absl::Status SharedSums::Step() {
  switch (stage_) {
    case Stage::kAwaitAll:
      return AwaitArrived();
    case Stage::kReduce:
      IsSmall() ? AddSmall() : AddSlice();
      return absl::OkStatus();
    case Stage::kAwaitSums:
      return AwaitReduced();
    case Stage::kCopy:
      CopySums();
      return absl::OkStatus();
  }
  return absl::InternalError("no stage");
}

absl::Status SharedSums::AwaitArrived() {
  ASSIGN_OR_RETURN(const bool all, Await(&SharedWords::arrived));
  if (!all) return absl::OkStatus();
  stage_ = Stage::kReduce;
  return chunk_ == 0 ? ReadPosts() : absl::OkStatus();
}

absl::Status SharedSums::AwaitReduced() {
  ASSIGN_OR_RETURN(const bool all, Await(&SharedWords::reduced));
  if (all) stage_ = Stage::kCopy;
  return absl::OkStatus();
}

void SharedSums::Bring(size_t ahead) {
  const SharedPost& post = own_.words().posts[sequence_ % SharedWords::kPosts];
  const ElementRange chunk = Chunk(ahead);
  for (size_t i = 0; i < sum_.contributions.size() && chunk.count > 0; ++i) {
    if (post.allocation[i] != SharedPost::kCopied) continue;
    std::memcpy(own_.contributions(tick_ + ahead) + i * chunk_elements_,
                sum_.contributions[i].values.data() + chunk.first,
                chunk.count * sizeof(float));
  }
  Announce(&SharedWords::arrived, tick_ + ahead);
}

void SharedSums::AddSmall() {
  Add(0, Chunk().count, sum_.sum.data());
  Finish();
}

void SharedSums::AddSlice() {
  if (sum_.kind == SharedSum::Kind::kAllReduce) {
    const ElementRange slice = SliceOfChunk(group_.own_rank);
    Add(slice.first, slice.count, own_.sums(tick_));
  } else {
    const int ranks = static_cast<int>(group_.ranks.size());
    const ElementRange own = SliceOf(sum_.count, ranks, group_.own_rank);
    const ElementRange chunk = Chunk();
    const size_t first = std::max(own.first, chunk.first);
    const size_t end =
        std::min(own.first + own.count, chunk.first + chunk.count);
    if (first < end) {
      Add(first - chunk.first, end - first,
          sum_.sum.data() + first - own.first);
    }
  }
  Announce(&SharedWords::reduced, tick_);
  if (Chunk(1).count > 0) Bring(1);
  stage_ = Stage::kAwaitSums;
}

void SharedSums::CopySums() {
  if (sum_.kind == SharedSum::Kind::kAllReduce) {
    for (size_t rank = 0; rank < segments_.size(); ++rank) {
      const ElementRange slice = SliceOfChunk(static_cast<int>(rank));
      if (slice.count == 0) continue;
      float* const to = sum_.sum.data() + Chunk().first + slice.first;
      if (sum_.count * sizeof(float) >= kStreamedBytes) {
        CopyPastCaches(segments_[rank]->sums(tick_), slice.count, to);
      } else {
        std::memcpy(to, segments_[rank]->sums(tick_),
                    slice.count * sizeof(float));
      }
    }
  }
  Finish();
}

void SharedSums::Finish() {
  ++tick_;
  ++chunk_;
  stage_ = Stage::kAwaitAll;
  if (Chunk().count > 0) return;
  ++sequence_;
  is_busy_ = false;
  sum_ = {};
}

void SharedSums::Announce(Count count, uint64_t tick) {
  own_.words().core.store(sched_getcpu(), std::memory_order_relaxed);
  (own_.words().*count).store(tick + 1, std::memory_order_seq_cst);
  for (size_t rank = 0; rank < segments_.size(); ++rank) {
    if (static_cast<int>(rank) != group_.own_rank) segments_[rank]->Ring();
  }
}

bool SharedSums::HaveAll(Count count) const {
  return std::all_of(
      segments_.begin(), segments_.end(), [&](const auto& segment) {
        return (segment->words().*count).load(std::memory_order_seq_cst) >
               tick_;
      });
}

bool SharedSums::IsAwaitedOnThisCore(Count count) const {
  const int core = sched_getcpu();
  return std::any_of(segments_.begin(), segments_.end(),
                     [&](const auto& segment) {
                       const SharedWords& words = segment->words();
                       return (words.*count) <= tick_ && words.core == core;
                     });
}

absl::StatusOr<bool> SharedSums::Await(Count count) {
  for (int spin = 0; spin < kSpins && !interrupted_; ++spin) {
    if (HaveAll(count)) return true;
    if (spin % 64 == 0 && IsAwaitedOnThisCore(count)) break;
    Pause();
  }
  while (!interrupted_ && std::chrono::steady_clock::now() < deadline_) {
    const uint32_t seen = own_.words().doorbell;
    own_.words().sleeps.store(1, std::memory_order_seq_cst);
    const bool has_all = HaveAll(count);
    if (!has_all && !interrupted_) own_.Sleep(seen, kSleep);
    own_.words().sleeps.store(0, std::memory_order_seq_cst);
    if (has_all) return true;
    RETURN_IF_ERROR(CheckLeft(count));
  }
  return HaveAll(count);
}

std::vector<int> SharedSums::Behind() const {
  std::vector<int> behind;
  for (size_t rank = 0; rank < segments_.size(); ++rank) {
    if (segments_[rank]->words().arrived < own_.words().arrived) {
      behind.push_back(static_cast<int>(rank));
    }
  }
  return behind;
}

absl::Status SharedSums::CheckLeft(Count count) const {
  for (size_t rank = 0; rank < segments_.size(); ++rank) {
    const SharedWords& words = segments_[rank]->words();
    if (words.has_left != 0 && (words.*count) <= tick_) {
      return RankLostError(group_, static_cast<int>(rank),
                           "it has left the group");
    }
  }
  return absl::OkStatus();
}

absl::Status SharedSums::ReadPosts() {
  places_.clear();
  std::vector<SharedPost> posts;
  for (const auto& segment : segments_) {
    posts.push_back(segment->words().posts[sequence_ % SharedWords::kPosts]);
  }
  const SharedPost& own = posts[group_.own_rank];
  for (size_t rank = 0; rank < posts.size(); ++rank) {
    if (posts[rank].sequence == own.sequence && posts[rank].kind == own.kind &&
        posts[rank].count == own.count) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "sum ", own.sequence, " of the group is ", Describe(own), " at ",
        group_.NameOf(group_.own_rank), " but ", Describe(posts[rank]), " at ",
        group_.NameOf(static_cast<int>(rank))));
  }
  for (const OrderedReplica& replica : order_) {
    ASSIGN_OR_RETURN(const float* const place,
                     PlaceOf(replica.rank, posts[replica.rank], replica.index));
    places_.push_back(place);
  }
  return absl::OkStatus();
}

absl::StatusOr<const float*> SharedSums::PlaceOf(int rank,
                                                 const SharedPost& post,
                                                 size_t index) {
  const uint32_t number = post.allocation[index];
  if (number == SharedPost::kCopied) return nullptr;
  if (rank == group_.own_rank) return sum_.contributions[index].values.data();
  std::shared_ptr<SharedMemory>& memory = opened_[{rank, number}];
  if (memory == nullptr && number < SharedWords::kMaxAllocations) {
    SharedWords::Allocation listed =
        segments_[rank]->words().allocations[number];
    listed.offer[SharedWords::kOfferBytes - 1] = '\0';
    absl::StatusOr<std::shared_ptr<SharedMemory>> opened =
        SharedMemory::Open(listed.offer, listed.bytes);
    if (!opened.ok()) {
      return RankLostError(group_, rank,
                           absl::StrCat("its memory can't be opened: ",
                                        opened.status().message()));
    }
    memory = *std::move(opened);
  }
  const uint64_t bytes = post.count * sizeof(float);
  if (memory == nullptr || post.first[index] % sizeof(float) != 0 ||
      bytes > memory->size() || post.first[index] > memory->size() - bytes) {
    return RankLostError(group_, rank,
                         absl::StrCat("its contribution ", index,
                                      " lies in no memory that it shares"));
  }
  return reinterpret_cast<const float*>(memory->data() + post.first[index]);
}

ElementRange SharedSums::SliceOfChunk(int rank) const {
  const size_t count = Chunk().count;
  const size_t ranks = group_.ranks.size();
  const size_t lines = (count + kLine - 1) / kLine;
  const size_t each = (lines + ranks - 1) / ranks * kLine;
  const size_t first = std::min(count, each * rank);
  return {.first = first, .count = std::min(each, count - first)};
}

void SharedSums::Add(size_t first, size_t count, float* sum) {
  addends_.clear();
  for (size_t i = 0; i < order_.size(); ++i) {
    const OrderedReplica& replica = order_[i];
    const float* const chunk =
        places_[i] != nullptr ? places_[i] + Chunk().first
                              : segments_[replica.rank]->contributions(tick_) +
                                    replica.index * chunk_elements_;
    addends_.push_back(chunk + first);
  }
  SumInOrder(addends_, {sum, count});
}

void SharedSums::Interrupt() {
  interrupted_ = true;
  own_.Ring();
}

void SharedSums::Leave() {
  own_.words().has_left = 1;
  for (const auto& segment : segments_) segment->Ring();
}

}  // namespace parasol
