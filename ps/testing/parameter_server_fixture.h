#ifndef PARASOL_PS_TESTING_PARAMETER_SERVER_FIXTURE_H_
#define PARASOL_PS_TESTING_PARAMETER_SERVER_FIXTURE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/status_matchers.h"
#include "cluster/rpc/payload.h"
#include "cluster/rpc/protocol_limits.h"
#include "gtest/gtest.h"
#include "proto/checkpoint.pb.h"
#include "proto/parameter.pb.h"
#include "ps/operation/operation.h"
#include "ps/shard/parameter_server.h"
#include "ps/shard/ps_metrics.h"
#include "ps/testing/requests.h"
#include "storage/checkpoint_store.h"

// A ParameterServer, orders and requests for it, and checkpoints of it.
namespace parasol::parameter_server_testing {

inline constexpr int64_t kChunk = kChunkElements;
inline constexpr int64_t kElements = 2 * kChunk + 9;
inline constexpr uint64_t kWorker = 7;
inline constexpr uint64_t kIncarnation = 0x77;
inline constexpr uint64_t kLayout = 5;
inline constexpr int64_t kChief = 2;

inline wire::OrderHeader OrderHeader() {
  wire::OrderHeader order;
  order.set_incarnation(kIncarnation);
  order.set_chief_epoch(kChief);
  order.set_layout(kLayout);
  return order;
}

// One ps with what it borrows.
struct Ps {
  explicit Ps(uint64_t memory_limit_bytes = UINT64_MAX)
      : metrics(registry),
        server({.task = "ps/1",
                .incarnation = kIncarnation,
                .memory_limit_bytes = memory_limit_bytes},
               clock, metrics) {}

  SimulatedClock clock;
  MetricsRegistry registry;
  PsMetrics metrics;
  ParameterServer server;
};

// The order of the whole variable "w" on one shard, zeros; w -= gradient.
inline wire::LoadRequest LoadOrder(const std::string& run_id = "run-a") {
  wire::LoadRequest order;
  order.set_run_id(run_id);
  *order.mutable_order() = OrderHeader();
  order.set_seed(1);
  order.mutable_optimizer()->mutable_sgd()->set_learning_rate(1);
  *order.add_part() = MakePart(0, "w", kElements, 0, kElements);
  order.set_num_shards(1);
  return order;
}

// The first two chunks, or the rest, as one of two shards holds them.
inline wire::LoadRequest HalfOrder(uint32_t shard) {
  wire::LoadRequest order = LoadOrder();
  order.mutable_order()->set_layout(kLayout + 1);
  *order.mutable_part(0) = shard == 0
                               ? MakePart(0, "w", kElements, 0, 2 * kChunk)
                               : MakePart(0, "w", kElements, 2 * kChunk, 9);
  order.set_shard(shard);
  order.set_num_shards(2);
  return order;
}

inline wire::LoadRequest AdamOrder() {
  wire::LoadRequest order = LoadOrder();
  order.mutable_optimizer()->mutable_adam()->set_learning_rate(0.1);
  order.mutable_part(0)->mutable_initializer()->mutable_glorot_uniform();
  return order;
}

inline wire::RequestHeader PushRequest(uint64_t sequence,
                                       uint64_t worker = kWorker,
                                       int64_t elements = kElements) {
  wire::RequestHeader request;
  request.set_run_id("run-a");
  request.set_worker_incarnation(worker);
  wire::Operation& operation = *request.add_operation();
  operation.set_id(sequence);
  *operation.mutable_push() = MakePush(sequence, {MakeRange(0, 0, elements)});
  return request;
}

inline wire::RequestHeader PullRequest(int64_t elements = kElements) {
  wire::RequestHeader request;
  request.set_run_id("run-a");
  *request.add_operation()->mutable_pull() =
      MakePull({MakeRange(0, 0, elements)});
  return request;
}

// The results of a message's operations, none of which waits.
inline std::vector<absl::StatusOr<OperationResult>> ExecuteAll(
    Ps& ps, const wire::RequestHeader& header,
    std::vector<PayloadView> payloads) {
  const auto request = ReceivedMessage::Create(header, std::move(payloads));
  EXPECT_OK(request);
  std::vector<absl::StatusOr<OperationResult>> results;
  for (size_t i = 0; i < request->size(); ++i) {
    ps.server.Execute(*request, i,
                      [&results](absl::StatusOr<OperationResult> result) {
                        results.push_back(std::move(result));
                      });
    EXPECT_EQ(results.size(), i + 1);
  }
  return results;
}

// Returns the result of a message of one operation.
inline absl::StatusOr<OperationResult> Execute(
    Ps& ps, const wire::RequestHeader& header,
    std::vector<PayloadView> payloads) {
  return ExecuteAll(ps, header, std::move(payloads))[0];
}

inline absl::StatusOr<OperationResult> Push(Ps& ps, uint64_t sequence,
                                            float gradient,
                                            int64_t elements = kElements) {
  const std::string bytes = Floats(elements, gradient);
  return Execute(ps, PushRequest(sequence, kWorker, elements), {ViewOf(bytes)});
}

// Returns true if the push had been applied before.
inline bool IsDuplicate(const absl::StatusOr<OperationResult>& push) {
  EXPECT_OK(push);
  return push.ok() && push->duplicate;
}

inline std::vector<float> Values(Ps& ps, int64_t elements = kElements) {
  const auto result = Execute(ps, PullRequest(elements), {});
  EXPECT_OK(result);
  return result.ok() ? FloatsOf(result->payloads) : std::vector<float>();
}

// Checkpoints of the shards in a directory of their own.
class Checkpoints {
 public:
  Checkpoints()
      : directory_(absl::StrCat(
            testing::TempDir(), "/",
            absl::StrReplaceAll(
                testing::UnitTest::GetInstance()->current_test_info()->name(),
                {{"/", "-"}}))),
        store_(CheckpointStore::OpenForWriting(directory_).value()) {}

