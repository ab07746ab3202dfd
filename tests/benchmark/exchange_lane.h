#ifndef PARASOL_TESTS_BENCHMARK_EXCHANGE_LANE_H_
#define PARASOL_TESTS_BENCHMARK_EXCHANGE_LANE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tests/benchmark/contender.h"
#include "tests/benchmark/contents.h"
#include "tests/benchmark/work_queue.h"

namespace parasol {

enum class Direction { kPush, kPull, kPushPull };
std::string NameOf(Direction direction);

// A lane's part of its contender's work. Sessions divide the variables and rows
// among them, so that no session touches another's.
struct Share {
  size_t index = 0;  // index of the session
  size_t sessions = 1;
  size_t window = 1;  // exchanges in flight
};

// Makes a lane that exchanges one variable after the other. Counts each byte
// once, even if it is both pushed and pulled.
std::unique_ptr<WorkQueue> MakeVariableLane(Session& session,
                                            const Contents& contents,
                                            Direction direction,
                                            const Share& share);

// Makes a lane whose piece is a whole training step: all variables are pushed
// and pulled. Counts steps.
enum class StepAs { kOneExchange, kExchangePerVariable };
std::unique_ptr<WorkQueue> MakeStepLane(Session& session,
                                        const Contents& contents, StepAs as);

// Makes a lane of requests of kRowsPerRequest random rows each, out of `rows`
// rows that all lanes together use. All rows exist when the function returns.
// Counts rows.
inline constexpr size_t kRowsPerRequest = 10000;
std::unique_ptr<WorkQueue> MakeRowLane(Session& session,
                                       const Contents& contents,
                                       Direction direction, const Share& share,
                                       size_t rows);

// Makes a lane of pushes of kRowsPerRequest rows that do not exist yet. Counts
// rows.
std::unique_ptr<WorkQueue> MakeGrowthLane(Session& session,
                                          const Contents& contents);

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_EXCHANGE_LANE_H_
