#include "parameters/client/response_targets.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "cluster/rpc/tensor_frame.h"
#include "parameters/client/exchange_message.h"

namespace parasol {
namespace {

using OperationPtr = std::shared_ptr<const EncodedOperation>;

// Holds the memory of the callers that wait for operations.
class HeldMemory {
 public:
  ~HeldMemory() {
    for (const OperationPtr& operation : operations_) {
      operation->call().completion.ReleaseMemory();
    }
  }
  void Add(OperationPtr operation) {
    operation->call().completion.HoldMemory();
    operations_.push_back(std::move(operation));
  }

 private:
  std::vector<OperationPtr> operations_;
};

// The bytes of all payloads, one after the other, as they lie in a frame.
class PayloadBytes {
 public:
  // `sizes` has the size of each payload field; the first one begins at
  // `first`.
  PayloadBytes(const google::protobuf::RepeatedField<uint32_t>& sizes,
               size_t first)
      : sizes_(sizes.begin(), sizes.end()), at_(first) {
    Enter();
  }

  // Passes over the next `count` bytes, as far as there are any. Gives their
  // runs to `use`, as offsets in the frame.
  template <typename Use>
  void Pass(size_t count, Use use) {
    while (count > 0 && next_ < sizes_.size()) {
      const size_t some = std::min<size_t>(count, sizes_[next_] - used_);
      use(at_, some);
      at_ += some;
      used_ += some;
      count -= some;
      if (used_ == sizes_[next_]) {
        ++next_;
        Enter();
      }
    }
  }

  // Returns the offset behind the last payload once all were passed.
  size_t at() const { return at_; }

 private:
  // Goes to the first byte of the next payload that is not empty.
  void Enter() {
    used_ = 0;
    for (; next_ < sizes_.size(); ++next_) {
      at_ += PayloadPrefixBytes(sizes_[next_]);
      if (sizes_[next_] > 0) return;
    }
  }

  const std::vector<uint32_t> sizes_;
  size_t next_ = 0;
  size_t used_ = 0;  // bytes of sizes_[next_]
  size_t at_;
};

// Returns the memory that the operation's answer goes to as it comes; empty if
// it has to be decoded or scattered.
std::vector<absl::Span<float>> TargetsOf(const EncodedOperation& operation) {
  std::vector<absl::Span<float>> targets;
  const ShardOperation& asked = operation.asked;
  if (operation.encoding != job::FLOAT32 || !asked.gives_values()) {
    return targets;
  }
  if (asked.is_dense()) {
    for (const ShardOperation::Range& range : asked.ranges()) {
      targets.emplace_back(range.target, range.count);
    }
  } else if (asked.rows().positions.empty()) {
    targets.emplace_back(asked.rows().target,
                         asked.rows().count * asked.rows().width);
  }
  return targets;
}

// Returns true if the payload fields fill the frame from `start.end` on.
bool Fits(const ResponseStart& start, size_t frame_bytes) {
  size_t end = start.end;
  for (const uint32_t size : start.header.payload_size()) {
    end += PayloadPrefixBytes(size) + size;
  }
  return end == frame_bytes;
}

}  // namespace

std::optional<ResponseStart> ReadResponseStart(absl::string_view start,
                                               MessageMemory& memory) {
  const FrameStart frame = FindHeader(start);
  if (frame.needs_more) return std::nullopt;
  auto& header = memory.Make<wire::ResponseHeader>();
  ResponseStart result = {.header = header};
  if (frame.header.has_value() &&
      header.ParseFromArray(frame.header->data(),
                            static_cast<int>(frame.header->size()))) {
    result.end = frame.header->end() - start.begin();
  }
  return result;
}

FrameTargets FindResponseTargets(
    const ResponseStart& start, size_t frame_bytes,
    absl::FunctionRef<OperationPtr(uint64_t)> find) {
  FrameTargets found;
  const wire::ResponseHeader& header = start.header;
  if (start.end == 0 || header.payload_size().empty() ||
      !header.shared_payload().empty() || !Fits(start, frame_bytes)) {
    return found;
  }
  const auto held = std::make_shared<HeldMemory>();
  PayloadBytes payloads(header.payload_size(), start.end);
  for (const wire::Result& result : header.result()) {
    const OperationPtr operation =
        result.code() == 0 && result.payload_bytes() >= kMinTargetBytes
            ? find(result.id())
            : nullptr;
    if (operation == nullptr ||
        result.payload_bytes() != AnswerBytes(*operation)) {
      payloads.Pass(result.payload_bytes(), [](size_t, size_t) {});
      continue;
    }
    const std::vector<absl::Span<float>> targets = TargetsOf(*operation);
    if (targets.empty()) {
      payloads.Pass(result.payload_bytes(), [](size_t, size_t) {});
      continue;
    }
    held->Add(operation);
    for (const absl::Span<float> target : targets) {
      auto* next = reinterpret_cast<std::byte*>(target.data());
      payloads.Pass(target.size() * sizeof(float),
                    [&](size_t first, size_t count) {
                      if (count >= kMinTargetBytes) {
                        found.parts.push_back({first, count, next});
                      }
                      next += count;
                    });
    }
  }
  found.hold = held;
  return found;
}

absl::Status CheckPayloadSizes(const wire::ResponseHeader& header,
                               absl::Span<const PayloadView> payloads) {
  const auto& sizes = header.payload_size();
  if (sizes.empty()) return absl::OkStatus();
  const bool are_equal =
      std::equal(sizes.begin(), sizes.end(), payloads.begin(), payloads.end(),
                 [](uint32_t size, const PayloadView& payload) {
                   return size == payload.size();
                 });
  if (are_equal) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a response with ", payloads.size(), " payloads, whose header names ",
      sizes.size(), " of other sizes"));
}

}  // namespace parasol
