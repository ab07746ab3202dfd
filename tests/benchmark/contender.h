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

// A gradient for a variable, its values back, or both. The memory stays until
// the exchange is finished.
struct Exchange {
  size_t variable = 0;
  absl::Span<const float> gradient = {};  // empty: no push
  absl::Span<float> values = {};          // empty: no pull
};

// The same for rows of the sparse table, in the order of the ids.
struct RowExchange {
  absl::Span<const uint64_t> ids;
  absl::Span<const float> gradients = {};  // empty: no push
  absl::Span<float> values = {};           // empty: no pull
};

// One thread's way to a server. Exchanges are started, many of them before the
// first one is finished, and finished in the order of their start.
class Session {
 public:
  virtual ~Session() = default;

  virtual void Start(const Exchange& exchange) = 0;
  virtual void StartRows(const RowExchange& exchange) = 0;
  // Starts all of a step, as one exchange. Without a way to say so, the
  // exchanges are done one by one.
  virtual void StartStep(absl::Span<const Exchange> exchanges);

  // Waits for the oldest exchange that is not finished.
  virtual void Finish() = 0;
};

// Something that brings gradients to variables and values back.
struct Contender {
  std::string name;
  // Null: the variables are in this process.
  std::unique_ptr<ServerProcess> server = nullptr;
  // As many threads as it takes to be fast.
  std::vector<std::unique_ptr<Session>> sessions = {};
};

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_CONTENDER_H_