  const std::string& directory() const { return directory_; }

  // The path of a checkpoint that holds what `shards` hold.
  std::string Write(const std::vector<Ps*>& shards,
                    const std::vector<std::string>& slots,
                    std::optional<int64_t> at_updates = std::nullopt) {
    durable::CheckpointManifest manifest;
    manifest.set_run_id("run-a");
    manifest.set_global_step(++step_);
    auto* variable = manifest.add_variable();
    variable->set_name("w");
    variable->add_shape(kElements);
    variable->mutable_slot()->Assign(slots.begin(), slots.end());
    const std::string directory = store_.Begin(step_).value();
    for (size_t i = 0; i < shards.size(); ++i) {
      *manifest.add_file() = WriteShard(*shards[i], directory, i, at_updates);
    }
    EXPECT_OK(store_.Commit(directory, manifest));
    return store_.PathOf(step_);
  }

 private:
  static durable::CheckpointFile WriteShard(Ps& ps,
                                            const std::string& directory,
                                            size_t number,
                                            std::optional<int64_t> at_updates) {
    ps.server.Registered(kChief, directory.substr(0, directory.rfind('/')));
    wire::SnapshotRequest request;
    request.set_run_id("run-a");
    *request.mutable_order() = OrderHeader();
    request.mutable_order()->set_layout(ps.server.holding().layout);
    request.set_directory(directory);
    request.set_file_name(absl::StrCat("shard-", number, ".sst"));
    if (at_updates.has_value()) request.set_at_updates(*at_updates);
    const auto response = ps.server.Snapshot(request);
    EXPECT_OK(response);
    durable::CheckpointFile file;
    file.set_name(request.file_name());
    file.set_bytes(response->bytes());
    file.set_crc32c(response->crc32c());
    return file;
  }

  const std::string directory_;
  CheckpointStore store_;
  int64_t step_ = 0;
};

inline wire::LoadRequest From(wire::LoadRequest order,
                              const std::string& checkpoint) {
  order.set_checkpoint(checkpoint);
  return order;
}

}  // namespace parasol::parameter_server_testing

#endif  // PARASOL_PS_TESTING_PARAMETER_SERVER_FIXTURE_H_
