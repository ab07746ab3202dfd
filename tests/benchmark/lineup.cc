#include "tests/benchmark/lineup.h"

#include <algorithm>
#include <utility>

namespace parasol {
namespace {

constexpr size_t kBytesInFlight = 8 << 20;
constexpr size_t kExchangesInFlight = 256;
constexpr size_t kLeastInFlight = 2;

}  // namespace

size_t WindowOf(size_t bytes, size_t sessions) {
  const size_t exchanges =
      std::clamp(kBytesInFlight / bytes, kLeastInFlight, kExchangesInFlight);
  return std::max<size_t>(1, exchanges / sessions);
}

Entrant Enter(Contender contender, size_t exchange_bytes,
              const MakeLane& make_lane, FigureTarget target) {
  const size_t sessions = contender.sessions.size();
  Entrant entrant = {.contender = std::move(contender),
                     .window = WindowOf(exchange_bytes, sessions),
                     .target = std::move(target)};
  for (size_t i = 0; i < sessions; ++i) {
    entrant.lanes.push_back(make_lane(
        *entrant.contender.sessions[i],
        {.index = i, .sessions = sessions, .window = entrant.window}));
  }
  return entrant;
}

void Lineup::Add(const std::string& contender,
                 const std::function<Entrant()>& make) {
  if (settings_.TakesPart(contender)) entrants_.push_back(make());
}

}  // namespace parasol
