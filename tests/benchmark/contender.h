#ifndef PARASOL_TESTS_BENCHMARK_CONTENDER_H_
#define PARASOL_TESTS_BENCHMARK_CONTENDER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "tests/benchmark/server_process.h"

namespace parasol {

// A push of a variable's gradient, a pull of its values, or both. The memory
// must stay valid until the exchange is finished.
struct VariableExchange {
  size_t variable = 0;
  absl::Span<const float> gradient = {};  // empty: no push
  absl::Span<float> values = {};          // empty: no pull
};

// A push of gradients of rows of the sparse table, a pull of their values, or
// both, in the order of `ids`.
struct RowExchange {
  absl::Span<const uint64_t> ids;
  absl::Span<const float> gradients = {};  // empty: no push
  absl::Span<float> values = {};           // empty: no pull
};

// One thread's connection to a server. Many exchanges may be started before the
// first one is finished; they are finished in the order in which they were
// started.
class Session {
 public:
  virtual ~Session() = default;

  virtual void Start(const VariableExchange& exchange) = 0;
  virtual void StartRows(const RowExchange& exchange) = 0;
  // Starts all exchanges of a step as one exchange. By default each is started
  // on its own.
  virtual void StartStep(absl::Span<const VariableExchange> exchanges);

  // Waits for the oldest exchange that is not finished.
  virtual void Finish() = 0;
};

// An implementation of pushing gradients to variables and pulling values back.
struct Contender {
  std::string name;
  // The server's process; null if the variables are in this process.
  std::unique_ptr<ServerProcess> server = nullptr;
  // A second one, which gets what the first one gets; null as a rule.
  std::unique_ptr<ServerProcess> twin = nullptr;
  // Sessions, one per thread; as many as it takes to be fast.
  std::vector<std::unique_ptr<Session>> sessions = {};
};

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_CONTENDER_H_
