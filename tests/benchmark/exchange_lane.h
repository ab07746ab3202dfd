#ifndef PARASOL_TESTS_BENCHMARK_EXCHANGE_LANE_H_
#define PARASOL_TESTS_BENCHMARK_EXCHANGE_LANE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tests/benchmark/contender.h"
#include "tests/benchmark/contents.h"
#include "tests/benchmark/lane.h"

namespace parasol {

enum class Direction { kPush, kPull, kPushPull };
std::string NameOf(Direction direction);

// A lane's part of what its contender does: sessions share the variables and
// the rows, so that none touches those of another.
struct Share {
  size_t index = 0;  // of the session
  size_t sessions = 1;
  size_t window = 1;  // exchanges in flight
};

// One variable after the other. Counts bytes, once for push and pull.
std::unique_ptr<Lane> MakeVariableLane(Session& session,
                                       const Contents& contents,
                                       Direction direction, const Share& share);

// The whole of a training step: all variables pushed and pulled. Counts steps.
enum class StepAs { kOneExchange, kExchangePerVariable };
std::unique_ptr<Lane> MakeStepLane(Session& session, const Contents& contents,
                                   StepAs as);

// Requests of kRowsPerRequest random rows each, of `rows` rows in all the
// lanes together, which exist already when this returns. Counts rows.
inline constexpr size_t kRowsPerRequest = 10000;
std::unique_ptr<Lane> MakeRowLane(Session& session, const Contents& contents,
                                  Direction direction, const Share& share,
                                  size_t rows);

// Pushes of kRowsPerRequest rows that are not there yet. Counts rows.
std::unique_ptr<Lane> MakeGrowthLane(Session& session,
                                     const Contents& contents);

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_EXCHANGE_LANE_H_
