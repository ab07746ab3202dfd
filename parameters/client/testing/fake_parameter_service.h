#ifndef PARASOL_PARAMETERS_CLIENT_TESTING_FAKE_PARAMETER_SERVICE_H_
#define PARASOL_PARAMETERS_CLIENT_TESTING_FAKE_PARAMETER_SERVICE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "cluster/rpc/server.h"
#include "grpcpp/support/byte_buffer.h"
#include "proto/parameter.grpc.pb.h"

namespace parasol {

// A shard for tests of its clients: values in memory, a push subtracts its
// gradient at once, and faults as the test asks for them. Reads and writes
// messages with protobuf alone. Serves while it lives. Thread-safe.
class FakeParameterService {
 public:
  enum class Fault {
    kNone,
    kDropReply,    // done, but never answered
    kBreakBefore,  // undone, and the stream ends
    kBreakAfter,   // done, and the stream ends instead of the answer
    kNoValues,     // a push-pull of variables is answered as a push
    kUnavailable,  // undone, answered with Unavailable
    kOtherRun,     // undone, answered with FailedPrecondition
    kShortReply,   // answered with one payload too few
    kWrongSizes,   // answered with a header that names other sizes
  };

  FakeParameterService();
  ~FakeParameterService();

  // Sets the function that is asked for the fault of each operation, before it
  // is done, with the fake's lock held.
  void SetFault(std::function<Fault(const wire::Operation&)> fault)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Adds a part full of zeros.
  void AddPart(uint32_t part, size_t elements) ABSL_LOCKS_EXCLUDED(mu_);
  std::vector<float> Values(uint32_t part) ABSL_LOCKS_EXCLUDED(mu_);

  // Adds a sparse table whose rows are zeros.
  void AddTable(uint32_t table, size_t width) ABSL_LOCKS_EXCLUDED(mu_);
  // Number of pushes to the table, including those without rows.
  int TablePushes(uint32_t table) ABSL_LOCKS_EXCLUDED(mu_);

  // Sets the update counts and staleness that later results report.
  void SetUpdates(int64_t min_updates, int64_t max_updates, bool stale)
      ABSL_LOCKS_EXCLUDED(mu_);

  // StopServer() ends all streams and stops listening on address();
  // StartServer() listens again.
  void StopServer();
  void StartServer();
  const std::string& address() const { return address_; }

  // Blocks until `count` operations have come, resent ones included.
  void AwaitRequests(size_t count) ABSL_LOCKS_EXCLUDED(mu_);

  // Number of operations of each message that has come.
  std::vector<int> MessageSizes() ABSL_LOCKS_EXCLUDED(mu_);
  // The (step, replica) of each synchronous push, in the order they came.
  std::vector<std::pair<int64_t, int>> SyncSteps() ABSL_LOCKS_EXCLUDED(mu_);
  std::vector<int64_t> PulledMinUpdates() ABSL_LOCKS_EXCLUDED(mu_);

  // Number of times that each push sequence has come.
  std::map<uint64_t, int> Sequences() ABSL_LOCKS_EXCLUDED(mu_);
  std::set<uint64_t> Incarnations() ABSL_LOCKS_EXCLUDED(mu_);
  std::set<std::string> RunIds() ABSL_LOCKS_EXCLUDED(mu_);
  // The layouts and ps incarnations that messages have named.
  std::set<uint64_t> Layouts() ABSL_LOCKS_EXCLUDED(mu_);
  std::set<uint64_t> PsIncarnations() ABSL_LOCKS_EXCLUDED(mu_);
  // The furthest that a push's sequence has been ahead of the oldest unanswered
  // one.
  uint64_t MaxAhead() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  class Service;
  class Reactor;

  struct Outcome {
    std::string reply;
    bool answer = true;
    bool end_stream = false;
  };
  Outcome Handle(const grpc::ByteBuffer& bytes) ABSL_LOCKS_EXCLUDED(mu_);
  void Note(uint64_t sequence) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Does the operation. Returns false if the stream ends.
  bool Do(const wire::Operation& operation, const std::string*& payload,
          wire::ExchangeResponse& response) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns true if the push is new.
  template <typename Push>
  bool Claim(const Push& push, wire::Result& result)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Apply(const wire::Push& push, const std::string* payload)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Apply(const wire::RowPush& push, const std::string* payload)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Read(const wire::Pull& pull, wire::ExchangeResponse& response,
            wire::Result& result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Read(const wire::RowPull& pull, const std::string& ids,
            wire::ExchangeResponse& response, wire::Result& result)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  std::unique_ptr<Service> service_;
  std::unique_ptr<RpcServer> server_;
  std::string address_ = "127.0.0.1:0";

  absl::Mutex mu_;
  std::function<Fault(const wire::Operation&)> fault_ ABSL_GUARDED_BY(mu_);
  std::map<uint32_t, std::vector<float>> values_ ABSL_GUARDED_BY(mu_);
  struct Table {
    size_t width = 0;
    int pushes = 0;
    std::map<uint64_t, std::vector<float>> rows;
  };
  std::map<uint32_t, Table> tables_ ABSL_GUARDED_BY(mu_);
  wire::Result updates_ ABSL_GUARDED_BY(mu_);
  std::vector<int> message_sizes_ ABSL_GUARDED_BY(mu_);
  std::vector<std::pair<int64_t, int>> sync_steps_ ABSL_GUARDED_BY(mu_);
  std::vector<int64_t> min_updates_ ABSL_GUARDED_BY(mu_);
  size_t requests_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<uint64_t, int> sequences_ ABSL_GUARDED_BY(mu_);
  std::set<uint64_t> applied_ ABSL_GUARDED_BY(mu_);
  std::set<uint64_t> answered_ ABSL_GUARDED_BY(mu_);
  uint64_t max_ahead_ ABSL_GUARDED_BY(mu_) = 0;
  std::set<uint64_t> incarnations_ ABSL_GUARDED_BY(mu_);
  std::set<std::string> run_ids_ ABSL_GUARDED_BY(mu_);
  std::set<uint64_t> layouts_ ABSL_GUARDED_BY(mu_);
  std::set<uint64_t> ps_incarnations_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_PARAMETERS_CLIENT_TESTING_FAKE_PARAMETER_SERVICE_H_
