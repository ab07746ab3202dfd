#ifndef PARASOL_TESTS_FUZZ_EXCHANGE_TARGET_H_
#define PARASOL_TESTS_FUZZ_EXCHANGE_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "cluster/rpc/shared_payloads.h"
#include "proto/parameter.pb.h"
#include "ps/operation/operation.h"
#include "ps/shard/parameter_server.h"
#include "ps/shard/ps_metrics.h"

namespace parasol {

// Two small ps, of an asynchronous and of a synchronous job, that are fed with
// what claims to be Exchange messages, as a stream would feed them; the run
// that a message names decides which of them gets it. Ends the process when
// what one does contradicts itself: an operation that fails, or a pull, has
// changed something; one is answered twice, or not at all; or rows take more
// memory than they may.
class ExchangeTarget {
 public:
  ExchangeTarget();
  ~ExchangeTarget();

  struct Outcome {
    // False: the stream would have ended.
    bool is_request = false;
    // The message's operations.
    size_t done = 0;
    size_t failed = 0;
    size_t waiting = 0;
  };
  // `bytes` as pieces of `piece_bytes` (at least 1), as sockets deliver them.
  // Operations that wait may be answered during a later message; when there are
  // many, the synchronous ps begins anew.
  Outcome Feed(absl::string_view bytes, size_t piece_bytes);

 private:
  struct Ps {
    explicit Ps(const wire::LoadRequest& order);

    const std::string run;
    SimulatedClock clock;
    MetricsRegistry registry;
    PsMetrics metrics;
    ParameterServer server;
    // What it holds.
    std::string state;
  };
  struct Answer {
    size_t calls = 0;
    bool is_error = false;
  };

  std::shared_ptr<Answer> Execute(Ps& ps, const ReceivedRequest& request,
                                  size_t operation);
  void FillSharedMemory();
  void BeginAnew();
  // The synchronous ps, and who waits there.
  void GiveUp();

  std::unique_ptr<Ps> asynchronous_;
  std::unique_ptr<Ps> synchronous_;
  std::vector<std::shared_ptr<Answer>> waiting_;
  std::unique_ptr<SharedPayloads> shared_worker_, shared_ps_;
};

}  // namespace parasol

#endif  // PARASOL_TESTS_FUZZ_EXCHANGE_TARGET_H_
