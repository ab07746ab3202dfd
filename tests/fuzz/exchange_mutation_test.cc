// Mutants of valid messages, as a broken or hostile peer would send them, from
// fixed seeds.

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/parameter.pb.h"
#include "tests/fuzz/exchange_target.h"

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
    switch (Below(8)) {
      case 0:
        header.set_run_id("another");
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
      default:
        MutateRange(operation);
    }
    return request.SerializeAsString();
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

  void MutateKind(wire::Operation& operation) {
    switch (Below(6)) {
      case 0:
        operation.clear_kind();
        break;
      case 1:
        operation.mutable_push()->set_sequence(Edge());
        break;
      case 2:
        operation.mutable_push()->set_encoding(
            static_cast<wire::Encoding>(Below(5)));
        break;
      case 3:
        operation.mutable_push()->add_kept(static_cast<uint32_t>(Edge()));
        break;
      case 4:
        operation.mutable_row_pull()->set_rows(static_cast<uint32_t>(Edge()));
        break;
      default:
        operation.mutable_row_push()->set_rows(static_cast<uint32_t>(Edge()));
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
  for (const wire::ExchangeRequest& request : ValidExchangeRequests()) {
    const auto outcome = target.Feed(request.SerializeAsString(), 1000);
    EXPECT_TRUE(outcome.is_request);
    EXPECT_EQ(outcome.failed, 0u) << request.header().ShortDebugString();
  }
}

TEST(ExchangeMutationTest, MutantsAreAnsweredOrRefusedAndChangeNothing) {
  constexpr uint32_t kMutants = 12000;
  ExchangeTarget target;
  const auto valid = ValidExchangeRequests();
  int no_requests = 0, done = 0, failed = 0;
  for (uint32_t seed = 0; seed < kMutants; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Mutator mutator(seed);
    std::string bytes = mutator.MutateMessage(valid[seed % valid.size()]);
    if (mutator.Below(2) == 0) mutator.MutateBytes(bytes);
    const auto outcome = target.Feed(bytes, 1 + mutator.Below(200));
    no_requests += outcome.is_request ? 0 : 1;
    done += outcome.done > 0 ? 1 : 0;
    failed += outcome.failed > 0 ? 1 : 0;
  }
  EXPECT_GT(no_requests, 1000);
  EXPECT_GT(done, 1000);
  EXPECT_GT(failed, 1000);
}

TEST(ExchangeMutationTest, AMillionOperationsAreNoRequest) {
  ExchangeTarget target;
  wire::ExchangeRequest request;
  for (int i = 0; i < 1000000; ++i) request.mutable_header()->add_operation();
  EXPECT_FALSE(target.Feed(request.SerializeAsString(), 1 << 20).is_request);
}

}  // namespace
}  // namespace parasol
