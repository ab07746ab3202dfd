#ifndef PARASOL_TESTS_FUZZ_EXCHANGE_TARGET_H_
#define PARASOL_TESTS_FUZZ_EXCHANGE_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "proto/parameter.pb.h"
#include "ps/parameter_server.h"
#include "ps/ps_metrics.h"

namespace parasol {

// A small ps that is fed with what claims to be Exchange messages, as a stream
// would feed it. Ends the process when what it does contradicts itself.
class ExchangeTarget {
 public:
  // Dense: "w" of 65,536 + 3 elements in part 0, "b" of 5 in part 1.
  ExchangeTarget();

  struct Outcome {
    // False: the stream would have ended.
    bool is_request = false;
    size_t done = 0;
    size_t failed = 0;
  };
  // `bytes` as pieces of `piece_bytes` (at least 1), as sockets deliver them.
  // Unless a push is done, all values are the same afterwards.
  Outcome Feed(absl::string_view bytes, size_t piece_bytes);

 private:
  std::string Values();

  SimulatedClock clock_;
  MetricsRegistry registry_;
  PsMetrics metrics_;
  ParameterServer server_;
  std::string values_;
};

// Messages that the target answers with OK: what mutants are made of.
std::vector<wire::ExchangeRequest> ValidExchangeRequests();

}  // namespace parasol

#endif  // PARASOL_TESTS_FUZZ_EXCHANGE_TARGET_H_
