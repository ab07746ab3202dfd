#include "tests/simulation/group/wire.h"

#include <cstddef>
#include <cstring>
#include <utility>

#include "cluster/collective/frame_header.h"

namespace parasol::simulation {

void ProtocolPoints::MayFlip(WireMessage& message) {
  ++arrived_;
  if (flips_each_ == 0 || arrived_ % flips_each_ != 0 || message.is_end) return;
  FrameKind kind;
  std::memcpy(&kind, message.header.data() + 4, sizeof(kind));
  const bool is_piece = kind == FrameKind::kPiece;
  const size_t bytes =
      message.header.size() + (is_piece ? 0 : message.bytes.size());
  // Another bit each time.
  const size_t bit = (arrived_ * 7919 + reached_) % (8 * bytes);
  const size_t byte = bit / 8;
  char& flipped = byte < message.header.size()
                      ? message.header[byte]
                      : message.bytes[byte - message.header.size()];
  flipped ^= static_cast<char>(1 << bit % 8);
}

struct WireEnd::Shared {
  struct Side {
    Process* process = nullptr;
    std::deque<WireMessage> under_way;  // to this side
    std::deque<WireMessage> arrived;
    std::function<void(const WireMessage&)> receive;
    bool is_gone = false;  // its end is no more
  };

  World& world;
  ProtocolPoints& points;
  Side sides[2];

  // The next message arrives at a side.
  void Arrive(int to) {
    Side& side = sides[to];
    points.MayFlip(side.under_way.front());
    side.arrived.push_back(std::move(side.under_way.front()));
    side.under_way.pop_front();
    points.Reach();
    Deliver(to);
  }
  void Deliver(int to) {
    Side& side = sides[to];
    while (side.receive != nullptr && !side.arrived.empty()) {
      const WireMessage message = std::move(side.arrived.front());
      side.arrived.pop_front();
      const auto receive = side.receive;
      receive(message);
    }
  }
};

std::pair<std::unique_ptr<WireEnd>, std::unique_ptr<WireEnd>> WireEnd::Connect(
    World& world, ProtocolPoints& points, Process& a, Process& b) {
  auto shared = std::make_shared<Shared>(Shared{world, points, {}});
  shared->sides[0].process = &a;
  shared->sides[1].process = &b;
  return {std::unique_ptr<WireEnd>(new WireEnd(shared, 0)),
          std::unique_ptr<WireEnd>(new WireEnd(shared, 1))};
}

void WireEnd::OnMessage(std::function<void(const WireMessage&)> receive) {
  shared_->sides[side_].receive = std::move(receive);
  const std::shared_ptr<Shared> shared = shared_;
  shared->Deliver(side_);
}

void WireEnd::Send(WireMessage message) {
  if (has_closed_) return;
  const int to = 1 - side_;
  Shared::Side& side = shared_->sides[to];
  if (side.is_gone) return;
  side.under_way.push_back(std::move(message));
  shared_->world.Send(*shared_->sides[side_].process, *side.process,
                      [shared = shared_, to] { shared->Arrive(to); });
}

void WireEnd::Close() {
  if (has_closed_) return;
  Send({.is_end = true});
  has_closed_ = true;
  Shared::Side& own = shared_->sides[side_];
  own.receive = nullptr;
  own.is_gone = true;
}

}  // namespace parasol::simulation
