// Mutants of valid messages, as a broken or hostile peer would send them, from
// fixed seeds.

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/parameter.pb.h"
#include "tests/fuzz/exchange_target.h"
#include "tests/fuzz/valid_requests.h"

namespace parasol {
namespace {

// Numbers at which lengths, offsets and counts go wrong.
constexpr uint64_t kEdges[] = {
    0,          1,          2,          5,
    65535,      65536,      65539,      INT32_MAX,
    UINT32_MAX, 1ULL << 32, 1ULL << 61, static_cast<uint64_t>(INT64_MAX),
    UINT64_MAX, 1ULL << 63};

class Mutator {
 public:
  explicit Mutator(uint32_t seed) : random_(seed) {}

  size_t Below(size_t end) { return random_() % end; }

  // Something in the message is another number, missing, doubled, or cut.
  std::string MutateMessage(wire::ExchangeRequest request) {
    wire::RequestHeader& header = *request.mutable_header();
    wire::Operation& operation =
        *header.mutable_operation(Below(header.operation_size()));
    switch (Below(10)) {
      case 9:
        MutateShared(header);
        break;
      case 0:
        header.set_run_id(Below(2) == 0 ? "another" : kAsynchronousRun);
        break;
      case 1:
        header.set_worker_incarnation(Edge());
        break;
      case 2:
        *header.add_operation() = operation;
        break;
      case 3:
        MutateKind(operation);
        break;
      case 4:
        if (request.payload_size() > 0) {
          request.mutable_payload(Below(request.payload_size()))
              ->resize(Below(40));
        }
        break;
      case 5:
        request.add_payload(std::string(Below(40), '\5'));
        break;
      case 6:
        // Ids of rows, elements, or offsets.
        MutatePayload(request);
        break;
      case 7:
        MutateKind(operation);
        break;
      default:
        MutateRange(operation);
    }
    return request.SerializeAsString();
  }

  // What lies in shared memory, and where.
  void MutateShared(wire::RequestHeader& header) {
    wire::SharedPayload& shared = header.shared_payload_size() > 0
                                      ? *header.mutable_shared_payload(0)
                                      : *header.add_shared_payload();
    switch (Below(5)) {
      case 0:
        shared.set_position(Edge());
        break;
      case 1:
        shared.set_bytes(Edge());
        break;
      case 2:
        shared.add_block(Edge());
        break;
      case 3:
        shared.add_block(Below(4));
        shared.set_bytes(shared.block_size() * kSharedBytes - Below(8));
        break;
      default:
        *header.add_shared_payload() = wire::SharedPayload(shared);
    }
  }

  void MutateBytes(std::string& bytes) {
    const size_t at = Below(bytes.size());
    switch (Below(4)) {
      case 0:
        bytes[at] = static_cast<char>(random_());
        break;
      case 1:
        bytes.resize(at);
        break;
      case 2:
        bytes.insert(at, bytes.substr(Below(bytes.size()), Below(30)));
        break;
      default:
        // A length of up to 4 GiB.
        bytes.insert(at, std::string(Below(5), '\xFF') + '\x0F');
    }
  }

 private:
  uint64_t Edge() { return kEdges[Below(std::size(kEdges))]; }

  void MutatePayload(wire::ExchangeRequest& request) {
    if (request.payload_size() == 0) return;
    std::string& payload =
        *request.mutable_payload(Below(request.payload_size()));
    for (char& byte : payload) byte = static_cast<char>(random_());
  }

  void MutateKind(wire::Operation& operation) {
    if (Below(20) == 0) return operation.clear_kind();
    switch (operation.kind_case()) {
      case wire::Operation::kPush:
        return MutatePush(*operation.mutable_push());
      case wire::Operation::kPull:
        return MutatePull(*operation.mutable_pull());
      case wire::Operation::kRowPush:
        return MutateRowPush(*operation.mutable_row_push());
      case wire::Operation::kRowPull:
        return MutateRowPull(*operation.mutable_row_pull());
      case wire::Operation::KIND_NOT_SET:
        break;
    }
  }

  wire::Encoding AnyEncoding() { return static_cast<wire::Encoding>(Below(5)); }

  // Near the steps that a ps is in, or far off.
  int64_t AnyStep() {
    return static_cast<int64_t>(Below(2) == 0 ? Below(8) : Edge());
  }

  void MutateStep(wire::SyncStep& sync) {
    if (Below(2) == 0) {
      sync.set_step(AnyStep());
    } else {
      sync.set_replica(static_cast<int32_t>(Below(2) == 0 ? Below(4) : Edge()));
    }
  }

