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

// Two small ps, one of an asynchronous and one of a synchronous job, that
// receive arbitrary bytes as Exchange messages, as a stream would deliver them.
// The run that a message names decides which ps gets it. Ends the process when
// a ps contradicts itself: an operation that fails, or a pull, has changed
// something; an operation is answered twice, or not at all; or rows take more
// memory than they may.
class ExchangeTarget {
 public:
  ExchangeTarget();
  ~ExchangeTarget();

  struct Outcome {
    // True if the bytes are a request; false if the stream would have ended.
    bool is_request = false;
    // Numbers of the message's operations that were done, failed, or wait.
    size_t done = 0;
    size_t failed = 0;
    size_t waiting = 0;
  };
  // Feeds `bytes` in pieces of `piece_bytes` (at least 1), as sockets deliver
  // them. Operations that wait may be answered during a later message. When
  // many wait, the synchronous ps is replaced by a new one.
  Outcome Feed(absl::string_view bytes, size_t piece_bytes);

 private:
  struct Ps {
    explicit Ps(const wire::LoadRequest& order);

    const std::string run;
    SimulatedClock clock;
    MetricsRegistry registry;
    PsMetrics metrics;
    ParameterServer server;
    // The ps's contents, encoded for comparison.
    std::string state;
  };
  struct Answer {
    size_t calls = 0;
    bool is_error = false;
  };

  std::shared_ptr<Answer> Execute(Ps& ps, const ReceivedMessage& request,
                                  size_t operation);
  void FillSharedMemory();
  void BeginAnew();
  // Destroys the synchronous ps, and checks that each operation that waits
  // there is answered once.
  void GiveUp();

  std::unique_ptr<Ps> asynchronous_;
  std::unique_ptr<Ps> synchronous_;
  std::vector<std::shared_ptr<Answer>> waiting_;
  std::unique_ptr<SharedPayloads> shared_worker_, shared_ps_;
};

}  // namespace parasol

#endif  // PARASOL_TESTS_FUZZ_EXCHANGE_TARGET_H_
