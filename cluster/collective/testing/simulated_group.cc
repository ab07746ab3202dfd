#include "cluster/collective/testing/simulated_group.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "absl/strings/str_cat.h"
#include "base/log.h"

namespace parasol {

// Each rank begins for each pack an all-reduce and, after every second one, an
// all-gather.
struct SimulatedGroup::Call {
  bool is_gather = false;
  int pack = 0;
  std::vector<std::vector<float>> values;
  std::vector<float> sum;
  std::vector<std::string> gathered;
  bool has_begun = false;
  bool has_ended = false;
};

namespace {

// Longer than any loss may take, so that what takes longer shows.
constexpr absl::Duration kLimit = absl::Seconds(30);
constexpr absl::Duration kTick = absl::Milliseconds(50);
// Longer than the others wait.
constexpr absl::Duration kStandstill = absl::Seconds(4);

std::string GatheredOf(int rank, int pack) {
  return std::string(rank * 40, 'a' + pack % 26);
}

}  // namespace

SimulatedGroup::SimulatedGroup(Options options)
    : options_(std::move(options)), random_(options_.seed) {
  const Layout& layout = options_.layout;
  CollectiveGroup group;
  group.epoch = 7;
  group.planner = options_.planner;
  for (size_t rank = 0; rank < layout.size(); ++rank) {
    const size_t machine = rank / options_.ranks_of_a_machine;
    group.ranks.push_back(
        {absl::StrCat("host", machine, ":", rank), layout[rank]});
  }
  ranks_.resize(layout.size());
  for (size_t rank = 0; rank < layout.size(); ++rank) {
    group.own_rank = static_cast<int>(rank);
    GroupProtocol::Options protocol;
    protocol.chunk_bytes = 256;
    protocol.algorithm = options_.algorithm;
    ranks_[rank].protocol =
        std::make_unique<GroupProtocol>(group, protocol, now_);
    for (size_t pack = 0; pack < options_.packs.size(); ++pack) {
      auto sum = std::make_unique<Call>();
      sum->pack = static_cast<int>(pack);
      for (const int replica : layout[rank]) {
        sum->values.push_back(
            ContributionOf(replica, sum->pack, options_.packs[pack]));
      }
      sum->sum.assign(options_.packs[pack], -1);
      ranks_[rank].calls.push_back(std::move(sum));
      if (pack % 2 == 0) continue;
      auto gather = std::make_unique<Call>();
      gather->is_gather = true;
      gather->pack = static_cast<int>(pack);
      ranks_[rank].calls.push_back(std::move(gather));
    }
  }
}

SimulatedGroup::~SimulatedGroup() = default;

int SimulatedGroup::open() const {
  int open = 0;
  for (const Rank& rank : ranks_) {
    if (rank.is_dead || rank.is_stopped) continue;
    for (const auto& call : rank.calls) open += call->has_ended ? 0 : 1;
  }
  return open;
}

void SimulatedGroup::Run() {
  bool has_struck = !options_.fault.has_value();
  absl::Time wakes = absl::InfiniteFuture();
  while (open() > 0 && now_ - fault_time_ < kLimit) {
    if (!has_struck && events_ == options_.fault->after) {
      has_struck = true;
      fault_time_ = now_;
      Strike();
      if (options_.fault->fault == Fault::kStopThenGoOn) {
        wakes = now_ + kStandstill;
      }
    }
    if (Step()) {
      ++events_;
      continue;
    }
    // All wait: time passes.
    now_ += kTick;
    if (now_ >= wakes) ranks_[options_.fault->victim].is_stopped = false;
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (!Acts(static_cast<int>(rank))) continue;
      ranks_[rank].protocol->Tick(now_);
      Collect(static_cast<int>(rank));
    }
  }
}

bool SimulatedGroup::Step() {
  std::vector<std::function<void()>> choices;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    const int rank = static_cast<int>(i);
    if (Acts(rank) && !ranks_[i].calls.back()->has_begun) {
      choices.push_back([this, rank] { BeginNext(rank); });
    }
  }
  for (auto& [ends, link] : links_) {
    const auto [from, to] = ends;
    Link* const each = &link;
    const bool has_under_way =
        !link.messages.empty() && link.messages.front().has_left;
    if (Acts(from) && !link.messages.empty() &&
        !link.messages.back().has_left) {
      choices.push_back([=, this] { Leave(*each, from); });
    }
    if (Acts(to) && !link.has_ended &&
        (has_under_way || (link.is_cut && link.messages.empty()))) {
      choices.push_back([=, this] { Deliver(*each, from, to); });
    }
  }
  if (choices.empty()) return false;
  choices[random_() % choices.size()]();
  return true;
}