  void MutatePush(wire::Push& push) {
    switch (Below(5)) {
      case 0:
        return push.set_sequence(Edge());
      case 1:
        return push.set_encoding(AnyEncoding());
      case 2:
        return push.set_with_values(!push.with_values());
      case 3:
        if (push.kept_size() == 0) return push.add_kept(Edge());
        return push.set_kept(0, static_cast<uint32_t>(Edge()));
      default:
        MutateStep(*push.mutable_sync());
    }
  }

  void MutatePull(wire::Pull& pull) {
    if (Below(2) == 0) {
      pull.set_encoding(AnyEncoding());
    } else {
      pull.set_min_updates(AnyStep());
    }
  }

  void MutateRowPush(wire::RowPush& push) {
    switch (Below(6)) {
      case 0:
        return push.set_sequence(Edge());
      case 1:
        return push.set_encoding(AnyEncoding());
      case 4:
        return push.set_with_values(!push.with_values());
      case 2:
        return push.set_rows(static_cast<uint32_t>(Edge()));
      case 3:
        return push.set_table(static_cast<uint32_t>(Below(3)));
      default:
        MutateStep(*push.mutable_sync());
    }
  }

  void MutateRowPull(wire::RowPull& pull) {
    switch (Below(4)) {
      case 0:
        return pull.set_min_updates(AnyStep());
      case 1:
        return pull.set_encoding(AnyEncoding());
      case 2:
        return pull.set_rows(static_cast<uint32_t>(Edge()));
      default:
        pull.set_table(static_cast<uint32_t>(Below(3)));
    }
  }

  void MutateRange(wire::Operation& operation) {
    auto* ranges = operation.has_push()
                       ? operation.mutable_push()->mutable_range()
                       : operation.mutable_pull()->mutable_range();
    if (ranges->empty()) return;
    wire::TensorRange& range = *ranges->Mutable(Below(ranges->size()));
    switch (Below(4)) {
      case 0:
        range.set_part(static_cast<uint32_t>(Edge()));
        break;
      case 1:
        range.set_first(Edge());
        break;
      case 2:
        range.set_count(Edge());
        break;
      default:
        *ranges->Add() = wire::TensorRange(range);
    }
  }

  std::mt19937 random_;
};

TEST(ExchangeMutationTest, TheTargetTakesWhatIsValid) {
  ExchangeTarget target;
  size_t waiting = 0;
  for (const wire::ExchangeRequest& request : ValidExchangeRequests()) {
    const auto outcome = target.Feed(request.SerializeAsString(), 1000);
    EXPECT_TRUE(outcome.is_request);
    EXPECT_EQ(outcome.failed, 0u) << request.header().ShortDebugString();
    waiting += outcome.waiting;
  }
  EXPECT_EQ(waiting, 4u);
}

TEST(ExchangeMutationTest, MutantsAreAnsweredOrRefusedAndChangeNothing) {
  constexpr uint32_t kMutants = 12000;
  // Number of consecutive mutants that go to one target: the more, the more
  // steps the target makes.
  constexpr uint32_t kShared = 300;
  std::optional<ExchangeTarget> target;
  const auto valid = ValidExchangeRequests();
  int no_requests = 0, done = 0, failed = 0, waiting = 0;
  for (uint32_t seed = 0; seed < kMutants; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    if (seed % kShared == 0) target.emplace();
    Mutator mutator(seed);
    std::string bytes = mutator.MutateMessage(valid[seed % valid.size()]);
    if (mutator.Below(2) == 0) mutator.MutateBytes(bytes);
    const auto outcome = target->Feed(bytes, 1 + mutator.Below(200));
    no_requests += outcome.is_request ? 0 : 1;
    done += outcome.done > 0 ? 1 : 0;
    failed += outcome.failed > 0 ? 1 : 0;
    waiting += outcome.waiting > 0 ? 1 : 0;
  }
  EXPECT_GT(no_requests, 1000);
  EXPECT_GT(done, 1000);
  EXPECT_GT(failed, 1000);
  EXPECT_GT(waiting, 100);
}

TEST(ExchangeMutationTest, AMillionOperationsAreNoRequest) {
  ExchangeTarget target;
  wire::ExchangeRequest request;
  for (int i = 0; i < 1000000; ++i) request.mutable_header()->add_operation();
  EXPECT_FALSE(target.Feed(request.SerializeAsString(), 1 << 20).is_request);
}

}  // namespace
}  // namespace parasol