void SimulatedGroup::BeginNext(int rank) {
  Rank& self = ranks_[rank];
  Call& call = **std::find_if(self.calls.begin(), self.calls.end(),
                              [](const auto& c) { return !c->has_begun; });
  call.has_begun = true;
  OperationSpec spec;
  OperationMemory memory;
  if (call.is_gather) {
    spec.kind = OperationKind::kAllGather;
    memory.own = GatheredOf(rank, call.pack);
    spec.own_bytes = memory.own.size();
    memory.gathered = &call.gathered;
  } else {
    spec.kind = OperationKind::kAllReduce;
    spec.size = call.sum.size();
    for (size_t i = 0; i < call.values.size(); ++i) {
      memory.contributions.push_back(
          {options_.layout[rank][i], call.values[i]});
    }
    memory.sum = absl::MakeSpan(call.sum);
  }
  self.protocol->Begin(spec, std::move(memory),
                       [this, &call, rank](const absl::Status& status) {
                         Ended(call, rank, status);
                       });
  Collect(rank);
}

void SimulatedGroup::Ended(Call& call, int rank, const absl::Status& status) {
  CHECK(!call.has_ended);
  call.has_ended = true;
  if (!status.ok()) {
    errors_.push_back(status);
    return;
  }
  if (!call.is_gather) {
    const size_t count = options_.packs[call.pack];
    wrong_ +=
        HasBits(call.sum, SerialSum(options_.layout, call.pack, count)) ? 0 : 1;
    return;
  }
  for (size_t from = 0; from < ranks_.size(); ++from) {
    const std::string want = GatheredOf(static_cast<int>(from), call.pack);
    wrong_ += call.gathered[from] == want ? 0 : 1;
  }
}

void SimulatedGroup::Leave(Link& link, int from) {
  Message& message =
      *std::find_if(link.messages.begin(), link.messages.end(),
                    [](const Message& m) { return !m.has_left; });
  message.has_left = true;
  message.bytes = message.frame.own;
  if (message.frame.step >= 0) {
    message.bytes.assign(
        reinterpret_cast<const char*>(message.frame.payload.data()),
        message.frame.payload.size());
  }
  ranks_[from].protocol->Sent(message.frame);
  Collect(from);
}

void SimulatedGroup::Deliver(Link& link, int from, int to) {
  GroupProtocol& protocol = *ranks_[to].protocol;
  if (link.messages.empty()) {
    link.has_ended = true;
    protocol.OnClosed(from, "the connection was closed");
    return Collect(to);
  }
  const Message message = std::move(link.messages.front());
  link.messages.pop_front();
  const auto encoded = message.frame.header.Encode();
  std::string bytes(encoded.data(), encoded.size());
  const bool is_piece = message.frame.header.kind == FrameKind::kPiece;
  const size_t flippable = bytes.size() + (is_piece ? 0 : message.bytes.size());
  bytes += message.bytes;
  if (flips_next_ && to == options_.fault->victim) {
    flips_next_ = false;
    const size_t bit = random_() % (8 * flippable);
    bytes[bit / 8] ^= static_cast<char>(1 << bit % 8);
  }
  Take(from, to, std::move(bytes));
}

void SimulatedGroup::Take(int from, int to, std::string message) {
  GroupProtocol& protocol = *ranks_[to].protocol;
  const auto header = FrameHeader::Parse(message.data(), 7);
  if (!header.ok()) {
    protocol.OnNonsense(from, header.status());
  } else if (std::byte* const target = protocol.OnHeader(from, *header)) {
    std::memcpy(target, message.data() + FrameHeader::kBytes,
                message.size() - FrameHeader::kBytes);
    protocol.OnBytes(from, *header);
  }
  Collect(to);
}

void SimulatedGroup::Strike() {
  const int victim = options_.fault->victim;
  switch (options_.fault->fault) {
    case Fault::kKill:
      return Kill(victim);
    case Fault::kStop:
    case Fault::kStopThenGoOn:
      ranks_[victim].is_stopped = true;
      return;
    case Fault::kAbort:
      ranks_[victim].protocol->Abort(absl::DataLossError("not a number"));
      return Collect(victim);
    case Fault::kFlip:
      flips_next_ = true;
      return;
  }
}

void SimulatedGroup::Kill(int victim) {
  ranks_[victim].is_dead = true;
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (static_cast<int>(rank) == victim) continue;
    Link& link = links_[{victim, static_cast<int>(rank)}];
    // Some of what has left arrives, and then the end.
    size_t arrives = 0;
    while (arrives < link.messages.size() && link.messages[arrives].has_left) {
      ++arrives;
    }
    link.messages.resize(arrives == 0 ? 0 : random_() % (arrives + 1));
    link.is_cut = true;
  }
}

void SimulatedGroup::Collect(int rank) {
  GroupProtocol& protocol = *ranks_[rank].protocol;
  if (!protocol.status().ok()) {
    // What has not left can't leave: its memory is the caller's again.
    for (auto& [ends, link] : links_) {
      if (ends.first != rank) continue;
      std::erase_if(link.messages, [](const Message& message) {
        return !message.has_left && message.frame.step >= 0;
      });
    }
    protocol.ReleaseOperations();
  }
  for (GroupProtocol::Frame& frame : protocol.TakeFrames()) {
    const int to = frame.peer;
    Link& link = links_[{rank, to}];
    if (!link.is_cut) link.messages.push_back({std::move(frame), "", false});
  }
  for (GroupProtocol::Completion& each : protocol.TakeCompletions()) {
    each.done(each.status);
  }
}

}  // namespace parasol
